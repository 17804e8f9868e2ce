//! What an object wants, against what is.

use concert_provider::Change;
use serde_json::{Map, Value};

/// Fields of `spec.forProvider` that are for us and not for the cloud.
const OURS: &[&str] = &["networkIdRef", "networkIdSelector"];
const IMMUTABLE: &str = "region";
const SENSITIVE: &str = "password";

/// The properties that `spec.forProvider` asks for.
pub(super) fn wanted(spec: &Value) -> Map<String, Value> {
    let fields = spec.get("forProvider").and_then(Value::as_object);
    let is_theirs = |(field, value): &(&String, &Value)| !OURS.contains(&field.as_str()) && !value.is_null();
    fields.into_iter().flatten().filter(is_theirs).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// What is not as wanted. Properties that nobody asks for are left alone.
pub(super) fn differences(wanted: &Map<String, Value>, actual: &Map<String, Value>) -> Vec<Change> {
    let mut changes = Vec::new();
    for (field, want) in wanted {
        let before = changes.len();
        compare(&format!("spec.forProvider.{field}"), actual.get(field), Some(want), &mut changes);
        for change in &mut changes[before..] {
            // Changing what was never set is no reason to make the thing anew.
            change.replaces = field == IMMUTABLE && actual.contains_key(field);
            if field == SENSITIVE {
                *change = Change { from: None, to: None, is_sensitive: true, ..change.clone() };
            }
        }
    }
    changes
}

fn compare(path: &str, from: Option<&Value>, to: Option<&Value>, changes: &mut Vec<Change>) {
    if let (Some(Value::Object(from)), Some(Value::Object(to))) = (from, to) {
        for (field, to) in to {
            compare(&format!("{path}.{field}"), from.get(field), Some(to), changes);
        }
        for (field, from) in from.iter().filter(|(field, _)| !to.contains_key(*field)) {
            compare(&format!("{path}.{field}"), Some(from), None, changes);
        }
        return;
    }
    let is_same = match (from, to) {
        (Some(from), Some(to)) => is_same(from, to),
        (from, to) => from == to,
    };
    if !is_same {
        changes.push(Change {
            path: path.to_owned(),
            from: from.cloned(),
            to: to.cloned(),
            replaces: false,
            is_sensitive: false,
        });
    }
}

/// Equal as JSON, where `3` and `3.0` are the same number: one of the protocols has only doubles.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) if x.is_f64() || y.is_f64() => x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| is_same(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(field, x)| y.get(field).is_some_and(|y| is_same(x, y)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(wanted: Value, actual: Value) -> Vec<String> {
        let changes = differences(wanted.as_object().unwrap(), actual.as_object().unwrap());
        changes.into_iter().map(|change| change.path.replace("spec.forProvider.", "")).collect()
    }

    #[test]
    fn maps_are_compared_field_by_field() {
        let actual = json!({"tags": {"a": "1", "b": "2"}, "tier": "standard"});
        assert_eq!(paths(json!({"tags": {"a": "1", "c": "3"}}), actual), ["tags.c", "tags.b"]);
    }

    #[test]
    fn numbers_are_compared_by_value() {
        assert_eq!(paths(json!({"size": 3.0}), json!({"size": 3})), [""; 0]);
        assert_eq!(paths(json!({"size": i64::MAX}), json!({"size": i64::MAX - 1})), ["size"]);
        assert_eq!(paths(json!({"sizes": [1.0, 2]}), json!({"sizes": [1, 2]})), [""; 0]);
    }

    #[test]
    fn a_password_is_never_in_a_change() {
        let wanted = json!({"password": "new"});
        let actual = json!({"password": "old"});
        let changes = differences(wanted.as_object().unwrap(), actual.as_object().unwrap());
        assert!(changes[0].is_sensitive && changes[0].from.is_none() && changes[0].to.is_none());
    }

    #[test]
    fn only_a_region_that_moves_replaces() {
        let replaces = |actual: Value| {
            let wanted = json!({"region": "north"});
            differences(wanted.as_object().unwrap(), actual.as_object().unwrap())[0].replaces
        };
        assert!(replaces(json!({"region": "south"})));
        assert!(!replaces(json!({})));
    }

    #[test]
    fn references_are_not_sent_to_the_cloud() {
        let spec = json!({"forProvider": {"networkIdRef": {"name": "a"}, "networkId": "a", "size": null}});
        assert_eq!(Value::from(wanted(&spec)), json!({"networkId": "a"}));
    }
}
