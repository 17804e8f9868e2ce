//! `concert fleet`: how the entries of the inventory stand, and what keeps them from being ready.

use std::time::Duration;

use concert_model::Address;
use concert_server::explain::span;
use serde_json::Value;

use super::Run;
use crate::cli::Advice;
use crate::client::{Ask, Flags, Session};
use crate::exit::Exit;
use crate::print::{self, Output, Table};

/// Longest message in a table.
const MESSAGE_MAX: usize = 80;

#[derive(clap::Args)]
pub struct Fleet {
    /// The form of the answer
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Run for Fleet {
    const NAME: &'static str = "fleet";
    const ABOUT: &'static str = "Show how a fleet of clusters stands";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let answer = match session.value(&Ask::get(Address::new("/mothership/v1/fleet"))).await {
                Ok(answer) => answer,
                Err(error) if error.is_not_served() || error.is_not_found() => {
                    let what = format!("{} schedules no fleet", session.server());
                    return Err(Advice::new(what, "concert serve, or serve --only mothership").into());
                }
                Err(error) => return Err(error.into()),
            };
            print::out(&match self.output {
                Output::Json => print::json(&answer),
                Output::Yaml => print::yaml(&answer),
                Output::Table | Output::Wide | Output::Name => text(&answer),
            })?;
            Ok(Exit::Done)
        })
    }
}

/// Counts, reconcilers, what fails, what is slow: each only if there is something to say.
fn text(answer: &Value) -> String {
    let mut text = counts(answer);
    let parts = [
        ("", reconcilers(answer)),
        ("\nFailing\n", failing(answer)),
        ("\nNot ready for longest\n", slowest(answer)),
    ];
    for (heading, table) in parts.into_iter().filter(|(_, it)| !it.rows.is_empty()) {
        text += &format!("{heading}{}", if heading.is_empty() { "\n" } else { "" });
        text += &table.to_text();
    }
    text
}

fn counts(answer: &Value) -> String {
    let states = answer["items"].as_object().into_iter().flatten();
    let shown = states.filter(|(_, count)| **count != 0).map(|(state, count)| {
        format!("{} {}", count.as_u64().unwrap_or_default(), print::plain(&state.replace('_', " ")))
    });
    let shown: Vec<String> = shown.collect();
    let entries = answer["entries"].as_u64().unwrap_or_default();
    let noun = if entries == 1 { "entry" } else { "entries" };
    let items = if shown.is_empty() { "no items".to_owned() } else { shown.join(", ") };
    format!("{entries} {noun}: {items}\n")
}

fn list<'a>(answer: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    answer[field].as_array().into_iter().flatten()
}

fn word<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn number(value: &Value, field: &str) -> String {
    value[field].as_u64().unwrap_or_default().to_string()
}

fn message(value: &Value) -> String {
    let line = word(value, "message").lines().next().unwrap_or_default();
    match line.char_indices().nth(MESSAGE_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn reconcilers(answer: &Value) -> Table {
    let mut table = Table::new(&["RECONCILER", "STATUS", "ITEMS", "RUNNING", "WAITING", "OLDEST"]);
    for it in list(answer, "reconcilers") {
        let age = Duration::try_from_secs_f64(it["queue_age_seconds"].as_f64().unwrap_or_default());
        table.row([
            word(it, "reconciler").to_owned(),
            word(it, "status").to_owned(),
            number(it, "items"),
            number(it, "running"),
            number(it, "waiting"),
            span(age.unwrap_or_default()),
        ]);
    }
    table
}

fn failing(answer: &Value) -> Table {
    let mut table = Table::new(&["RECONCILER", "REASON", "ITEMS", "SUCH AS", "MESSAGE"]);
    for it in list(answer, "failing") {
        let entries: Vec<&str> = list(it, "entries").filter_map(Value::as_str).collect();
        table.row([
            word(it, "reconciler").to_owned(),
            word(it, "reason").to_owned(),
            number(it, "items"),
            entries.join(", "),
            message(it),
        ]);
    }
    table
}

fn slowest(answer: &Value) -> Table {
    let mut table = Table::new(&["ENTRY", "RECONCILER", "STATE", "FOR", "MESSAGE"]);
    for it in list(answer, "slowest") {
        let time = Duration::from_secs(it["seconds"].as_i64().unwrap_or_default().unsigned_abs());
        table.row([
            word(it, "entry").to_owned(),
            word(it, "reconciler").to_owned(),
            word(it, "state").replace('_', " "),
            span(time),
            message(it),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fleet_is_told_in_four_parts() {
        let answer = json!({
            "entries": 3,
            "items": {"pending": 0, "running": 1, "ready": 7, "not_ready": 2, "failed": 2},
            "reconcilers": [{"reconciler": "network", "status": "Ready", "items": 3, "running": 1,
                "waiting": 0, "queue_age_seconds": 0.0}],
            "failing": [{"reconciler": "shoot", "reason": "ReconcileError", "message": "no quota\nat all",
                "items": 2, "entries": ["rt-1", "rt-2"]}],
            "slowest": [{"entry": "rt-1", "reconciler": "shoot", "state": "not_ready", "seconds": 185,
                "message": "waits for section network"}],
        });
        let expected = "3 entries: 2 failed, 2 not ready, 7 ready, 1 running\n\n\
            RECONCILER   STATUS   ITEMS   RUNNING   WAITING   OLDEST\n\
            network      Ready    3       1         0         0s\n\
            \nFailing\n\
            RECONCILER   REASON           ITEMS   SUCH AS      MESSAGE\n\
            shoot        ReconcileError   2       rt-1, rt-2   no quota\n\
            \nNot ready for longest\n\
            ENTRY   RECONCILER   STATE       FOR    MESSAGE\n\
            rt-1    shoot        not ready   3m5s   waits for section network\n";
        assert_eq!(text(&answer), expected);
        assert_eq!(text(&json!({"entries": 0, "items": {}})), "0 entries: no items\n");
    }
}
