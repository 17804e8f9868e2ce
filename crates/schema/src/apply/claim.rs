//! What a manager claims by applying an object, and whether the object can be applied at all.

use std::collections::BTreeSet;

use concert_model::field::{FieldError, FieldPath, Rule};
use serde_json::{Map, Value};

use super::fields::Fields;
use super::node::{Node, Shape};
use crate::structural::path::Path;
use crate::structural::{ERRORS_MAX, ListType, Schema, Type};

/// The places that `value` claims.
///
/// A named field that holds others is claimed by claiming those; one that is null or empty holds none
/// and is claimed itself. (An empty list too, though Kubernetes leaves it out: applying it again would
/// otherwise take turns between an empty list and none.)
pub(super) fn claimed(node: Node<'_>, value: &Value) -> Fields {
    let Shape::Inner(_, children) = node.shape(value) else { return Fields::leaf() };
    let mut fields = Fields::default();
    for child in children {
        let mut below = claimed(child.node, child.value);
        below.is_owned |= !child.is_named || is_hollow(child.value);
        fields.put(child.step, below);
    }
    fields
}

fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// What keeps `value` from being divided as the schema says.
pub(super) fn misfits(node: Node<'_>, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(node, value, &Path::Root(&FieldPath::root()), &mut errors);
    errors.truncate(ERRORS_MAX);
    errors
}

fn check(node: Node<'_>, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if errors.len() >= ERRORS_MAX {
        return;
    }
    let kind = node.schema.and_then(Schema::kind);
    match (kind, value) {
        (_, Value::Null) => {}
        (Some(Type::Object) | None, Value::Object(fields)) => check_fields(node, fields, path, errors),
        (Some(Type::Array), Value::Array(list)) => check_elements(node, list, path, errors),
        (Some(kind @ (Type::Object | Type::Array)), _) | (Some(kind), Value::Object(_) | Value::Array(_)) => {
            let detail = format!("must be of type {}", kind.name());
            errors.push(FieldError::new(path.field(), Rule::Type, value, detail));
        }
        // Whether a scalar is the right one is for validation to say.
        _ => {}
    }
}

fn check_fields(node: Node<'_>, fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (name, value) in fields {
        let (child, is_named) = node.field(name);
        let path = path.child(name);
        if !is_named && child.schema.is_none() && !node.allows_any_field() {
            errors.push(FieldError::forbidden(path.field(), "field not declared in schema"));
        } else {
            check(child, value, &path, errors);
        }
    }
}

fn check_elements(node: Node<'_>, list: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let list_type = node.schema.map(Schema::list_type).unwrap_or_default();
    let mut seen = BTreeSet::new();
    for (index, element) in list.iter().enumerate() {
        let path = path.index(index);
        check(node.element(), element, &path, errors);
        match node.step_to(element) {
            _ if list_type == ListType::Atomic => {}
            None => {
                let keys = node.schema.map(Schema::list_map_keys).unwrap_or_default().join(", ");
                let detail = format!("must have the keys of the list: {keys}");
                errors.push(FieldError::required(path.field(), detail));
            }
            Some(step) if seen.contains(&step) => {
                errors.push(FieldError::new(path.field(), Rule::Duplicate, element, ""));
            }
            Some(step) => {
                seen.insert(step);
            }
        }
    }
}
