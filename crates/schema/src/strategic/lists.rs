//! Lists that merge, and the directives about them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::table::{Merging, Place};
use super::{Directive, is_directive, malformed, merge_objects};
use crate::strategic::PatchError;

/// `target` and what of `patch` is not in it.
pub(super) fn union(target: &[Value], patch: &[Value]) -> Vec<Value> {
    let mut seen: BTreeSet<String> = target.iter().map(Value::to_string).collect();
    let added = patch.iter().filter(|value| seen.insert(value.to_string())).cloned().collect::<Vec<_>>();
    target.iter().cloned().chain(added).collect()
}

/// Merges the elements that have the same `key`, in the order of `target`; new ones follow.
pub(super) fn merge_by(
    key: &str,
    target: &[Value],
    patch: &[Value],
    place: &Place<'_>,
) -> Result<Vec<Value>, PatchError> {
    let is_replacing = patch.iter().any(is_bare_replace);
    let target = if is_replacing { &[] } else { target };
    let mut merged: Vec<Option<Value>> = target.iter().cloned().map(Some).collect();
    let mut by_key: BTreeMap<String, usize> = BTreeMap::new();
    for (index, element) in target.iter().enumerate() {
        if let Some(value) = element.get(key) {
            by_key.entry(value.to_string()).or_insert(index);
        }
    }
    for element in patch.iter().filter(|element| !is_bare_replace(element)) {
        let Value::Object(fields) = element else {
            return Err(malformed(place.path(), element, "must be a list of objects"));
        };
        let Some(value) = fields.get(key) else {
            return Err(malformed(place.path(), element, &format!("every element must have {key}")));
        };
        let found = by_key.get(&value.to_string()).copied();
        let before = found.and_then(|index| merged[index].as_ref()).and_then(Value::as_object).cloned();
        let after = match Directive::of(fields)? {
            Directive::Delete => None,
            Directive::Merge | Directive::Replace => {
                Some(Value::Object(merge_objects(&before.unwrap_or_default(), fields, place)?))
            }
        };
        match found {
            Some(index) => merged[index] = after,
            None => {
                by_key.insert(value.to_string(), merged.len());
                merged.push(after);
            }
        }
    }
    Ok(merged.into_iter().flatten().collect())
}

/// `{"$patch": "replace"}` as an element stands for the whole list.
fn is_bare_replace(element: &Value) -> bool {
    let Value::Object(fields) = element else { return false };
    fields.get(super::PATCH).is_some_and(|name| name == "replace")
        && fields.keys().all(|name| is_directive(name))
}

/// `$deleteFromPrimitiveList/…`: takes values out of the list `name`.
pub(super) fn delete_from(
    fields: &mut Map<String, Value>,
    name: &str,
    directive: &Value,
) -> Result<(), PatchError> {
    let Value::Array(gone) = directive else {
        return Err(malformed(&format!("{}{name}", super::DELETE_PREFIX), directive, "must be a list"));
    };
    let gone: BTreeSet<String> = gone.iter().map(Value::to_string).collect();
    if let Some(Value::Array(list)) = fields.get_mut(name) {
        list.retain(|value| !gone.contains(&value.to_string()));
    }
    Ok(())
}

/// `$setElementOrder/…`: puts the list `name` in the order that the client sees. An element that the
/// client does not know keeps its place among those that were there with it.
pub(super) fn reorder(
    fields: &mut Map<String, Value>,
    before: Option<&Value>,
    name: &str,
    directive: &Value,
    merging: Merging,
) -> Result<(), PatchError> {
    let Value::Array(order) = directive else {
        return Err(malformed(&format!("{}{name}", super::ORDER_PREFIX), directive, "must be a list"));
    };
    let identity = |value: &Value| match merging {
        Merging::Key(key) => value.get(key).unwrap_or(value).to_string(),
        Merging::Set | Merging::Replace => value.to_string(),
    };
    let positions = |list: &[Value]| -> BTreeMap<String, usize> {
        list.iter().enumerate().map(|(index, value)| (identity(value), index)).collect()
    };
    if merging == Merging::Replace {
        return Ok(());
    }
    let wanted = positions(order);
    let was = positions(before.and_then(Value::as_array).map_or(&[][..], Vec::as_slice));
    if let Some(Value::Array(list)) = fields.get_mut(name) {
        let (mut known, others): (Vec<Value>, Vec<Value>) =
            std::mem::take(list).into_iter().partition(|value| wanted.contains_key(&identity(value)));
        known.sort_by_key(|value| wanted.get(&identity(value)).copied());
        let place = |value: &Value| was.get(&identity(value)).copied();
        *list = interleaved(known, others, place);
    }
    Ok(())
}

/// `known` in its order, each of `others` before the first that it was in front of.
fn interleaved(known: Vec<Value>, others: Vec<Value>, place: impl Fn(&Value) -> Option<usize>) -> Vec<Value> {
    let mut others = others.into_iter().peekable();
    let mut list = Vec::new();
    for value in known {
        if let Some(at) = place(&value) {
            while let Some(other) = others.next_if(|other| place(other).is_some_and(|place| place < at)) {
                list.push(other);
            }
        }
        list.push(value);
    }
    list.extend(others);
    list
}
