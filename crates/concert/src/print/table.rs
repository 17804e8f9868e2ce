//! Columns.

use serde_json::Value;

use super::plain;

/// Rows under names. Everything in it is fit for a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// Between columns.
const GAP: usize = 3;

impl Table {
    pub fn new(columns: &[&str]) -> Self {
        Self { columns: columns.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        self.rows.push(cells.into_iter().map(|it| plain(it.as_ref())).collect());
    }

    /// Reads the Table of an API server; none if it is not one. Columns of lesser importance are left out
    /// unless `is_wide`.
    pub fn of_server(value: &Value, is_wide: bool) -> Option<Self> {
        if value["kind"] != "Table" {
            return None;
        }
        let columns = Columns::of(value, is_wide);
        let mut table = Self { columns: columns.names.clone(), rows: Vec::new() };
        for row in value["rows"].as_array().into_iter().flatten() {
            table.rows.push(columns.cells(row));
        }
        Some(table)
    }

    /// The same with another column in front.
    pub fn with_first(mut self, name: &str, cells: impl IntoIterator<Item = String>) -> Self {
        self.columns.insert(0, name.to_owned());
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.insert(0, plain(&cell));
        }
        self
    }

    /// How wide each column must be.
    pub fn widths(&self) -> Vec<usize> {
        let lines = std::iter::once(&self.columns).chain(&self.rows);
        lines.fold(Vec::new(), |mut widths: Vec<usize>, line| {
            widths.resize(widths.len().max(line.len()), 0);
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
            widths
        })
    }

    pub fn to_text(&self) -> String {
        let widths = self.widths();
        let lines = std::iter::once(&self.columns).chain(&self.rows);
        lines.map(|it| line(it, &widths)).collect()
    }
}

/// Which cells of a server's rows are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    pub names: Vec<String>,
    places: Vec<usize>,
}

impl Columns {
    pub fn of(table: &Value, is_wide: bool) -> Self {
        let mut columns = Self::default();
        let all = table["columnDefinitions"].as_array().into_iter().flatten();
        for (place, column) in all.enumerate() {
            if is_wide || column["priority"].as_i64().unwrap_or_default() == 0 {
                columns.names.push(plain(&column["name"].as_str().unwrap_or_default().to_uppercase()));
                columns.places.push(place);
            }
        }
        columns
    }

    pub fn cells(&self, row: &Value) -> Vec<String> {
        self.places.iter().map(|it| cell(&row["cells"][*it])).collect()
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => plain(text),
        other => plain(&other.to_string()),
    }
}

/// One line; the last cell is not padded.
pub fn line(cells: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (index, cell) in cells.iter().enumerate() {
        text.push_str(cell);
        if index + 1 < cells.len() {
            let width = widths.get(index).copied().unwrap_or_default();
            let padding = width.saturating_sub(cell.chars().count()) + GAP;
            text.extend(std::iter::repeat_n(' ', padding));
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table() -> Value {
        json!({"kind": "Table", "columnDefinitions": [{"name": "Name", "priority": 0}, {"name": "Size", "priority": 1},
            {"name": "Ready"}], "rows": [{"cells": ["a", 3, "True"]}, {"cells": ["long\u{1b}", null, true]}]})
    }

    #[test]
    fn the_servers_columns_are_lined_up() {
        let narrow = Table::of_server(&table(), false).unwrap();
        assert_eq!(narrow.to_text(), "NAME         READY\na            True\nlong\\u{1b}   true\n");
        let wide =
            Table::of_server(&table(), true).unwrap().with_first("NAMESPACE", ["x".into(), "y".into()]);
        assert_eq!(wide.columns, ["NAMESPACE", "NAME", "SIZE", "READY"]);
        assert_eq!(wide.rows[0], ["x", "a", "3", "True"]);
        assert_eq!(Table::of_server(&json!({"kind": "BucketList"}), false), None);
    }

    #[test]
    fn rows_of_any_length_and_empty_cells_are_fine() {
        let mut table = Table::new(&["A", "B"]);
        table.row(["ä", ""]);
        table.row(["b", "c", "d"]);
        assert_eq!(table.to_text(), "A   B\nä\nb   c   d\n");
    }
}
