//! A total order of JSON values, for telling equal ones apart from others.
//!
//! `1` and `1.0` are equal, as they are for users; the order of an object's fields does not matter.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::number::Num;

/// Compares two values; those of different types by their type.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => {
            Num::of(a).partial_cmp(&Num::of(b)).unwrap_or(Ordering::Equal)
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => compare_lists(a, b),
        (Value::Object(a), Value::Object(b)) => compare_objects(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// As [`compare`], for fields that may be missing; a missing one comes first.
pub(crate) fn compare_fields(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

fn compare_lists(a: &[Value], b: &[Value]) -> Ordering {
    let first = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
    first.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Compares sorted by name, whatever order the maps themselves keep.
fn compare_objects(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| {
        let (mut a, mut b) = (a.iter().collect::<Vec<_>>(), b.iter().collect::<Vec<_>>());
        a.sort_unstable_by_key(|(name, _)| *name);
        b.sort_unstable_by_key(|(name, _)| *name);
        let pairs = a.into_iter().zip(b);
        pairs
            .map(|((a_name, a), (b_name, b))| a_name.cmp(b_name).then_with(|| compare(a, b)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_equal_whatever_the_order_of_their_fields() {
        assert!(compare(&json!({ "a": 1, "b": [2] }), &json!({ "b": [2.0], "a": 1.0 })).is_eq());
        assert!(compare(&json!({ "a": 1 }), &json!({ "a": 2 })).is_lt());
        assert!(compare(&json!({ "a": 1 }), &json!({ "b": 1 })).is_ne());
        assert!(compare(&json!([1, 2]), &json!([1])).is_gt());
        assert!(compare(&json!("1"), &json!(1)).is_ne());
        assert!(compare(&json!(null), &json!(false)).is_ne());
    }
}
