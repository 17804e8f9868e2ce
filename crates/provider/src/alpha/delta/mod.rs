//! What may be taken from the whole object that a v1alpha1 provider sends back, and the other way
//! round: the whole object that such a caller expects.
//!
//! A reply has been through somebody's types: fields they do not know are missing and numbers are
//! doubles. So nothing is ever removed because it is missing, and a number is only new if it differs
//! as a double.

use concert_model::Object;
use prost_types::Struct;
use serde_json::{Map, Value};

use super::{EXTERNAL_NAME, structs};
use crate::answer::Delta;
use crate::error::{Class, Error};
use crate::text;

/// The object as it is sent: without `managedFields`, which no provider needs and which is the largest
/// part of many objects.
pub(crate) fn sent(object: &Object) -> Object {
    let mut sent = object.clone();
    sent.set_metadata("managedFields", Value::Null);
    sent
}

/// What changed between the object that was sent and the one that came back.
///
/// # Errors
/// [`Class::Misbehaved`] if it is missing, empty or another object.
pub(crate) fn received(ours: &Object, reply: Option<Struct>, takes_spec: bool) -> Result<Delta, Error> {
    let theirs = structs::from_struct(reply.unwrap_or_default());
    if theirs.is_empty() {
        return Err(Error::new(Class::Misbehaved, "the provider returned no object"));
    }
    check_identity(ours, &theirs)?;
    let nothing = Map::new();
    let mut delta = Delta {
        status: merged_status(ours.status(), theirs.get("status")),
        annotations: theirs
            .get("metadata")
            .and_then(|metadata| metadata.get("annotations"))
            .and_then(Value::as_object)
            .unwrap_or(&nothing)
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_str()?)))
            .filter(|(name, value)| ours.annotation(name) != Some(value))
            .map(|(name, value)| (name.clone(), value.to_owned()))
            .collect(),
        ..Delta::default()
    };
    delta.external_name = delta.annotations.remove(EXTERNAL_NAME).filter(|name| !name.is_empty());
    if takes_spec && let Some(Value::Object(spec)) = theirs.get("spec") {
        let added = added(ours.spec().as_object().unwrap_or(&nothing), spec);
        delta.spec = Some(added).filter(|added| !added.is_empty());
    }
    Ok(delta)
}

/// The object with the delta in it, as a v1alpha1 caller expects it back.
pub(crate) fn applied(object: &Object, delta: &Delta) -> Object {
    let mut whole = object.clone();
    for (name, value) in &delta.annotations {
        whole.set_annotation(name, value);
    }
    if let Some(name) = &delta.external_name {
        whole.set_annotation(EXTERNAL_NAME, name);
    }
    if let Some(status) = &delta.status {
        let mut status = status.clone();
        if let Some(conditions) = status.get_mut("conditions") {
            *conditions = merged_conditions(object.status().get("conditions"), conditions);
        }
        whole.set("status", Value::Object(status));
    }
    if let Some(spec) = &delta.spec
        && let Value::Object(ours) = whole.get_mut("spec")
    {
        fill(ours, spec);
    }
    whole
}

fn check_identity(ours: &Object, theirs: &Map<String, Value>) -> Result<(), Error> {
    let text = |field: &str| theirs.get(field).and_then(Value::as_str).unwrap_or_default();
    let metadata = |field: &str| {
        theirs.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
    };
    let uid = ours.uid().map(|uid| uid.to_string()).unwrap_or_default();
    let pairs = [
        ("apiVersion", ours.api_version(), text("apiVersion")),
        ("kind", ours.kind(), text("kind")),
        ("metadata.name", ours.name(), metadata("name")),
        ("metadata.namespace", ours.namespace(), metadata("namespace")),
        ("metadata.uid", uid.as_str(), metadata("uid")),
    ];
    match pairs.into_iter().find(|(_, ours, theirs)| ours != theirs) {
        None => Ok(()),
        Some((field, ours, theirs)) => {
            let message =
                format!("the provider returned another object: {field} is {theirs:?} rather than {ours:?}");
            Err(Error::new(Class::Misbehaved, text::clean(&message)))
        }
    }
}

/// Our status with theirs laid over it; none if that changes nothing.
fn merged_status(ours: &Value, theirs: Option<&Value>) -> Option<Map<String, Value>> {
    let theirs = theirs?.as_object()?;
    let nothing = Map::new();
    let before = ours.as_object().unwrap_or(&nothing);
    let mut after = laid_over(before, theirs);
    if let Some(conditions) = theirs.get("conditions") {
        after.insert("conditions".to_owned(), merged_conditions(before.get("conditions"), conditions));
    }
    (after != *before).then_some(after)
}

fn laid_over(ours: &Map<String, Value>, theirs: &Map<String, Value>) -> Map<String, Value> {
    let mut result = ours.clone();
    for (name, value) in theirs.iter().filter(|(_, value)| !value.is_null()) {
        let merged = match (ours.get(name), value) {
            (Some(Value::Object(ours)), Value::Object(theirs)) => Value::Object(laid_over(ours, theirs)),
            (Some(ours), theirs) => with_our_numbers(ours, theirs),
            (None, theirs) => theirs.clone(),
        };
        result.insert(name.clone(), merged);
    }
    result
}

/// Theirs, but with our digits wherever a number is the same as a double.
fn with_our_numbers(ours: &Value, theirs: &Value) -> Value {
    match (ours, theirs) {
        (Value::Number(our), Value::Number(their)) if our.as_f64() == their.as_f64() => ours.clone(),
        (Value::Array(ours), Value::Array(theirs)) => {
            let pairs = theirs.iter().enumerate();
            pairs
                .map(|(i, their)| ours.get(i).map_or(their.clone(), |our| with_our_numbers(our, their)))
                .collect()
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            let pairs = theirs.iter().map(|(name, their)| {
                (name.clone(), ours.get(name).map_or(their.clone(), |our| with_our_numbers(our, their)))
            });
            Value::Object(pairs.collect())
        }
        _ => theirs.clone(),
    }
}

/// Conditions merge by type: theirs in the place of ours, new ones last.
fn merged_conditions(ours: Option<&Value>, theirs: &Value) -> Value {
    let Value::Array(theirs) = theirs else { return ours.unwrap_or(theirs).clone() };
    let mut all: Vec<Value> = ours.and_then(Value::as_array).cloned().unwrap_or_default();
    for condition in theirs {
        let kind = condition.get("type");
        match all.iter_mut().find(|it| kind.is_some() && it.get("type") == kind) {
            Some(place) => *place = with_our_numbers(place, condition),
            None => all.push(condition.clone()),
        }
    }
    Value::Array(all)
}

/// The fields of theirs that ours does not have at all.
fn added(ours: &Map<String, Value>, theirs: &Map<String, Value>) -> Map<String, Value> {
    let mut result = Map::new();
    for (name, value) in theirs.iter().filter(|(_, value)| !value.is_null()) {
        match (ours.get(name), value) {
            (None | Some(Value::Null), value) => drop(result.insert(name.clone(), value.clone())),
            (Some(Value::Object(ours)), Value::Object(theirs)) => {
                let inner = added(ours, theirs);
                if !inner.is_empty() {
                    result.insert(name.clone(), Value::Object(inner));
                }
            }
            _ => {}
        }
    }
    result
}

fn fill(ours: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (name, value) in from {
        match (ours.get_mut(name), value) {
            (None | Some(Value::Null), value) => drop(ours.insert(name.clone(), value.clone())),
            (Some(Value::Object(ours)), Value::Object(from)) => fill(ours, from),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
