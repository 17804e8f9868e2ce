//! CEL rules of a kind, and when they are asked.
//!
//! Most kinds have none, and their objects are written without opening what is stored.

use concert_model::{Encoded, FieldError, Object};
use serde_json::Value;

use super::kinds::Version;

/// True if a schema has rules anywhere.
pub(super) fn are_in(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => {
            keywords.get("x-kubernetes-validations").is_some_and(|rules| !rules.is_null())
                || keywords.values().any(are_in)
        }
        Value::Array(items) => items.iter().any(are_in),
        _ => false,
    }
}

/// The rules that an object breaks, as a new one or in the place of `old`.
pub(super) fn broken(version: &Version, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if version.has_rules { version.schema.check_rules(new, old) } else { Vec::new() }
}

/// The rules that a write of `status` breaks. What the rest of the object breaks already does not count:
/// its author is not the one who writes status, and could not mend it that way.
pub(super) fn broken_by_status(version: &Version, current: &Encoded, status: &Value) -> Vec<FieldError> {
    if !version.has_rules {
        return Vec::new();
    }
    let old = current.decode();
    let mut new: Object = old.clone();
    new.set("status", status.clone());
    let (old, new) = (old.into_value(), new.into_value());
    let mut errors = version.schema.check_rules(&new, Some(&old));
    if !errors.is_empty() {
        // Alone, what it breaks by itself; as its own successor, what compares with before.
        let mut before = version.schema.check_rules(&old, None);
        before.extend(version.schema.check_rules(&old, Some(&old)));
        let is_about_status = |error: &FieldError| error.field.as_str().starts_with("status");
        errors.retain(|error| is_about_status(error) || !before.contains(error));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_found_at_any_depth() {
        let rules = json!([{"rule": "self > 0"}]);
        let leaf = json!({"type": "integer", "x-kubernetes-validations": rules});
        assert!(are_in(&json!({"properties": {"spec": {"properties": {"n": leaf}}}})));
        assert!(are_in(&json!({"properties": {"spec": {"items": leaf}}})));
        assert!(are_in(&leaf));
        assert!(!are_in(&json!({"properties": {"spec": {"type": "object"}}})));
    }
}
