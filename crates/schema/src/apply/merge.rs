//! Laying an applied object over the live one, and taking out what nobody wants any more.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::fields::Fields;
use super::node::{Child, Division, Node, Shape};

/// `applied` over `live`: what only one of them has is kept, and where both have something `applied` wins.
pub(super) fn merge(node: Node<'_>, live: &Value, applied: &Value) -> Value {
    match (node.shape(live), node.shape(applied)) {
        (Shape::Inner(Division::Fields, _), Shape::Inner(Division::Fields, _)) => {
            let (Value::Object(live), Value::Object(applied)) = (live, applied) else {
                return applied.clone();
            };
            Value::Object(merge_fields(node, live, applied))
        }
        (Shape::Inner(Division::Elements, live), Shape::Inner(Division::Elements, applied)) => {
            merge_elements(node, &live, &applied)
        }
        // What others have in it stays; and so does what is empty, or the next apply would not be a repetition.
        (Shape::Inner(..), Shape::Null) => live.clone(),
        _ => applied.clone(),
    }
}

fn merge_fields(
    node: Node<'_>,
    live: &Map<String, Value>,
    applied: &Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = live.clone();
    for (name, value) in applied {
        let value = match live.get(name) {
            Some(live) => merge(node.field(name).0, live, value),
            None => value.clone(),
        };
        merged.insert(name.clone(), value);
    }
    merged
}

/// The applied elements in their order. One that only the live list has follows the shared one that it
/// follows there.
fn merge_elements(node: Node<'_>, live: &[Child<'_, '_>], applied: &[Child<'_, '_>]) -> Value {
    let wanted: BTreeSet<&str> = applied.iter().map(|child| child.step.as_str()).collect();
    let mut shared: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    let mut others: Vec<Vec<&Value>> = vec![Vec::new()];
    for child in live {
        if !wanted.contains(child.step.as_str()) {
            others.last_mut().into_iter().for_each(|last| last.push(child.value));
            continue;
        }
        let found = shared.entry(&child.step).or_default();
        found.push(child.value);
        if found.len() == 1 {
            others.push(Vec::new());
        }
    }
    let mut others = others.into_iter();
    let mut merged: Vec<Value> = others.next().unwrap_or_default().into_iter().cloned().collect();
    for child in applied {
        let found = shared.get(child.step.as_str());
        merged.push(match found.map(Vec::as_slice) {
            Some([one]) => merge(node.element(), one, child.value),
            _ => child.value.clone(),
        });
        if found.is_some() {
            merged.extend(others.next().unwrap_or_default().into_iter().cloned());
        }
    }
    Value::Array(merged)
}

/// `fields`, and every named field that one of them is in. A field exists as long as somebody owns
/// anything in it; an element or the entry of a map, as long as somebody owns it itself.
pub(super) fn with_named(node: Node<'_>, fields: &Fields) -> Fields {
    let mut all = Fields::default();
    all.is_owned = fields.is_owned;
    for (step, below) in fields.below() {
        let (child, is_named) = node.step(step);
        let mut below = with_named(child, below);
        below.is_owned |= is_named;
        all.put(step, below);
    }
    all
}

/// Takes the places `gone` out of `value`, each with all that is in it.
pub(super) fn remove(node: Node<'_>, value: &mut Value, gone: &Fields) {
    if gone.is_empty() || !matches!(node.shape(value), Shape::Inner(..)) {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (step, below) in gone.below() {
                let Some(name) = step.strip_prefix("f:") else { continue };
                if below.is_owned {
                    fields.remove(name);
                } else if let Some(value) = fields.get_mut(name) {
                    remove(node.field(name).0, value, below);
                }
            }
        }
        Value::Array(list) => {
            list.retain_mut(|element| match node.step_to(element).and_then(|step| gone.get(&step)) {
                Some(below) if below.is_owned => false,
                Some(below) => {
                    remove(node.element(), element, below);
                    true
                }
                None => true,
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
