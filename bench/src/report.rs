//! What was measured, as a table or as JSON.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::machine;

/// All rows of a run.
#[derive(Serialize)]
pub struct Report {
    machine: machine::Description,
    rows: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    area: String,
    what: String,
    value: f64,
    unit: String,
    /// What it is held against, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    against: Option<String>,
}

impl Report {
    /// An empty report about this machine.
    pub fn new() -> Self {
        Self { machine: machine::describe(), rows: Vec::new() }
    }

    /// Adds a number, and says so while the run goes on.
    pub fn add(&mut self, area: &'static str, what: impl Into<String>, value: f64, unit: &'static str) {
        self.push(Row { area: area.into(), what: what.into(), value, unit: unit.into(), against: None });
    }

    /// Adds a number with what it is held against.
    pub fn add_against(
        &mut self,
        area: &'static str,
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
        against: impl Into<String>,
    ) {
        let against = Some(against.into());
        self.push(Row { area: area.into(), what: what.into(), value, unit: unit.into(), against });
    }

    /// Adds the rows of another report, given as JSON.
    pub fn take_rows(&mut self, json: &[u8]) -> Result<()> {
        let report: Value = serde_json::from_slice(json)?;
        let rows = report.get("rows").context("a report has rows")?;
        self.rows.extend(Vec::<Row>::deserialize(rows)?);
        Ok(())
    }

    fn push(&mut self, row: Row) {
        eprintln!("  {}", row.line());
        self.rows.push(row);
    }

    /// The report for programs.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The report for people.
    pub fn table(&self) -> String {
        let mut out = format!("\n{}\n", self.machine);
        let mut area = "";
        for row in &self.rows {
            if row.area != area {
                area = &row.area;
                out.push_str(&format!("\n{area}\n"));
            }
            out.push_str(&format!("  {}\n", row.line()));
        }
        out
    }
}

impl Row {
    fn line(&self) -> String {
        let value = match self.value {
            v if v >= 1000.0 => format!("{v:.0}"),
            v if v >= 10.0 => format!("{v:.1}"),
            v => format!("{v:.3}"),
        };
        let against = self.against.as_ref().map(|a| format!("   {a}")).unwrap_or_default();
        format!("{:<52} {value:>10} {:<10}{against}", self.what, self.unit)
    }
}

/// The value below which `fraction` of the sorted samples lie.
pub fn percentile(sorted: &[f64], fraction: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    let place = (sorted.len() as f64 * fraction) as usize;
    sorted[place.min(sorted.len() - 1)]
}
