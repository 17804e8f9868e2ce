//! Printer columns: what a table of objects shows, read from `additionalPrinterColumns`.
//!
//! A [`Column`] is read once with its definition; [`Column::cell`] then takes the value to show out of
//! each object. Texts of one cell are bounded, since any object may hold a megabyte in the field.

mod age;
mod json_path;

use concert_model::field::{FieldError, FieldPath, Rule};
use concert_model::time::{self, Timestamp};
use serde_json::{Map, Value};

pub use age::age;
pub use json_path::{JsonPath, PATH_STEPS_MAX, PathError};

/// Most columns of one version of a kind.
pub const COLUMNS_MAX: usize = 100;

/// Longest text of one cell, in characters. Nobody reads more in a table.
pub const CELL_CHARS_MAX: usize = 1024;

const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The type of the cells: `type` in definitions.
    pub kind: ColumnType,
    /// An OpenAPI format that says more about the cells.
    pub format: Option<String>,
    /// What the column means.
    pub description: Option<String>,
    /// 0 for columns that are always shown; higher ones only in wide tables.
    pub priority: i32,
    /// Where the value is.
    pub path: JsonPath,
}

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// A number without fraction.
    Integer,
    /// Any number.
    Number,
    /// Text; everything has one.
    String,
    /// True or false.
    Boolean,
    /// A time, shown as how long ago it was.
    Date,
}

impl ColumnType {
    const ALL: [ColumnType; 5] =
        [ColumnType::Boolean, ColumnType::Date, ColumnType::Integer, ColumnType::Number, ColumnType::String];

    /// The name in definitions and tables.
    pub fn name(self) -> &'static str {
        match self {
            ColumnType::Integer => "integer",
            ColumnType::Number => "number",
            ColumnType::String => "string",
            ColumnType::Boolean => "boolean",
            ColumnType::Date => "date",
        }
    }
}

impl Column {
    /// A column whose path is known to be right: for kinds that are built in.
    ///
    /// # Errors
    /// When `path` is no JSONPath that columns may have.
    pub fn new(name: &str, kind: ColumnType, path: &str) -> Result<Self, FieldError> {
        let path = JsonPath::parse(path)
            .map_err(|why| FieldError::invalid_text(FieldPath::new("jsonPath"), path, why.to_string()))?;
        Ok(Self { name: name.to_owned(), kind, format: None, description: None, priority: 0, path })
    }

    /// Reads the list `additionalPrinterColumns` of a definition; null is an empty one.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(source: &Value) -> Result<Vec<Self>, Vec<FieldError>> {
        Self::read_at(&FieldPath::new("additionalPrinterColumns"), source)
    }

    /// As [`Column::read`], for a list that is found at `path`.
    ///
    /// # Errors
    /// As for [`Column::read`].
    pub fn read_at(path: &FieldPath, source: &Value) -> Result<Vec<Self>, Vec<FieldError>> {
        let list = match source {
            Value::Null => return Ok(Vec::new()),
            Value::Array(list) if list.len() <= COLUMNS_MAX => list,
            Value::Array(_) => {
                let detail = format!("must have at most {COLUMNS_MAX} items");
                return Err(vec![FieldError::new(path.clone(), Rule::TooMany, source, detail)]);
            }
            other => return Err(vec![wrong_type(path, other, "array")]),
        };
        let mut errors = Vec::new();
        let read = |(index, source)| read_column(source, &path.index(index), &mut errors);
        let columns = list.iter().enumerate().filter_map(read).collect();
        if errors.is_empty() { Ok(columns) } else { Err(errors) }
    }

    /// What the column shows of `object`; null when there is nothing to show.
    ///
    /// A date is the time as the object has it. [`Column::cell_at`] gives what tables show.
    pub fn cell(&self, object: &Value) -> Value {
        let found = self.path.find(object);
        let Some(first) = found.first() else { return Value::Null };
        match (self.kind, first) {
            (_, Value::Null) => Value::Null,
            (ColumnType::String, _) => Value::from(text_of(&found)),
            (ColumnType::Integer, Value::Number(number)) => integer_of(number),
            (ColumnType::Number, Value::Number(number)) => Value::Number(number.clone()),
            (ColumnType::Boolean, Value::Bool(flag)) => Value::Bool(*flag),
            (ColumnType::Date, Value::String(text)) => Value::from(clipped(text)),
            _ => Value::Null,
        }
    }

    /// As [`Column::cell`], with dates as their age at `now`: what a table answers to clients.
    pub fn cell_at(&self, object: &Value, now: Timestamp) -> Value {
        let cell = self.cell(object);
        match (self.kind, &cell) {
            (ColumnType::Date, Value::String(text)) => {
                Value::from(time::parse(text).map_or("<invalid>".to_owned(), |time| age(time, now)))
            }
            _ => cell,
        }
    }
}

fn integer_of(number: &serde_json::Number) -> Value {
    if number.is_f64() {
        // The cast saturates.
        return Value::from(number.as_f64().unwrap_or_default() as i64);
    }
    Value::Number(number.clone())
}

/// All that was found, as kubectl prints results of a path.
fn text_of(found: &[&Value]) -> String {
    let mut text = String::new();
    for value in found {
        if !text.is_empty() {
            text.push(' ');
        }
        match value {
            Value::String(value) => text.push_str(&clipped(value)),
            Value::Null => {}
            other => text.push_str(&clipped(&other.to_string())),
        }
        if text.len() > CELL_CHARS_MAX * 4 {
            break;
        }
    }
    clipped(&text)
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(CELL_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn read_column(source: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) -> Option<Column> {
    let Value::Object(fields) = source else {
        errors.push(wrong_type(path, source, "object"));
        return None;
    };
    let found = errors.len();
    let name = required_text(fields, "name", path, errors);
    let kind = read_type(fields, path, errors);
    let format = text(fields, "format", path, errors).filter(|format| !format.is_empty());
    if let Some(format) = &format
        && !FORMATS.contains(&format.as_str())
    {
        errors.push(unsupported(&path.child("format"), format, &FORMATS));
    }
    let description = text(fields, "description", path, errors).filter(|text| !text.is_empty());
    let priority = read_priority(fields, path, errors);
    let json_path = read_path(fields, path, errors);
    if errors.len() > found {
        return None;
    }
    Some(Column { name: name?, kind: kind?, format, description, priority, path: json_path? })
}

fn read_type(
    fields: &Map<String, Value>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> Option<ColumnType> {
    let name = required_text(fields, "type", path, errors)?;
    let kind = ColumnType::ALL.into_iter().find(|kind| kind.name() == name);
    if kind.is_none() {
        errors.push(unsupported(&path.child("type"), &name, &ColumnType::ALL.map(ColumnType::name)));
    }
    kind
}

fn read_priority(fields: &Map<String, Value>, path: &FieldPath, errors: &mut Vec<FieldError>) -> i32 {
    match fields.get("priority") {
        None | Some(Value::Null) => 0,
        Some(value) => value.as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or_else(|| {
            errors.push(wrong_type(&path.child("priority"), value, "integer"));
            0
        }),
    }
}

fn read_path(
    fields: &Map<String, Value>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> Option<JsonPath> {
    let source = required_text(fields, "jsonPath", path, errors)?;
    match JsonPath::parse(&source) {
        Ok(parsed) => Some(parsed),
        Err(why) => {
            errors.push(FieldError::invalid_text(path.child("jsonPath"), &source, why.to_string()));
            None
        }
    }
}

fn text(
    fields: &Map<String, Value>,
    name: &str,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> Option<String> {
    match fields.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => {
            errors.push(wrong_type(&path.child(name), other, "string"));
            None
        }
    }
}

fn required_text(
    fields: &Map<String, Value>,
    name: &str,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> Option<String> {
    let found = errors.len();
    let text = text(fields, name, path, errors).filter(|text| !text.is_empty());
    if text.is_none() && errors.len() == found {
        errors.push(FieldError::required(path.child(name), ""));
    }
    text
}

fn wrong_type(path: &FieldPath, value: &Value, expected: &str) -> FieldError {
    FieldError::new(path.clone(), Rule::Type, value, format!("must be of type {expected}"))
}

fn unsupported(path: &FieldPath, found: &str, names: &[&str]) -> FieldError {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let detail = format!("supported values: {}", quoted.join(", "));
    FieldError::new(path.clone(), Rule::NotSupported, &Value::from(found), detail)
}

#[cfg(test)]
mod tests;
