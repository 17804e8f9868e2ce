//! The wording of errors, kept close to what Kubernetes answers.
//!
//! One difference is meant: where Kubernetes reports a broken junctor or number format against no
//! field at all (`<nil>`), the field is named.

use concert_model::field::{FieldError, Rule};
use serde_json::Value;

use crate::structural::checks::Bound;
use crate::structural::number::Num;
use crate::structural::path::Path;

/// Longest rendering of a duplicate, in characters.
const DUPLICATE_CHARS_MAX: usize = 256;

/// What a [`crate::structural::checks::Range`] counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    Items,
    Properties,
}

impl Counted {
    fn name(self) -> &'static str {
        match self {
            Counted::Items => "items",
            Counted::Properties => "properties",
        }
    }
}

/// `spec.size in body should …`
fn in_body(path: &Path<'_>, should: &str) -> String {
    let field = path.field();
    if field.is_root() { format!("in body {should}") } else { format!("{field} in body {should}") }
}

/// The value shown is the name of the type found, not the value.
pub(super) fn wrong_type(path: &Path<'_>, expected: &str, value: &Value) -> FieldError {
    let found = type_name(value);
    let detail = in_body(path, &format!("must be of type {expected}: {found:?}"));
    FieldError::new(path.field(), Rule::Type, &Value::from(found), detail)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(super) fn unsupported(path: &Path<'_>, value: &Value, values: &[Value]) -> FieldError {
    let quoted: Vec<String> = values
        .iter()
        .map(|value| match value {
            Value::String(_) => value.to_string(),
            other => Value::from(other.to_string()).to_string(),
        })
        .collect();
    let detail = format!("supported values: {}", quoted.join(", "));
    FieldError::new(path.field(), Rule::NotSupported, value, detail)
}

pub(super) fn wrong_format(path: &Path<'_>, format: &str, text: &str) -> FieldError {
    let error = FieldError::new(path.field(), Rule::Type, &Value::from(text), "");
    // The text in the detail is the one shown as the value, which is cut to a sensible length.
    let shown = error.value.clone().unwrap_or_default();
    FieldError { detail: in_body(path, &format!("must be of type {format}: {shown}")), ..error }
}

pub(super) fn wrong_number_format(path: &Path<'_>, kind: &str, format: &str, value: &Value) -> FieldError {
    let field = path.field();
    let detail = format!("Checked value must be of type {kind} with format {format} in {field}");
    FieldError::invalid(field, value, detail)
}

pub(super) fn too_long(path: &Path<'_>, max: u64) -> FieldError {
    FieldError::too_long(path.field(), usize::try_from(max).unwrap_or(usize::MAX))
}

pub(super) fn too_short(path: &Path<'_>, min: u64, text: &str) -> FieldError {
    let detail = in_body(path, &format!("should be at least {min} chars long"));
    FieldError::invalid_text(path.field(), text, detail)
}

pub(super) fn no_match(path: &Path<'_>, pattern: &str, text: &str) -> FieldError {
    FieldError::invalid_text(path.field(), text, in_body(path, &format!("should match '{pattern}'")))
}

pub(super) fn too_many(path: &Path<'_>, found: usize, max: u64) -> FieldError {
    let detail = format!("must have at most {max} items");
    FieldError::new(path.field(), Rule::TooMany, &Value::from(found), detail)
}

pub(super) fn too_few(path: &Path<'_>, counted: Counted, found: usize, min: u64) -> FieldError {
    let detail = in_body(path, &format!("should have at least {min} {}", counted.name()));
    FieldError::invalid(path.field(), &Value::from(found), detail)
}

pub(super) fn too_small(path: &Path<'_>, bound: Bound, value: &Value) -> FieldError {
    let than = if bound.exclusive { "greater than" } else { "greater than or equal to" };
    FieldError::invalid(path.field(), value, in_body(path, &format!("should be {than} {}", bound.limit)))
}

pub(super) fn too_large(path: &Path<'_>, bound: Bound, value: &Value) -> FieldError {
    let than = if bound.exclusive { "less than" } else { "less than or equal to" };
    FieldError::invalid(path.field(), value, in_body(path, &format!("should be {than} {}", bound.limit)))
}

pub(super) fn no_multiple(path: &Path<'_>, factor: Num, value: &Value) -> FieldError {
    FieldError::invalid(path.field(), value, in_body(path, &format!("should be a multiple of {factor}")))
}

/// `what` is the rest of the sentence `"spec" …`.
pub(super) fn junctor(path: &Path<'_>, what: &str) -> FieldError {
    let field = path.field();
    let detail = format!("{:?} {what}", field.as_str());
    FieldError::invalid_text(field, "", detail)
}

/// Shows the element, or of a map only its keys.
pub(super) fn duplicate(path: &Path<'_>, value: &Value) -> FieldError {
    let text = value.to_string();
    let shown = match text.char_indices().nth(DUPLICATE_CHARS_MAX) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    };
    FieldError { field: path.field(), rule: Rule::Duplicate, value: Some(shown), detail: String::new() }
}
