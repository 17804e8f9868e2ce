//! Validation: what is wrong with a value, in the words of Kubernetes.
//!
//! One walk over value and schema together. It allocates nothing while all is well: the path is a
//! chain on the stack, and errors are put into words only when they are kept.

mod branches;
mod duplicates;
mod report;
mod scalars;
mod words;

use concert_model::field::{FieldError, FieldPath};
use serde_json::{Map, Value};

use super::checks::Checks;
use super::earlier::is_unchanged;
use super::number::Num;
use super::order;
use super::path::Path;
use super::schema::{ListType, Schema, Type};
use report::Report;

/// Most errors that are returned for one value. More would help nobody and cost memory.
pub const ERRORS_MAX: usize = 100;

impl Schema {
    /// Everything that is wrong with `value`, at most [`ERRORS_MAX`] things; empty when it is valid.
    ///
    /// The rules of [`Schema::rules`] are not evaluated.
    pub fn validate(&self, value: &Value) -> Vec<FieldError> {
        self.validate_at(&FieldPath::root(), value)
    }

    /// As [`Schema::validate`], for a value that is found at `path`.
    pub fn validate_at(&self, path: &FieldPath, value: &Value) -> Vec<FieldError> {
        let mut report = Report::collecting();
        check_node(self, value, None, &Path::Root(path), &mut report);
        report.into_errors()
    }

    /// As [`Schema::validate_at`], for a value that comes in the place of `old`: what has stayed as it was
    /// is not held against who changes something else, whatever the schema says of it now.
    pub fn validate_change(&self, path: &FieldPath, value: &Value, old: &Value) -> Vec<FieldError> {
        let mut report = Report::collecting();
        check_node(self, value, Some(old), &Path::Root(path), &mut report);
        report.into_errors()
    }
}

fn check_node(schema: &Schema, value: &Value, old: Option<&Value>, path: &Path<'_>, report: &mut Report) {
    if is_unchanged(path, old, value) {
        return;
    }
    if !has_type(schema, value) {
        report.add(|| words::wrong_type(path, expected(schema), value));
        return;
    }
    check_value(&schema.checks, value, path, report);
    match value {
        Value::Object(object) => check_fields(schema, object, old, path, report),
        Value::Array(list) => check_elements(schema, list, old, path, report),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn has_type(schema: &Schema, value: &Value) -> bool {
    if value.is_null() {
        return schema.nullable || (schema.kind.is_none() && !schema.int_or_string);
    }
    if schema.int_or_string {
        return is_of_type(Type::Integer, value) || value.is_string();
    }
    schema.kind.is_none_or(|kind| is_of_type(kind, value))
}

fn is_of_type(kind: Type, value: &Value) -> bool {
    match (kind, value) {
        (Type::Integer, Value::Number(number)) => Num::of(number).is_integer(),
        (Type::Object, Value::Object(_))
        | (Type::Array, Value::Array(_))
        | (Type::String, Value::String(_))
        | (Type::Number, Value::Number(_))
        | (Type::Boolean, Value::Bool(_)) => true,
        _ => false,
    }
}

fn expected(schema: &Schema) -> &'static str {
    if schema.int_or_string { "integer,string" } else { schema.kind.map_or("any", Type::name) }
}

/// What holds for nodes and for branches alike. Null is only held against the enumeration.
fn check_value(checks: &Checks, value: &Value, path: &Path<'_>, report: &mut Report) {
    if let Some(values) = &checks.values
        && !values.iter().any(|supported| order::compare(supported, value).is_eq())
    {
        report.add(|| words::unsupported(path, value, values));
    }
    match value {
        Value::Null => return,
        Value::String(text) => scalars::check_text(checks, text, path, report),
        Value::Number(number) => scalars::check_number(checks, number, path, report),
        Value::Array(list) => {
            scalars::check_count(checks.items, list.len(), words::Counted::Items, path, report);
        }
        Value::Object(object) => check_object(checks, object, path, report),
        Value::Bool(_) => {}
    }
    if let Some(branches) = &checks.branches {
        branches::check(branches, value, path, report);
    }
}

fn check_object(checks: &Checks, object: &Map<String, Value>, path: &Path<'_>, report: &mut Report) {
    scalars::check_count(checks.properties, object.len(), words::Counted::Properties, path, report);
    for name in &checks.required {
        if !object.contains_key(name) {
            report.add(|| FieldError::required(path.child(name).field(), ""));
        }
    }
}

fn check_fields(
    schema: &Schema,
    object: &Map<String, Value>,
    old: Option<&Value>,
    path: &Path<'_>,
    report: &mut Report,
) {
    if schema.embedded {
        check_embedded(object, path, report);
    }
    for (name, value) in object {
        if let Some(property) = schema.property(name) {
            let old = old.and_then(|old| old.get(name));
            check_node(property, value, old, &path.child(name), report);
        }
    }
}

/// An object inside the object needs to say what it is.
fn check_embedded(object: &Map<String, Value>, path: &Path<'_>, report: &mut Report) {
    for name in ["apiVersion", "kind"] {
        match object.get(name) {
            Some(Value::String(text)) if !text.is_empty() => {}
            None | Some(Value::Null | Value::String(_)) => {
                report.add(|| FieldError::required(path.child(name).field(), "must not be empty"));
            }
            Some(value) => report.add(|| words::wrong_type(&path.child(name), Type::String.name(), value)),
        }
    }
}

fn check_elements(
    schema: &Schema,
    list: &[Value],
    old: Option<&Value>,
    path: &Path<'_>,
    report: &mut Report,
) {
    match schema.list_type {
        ListType::Atomic => {}
        ListType::Set => duplicates::check_set(list, path, report),
        ListType::Map => duplicates::check_map(&schema.list_map_keys, list, path, report),
    }
    if let Some(items) = &schema.items {
        let olds = schema.earlier_elements(old);
        for (index, element) in list.iter().enumerate() {
            let old = old.and_then(|old| match schema.list_type {
                ListType::Map => olds.get(&schema.element_key(element)).copied(),
                ListType::Atomic | ListType::Set => old.get(index),
            });
            check_node(items, element, old, &path.index(index), report);
        }
    }
}

#[cfg(test)]
mod tests;
