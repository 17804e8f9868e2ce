//! Strategic merge patches for built-in kinds: merge patches that know which lists have keys.
//!
//! kubectl sends them for kinds that it has compiled in, such as the second `kubectl apply` of a Secret.
//! Which lists merge, and by what, is a small table; every other list is replaced. Besides values a
//! patch has directives: `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`.

mod lists;
mod table;
#[cfg(test)]
mod tests;

use concert_model::field::{FieldError, FieldPath};
use concert_model::key::GroupKind;
use serde_json::{Map, Value};

pub use concert_model::patch::PatchError;
use table::{Merging, Place};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";
const ORDER_PREFIX: &str = "$setElementOrder/";

/// The patched form of `target`, an object of the built-in `kind`.
///
/// # Errors
/// [`PatchError::Malformed`] when `patch` is no patch: an unknown directive, an element without its key.
pub fn merge(kind: &GroupKind, target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let (Value::Object(target), Value::Object(patch)) = (target, patch) else {
        return Err(malformed("patch", patch, "must be an object"));
    };
    merge_objects(target, patch, &Place::of(kind)).map(Value::Object)
}

/// What `$patch` says about the object it stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

impl Directive {
    fn of(patch: &Map<String, Value>) -> Result<Self, PatchError> {
        match patch.get(PATCH) {
            None => Ok(Directive::Merge),
            Some(Value::String(name)) if name == "merge" => Ok(Directive::Merge),
            Some(Value::String(name)) if name == "replace" => Ok(Directive::Replace),
            Some(Value::String(name)) if name == "delete" => Ok(Directive::Delete),
            Some(other) => Err(malformed(PATCH, other, "must be merge, replace or delete")),
        }
    }
}

fn merge_objects(
    target: &Map<String, Value>,
    patch: &Map<String, Value>,
    place: &Place<'_>,
) -> Result<Map<String, Value>, PatchError> {
    match Directive::of(patch)? {
        Directive::Merge => {}
        Directive::Replace => {
            let values = patch.iter().filter(|(name, _)| !is_directive(name));
            return Ok(values.map(|(name, value)| (name.clone(), value.clone())).collect());
        }
        Directive::Delete => return Ok(Map::new()),
    }
    let mut merged = retained(target, patch)?;
    for (name, value) in patch.iter().filter(|(name, _)| !is_directive(name)) {
        if value.is_null() {
            merged.remove(name);
            continue;
        }
        let place = place.child(name);
        let value = merge_values(target.get(name), value, &place)?;
        merged.insert(name.clone(), value);
    }
    for (name, directive) in patch {
        if let Some(list) = name.strip_prefix(DELETE_PREFIX) {
            lists::delete_from(&mut merged, list, directive)?;
        }
    }
    for (name, directive) in patch {
        if let Some(list) = name.strip_prefix(ORDER_PREFIX) {
            lists::reorder(&mut merged, target.get(list), list, directive, place.child(list).merging())?;
        }
    }
    Ok(merged)
}

/// A patch value over what is there. Over nothing its directives still mean something.
fn merge_values(target: Option<&Value>, patch: &Value, place: &Place<'_>) -> Result<Value, PatchError> {
    match patch {
        Value::Object(patch) => {
            let nothing = Map::new();
            let target = target.and_then(Value::as_object).unwrap_or(&nothing);
            merge_objects(target, patch, place).map(Value::Object)
        }
        Value::Array(patch) => {
            let target = target.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            match place.merging() {
                Merging::Replace => Ok(Value::Array(patch.clone())),
                Merging::Set => Ok(Value::Array(lists::union(target, patch))),
                Merging::Key(key) => lists::merge_by(key, target, patch, place).map(Value::Array),
            }
        }
        scalar => Ok(scalar.clone()),
    }
}

/// `target` with only the fields that `$retainKeys` names, if it is there.
fn retained(
    target: &Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    let keys = match patch.get(RETAIN_KEYS) {
        None => return Ok(target.clone()),
        Some(Value::Array(keys)) => keys,
        Some(other) => return Err(malformed(RETAIN_KEYS, other, "must be a list of names")),
    };
    let is_retained = |name: &str| keys.iter().any(|key| key == name);
    if let Some((name, value)) = patch.iter().find(|(name, _)| !is_directive(name) && !is_retained(name)) {
        return Err(malformed(name, value, "must be in $retainKeys"));
    }
    let kept = target.iter().filter(|(name, _)| is_retained(name));
    Ok(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn is_directive(name: &str) -> bool {
    name == PATCH || name == RETAIN_KEYS || name.starts_with(DELETE_PREFIX) || name.starts_with(ORDER_PREFIX)
}

fn malformed(field: &str, value: &Value, why: &str) -> PatchError {
    PatchError::Malformed(FieldError::invalid(FieldPath::new(field), value, why))
}
