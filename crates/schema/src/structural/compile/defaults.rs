//! Defaults must be valid and without unknown fields, as if a user had written them.
//!
//! They are also bounded. A default that is a list of objects, each with such a default again, is short
//! to write and would fill the memory: so what defaults come to is computed before any is applied.

use concert_model::field::FieldPath;
use serde_json::{Map, Value};

use super::{Compiler, SCHEMA_DEFAULTS_MAX};
use crate::structural::path::Path;
use crate::structural::schema::{Additional, Schema};

/// Checks the defaults of `schema` and of everything below.
///
/// A default is checked the way it will be used, with the defaults inside it filled in: `{}` is a fine
/// default for an object whose required fields have defaults.
pub(super) fn check(schema: &Schema, path: &Path<'_>, compiler: &mut Compiler) {
    if let Some(default) = &schema.default {
        check_default(schema, default, path, compiler);
    }
    let place = path.child("properties");
    for (name, property) in &schema.properties {
        check(property, &place.key(name), compiler);
    }
    if let Additional::Each(each) = &schema.additional {
        check(each, &path.child("additionalProperties"), compiler);
    }
    if let Some(items) = &schema.items {
        check(items, &path.child("items"), compiler);
    }
}

fn check_default(schema: &Schema, default: &Value, path: &Path<'_>, compiler: &mut Compiler) {
    let place = path.child("default");
    let mut value = default.clone();
    let unknown = schema.prune(&mut value);
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.iter().take(10).map(FieldPath::as_str).collect();
        compiler.invalid(&place, default, format!("must not have unknown fields: {}", names.join(", ")));
        return;
    }
    schema.default(&mut value);
    for error in schema.validate_at(&place.field(), &value) {
        compiler.add(error);
    }
}

/// Computes what the default of `schema` comes to, and refuses a node whose defaults come to too much.
///
/// Works from below: the nodes inside `schema` have been measured already.
pub(super) fn measure(schema: &mut Schema, path: &Path<'_>, compiler: &mut Compiler) {
    let in_empty_object = values_in(schema, &Value::Object(Map::new()));
    let in_default = schema.default.as_ref().map_or(0, |default| values_in(schema, default));
    if in_empty_object.max(in_default) > SCHEMA_DEFAULTS_MAX {
        let why = format!("defaults may not come to more than {SCHEMA_DEFAULTS_MAX} values");
        compiler.forbid(&path.child("default"), why);
    }
    schema.default_values = in_default;
}

/// How many values `value` has after defaulting. Walks only what is written, never what is filled in.
fn values_in(schema: &Schema, value: &Value) -> usize {
    let inside = |schema: Option<&Schema>, value: &Value| match schema {
        Some(schema) if value.is_null() && !schema.nullable => schema.default_values,
        Some(schema) => values_in(schema, value),
        None => 1,
    };
    match value {
        Value::Object(object) => {
            let missing = schema.properties.iter().filter(|(name, _)| !object.contains_key(*name));
            let filled = missing.map(|(_, property)| property.default_values);
            let written = object.iter().map(|(name, value)| inside(schema.property(name), value));
            filled.chain(written).fold(1, usize::saturating_add)
        }
        Value::Array(list) => {
            let written = list.iter().map(|element| inside(schema.items(), element));
            written.fold(1, usize::saturating_add)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
