//! JSON as `google.protobuf.Struct` and back.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct};
use serde_json::{Map, Number, Value};

/// Integers up to this are exact as doubles.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A JSON object as a Struct. Integers beyond 2^53 lose their last digits: the protocol has no others.
pub(crate) fn to_struct(fields: &Map<String, Value>) -> Struct {
    Struct { fields: fields.iter().map(|(name, value)| (name.clone(), to_value(value))).collect() }
}

fn to_value(value: &Value) -> prost_types::Value {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(it) => Kind::BoolValue(*it),
        Value::Number(it) => Kind::NumberValue(it.as_f64().unwrap_or_default()),
        Value::String(it) => Kind::StringValue(it.clone()),
        Value::Array(items) => Kind::ListValue(ListValue { values: items.iter().map(to_value).collect() }),
        Value::Object(fields) => Kind::StructValue(to_struct(fields)),
    };
    prost_types::Value { kind: Some(kind) }
}

/// A Struct as a JSON object; whole numbers become integers again. What is no JSON becomes null.
pub(crate) fn from_struct(from: Struct) -> Map<String, Value> {
    from.fields.into_iter().map(|(name, value)| (name, from_value(value))).collect()
}

fn from_value(value: prost_types::Value) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(it)) => Value::Bool(it),
        Some(Kind::NumberValue(it)) => number(it),
        Some(Kind::StringValue(it)) => Value::String(it),
        Some(Kind::ListValue(list)) => Value::Array(list.values.into_iter().map(from_value).collect()),
        Some(Kind::StructValue(fields)) => Value::Object(from_struct(fields)),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() <= EXACT_MAX {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_survives_but_for_the_last_digits_of_large_integers() {
        let whole = json!({"a": [1, 2.5, "x", null, {"b": true}], "large": 9_007_199_254_740_993_i64});
        let back = from_struct(to_struct(whole.as_object().unwrap()));
        assert_eq!(back["a"], whole["a"]);
        assert_eq!(back["large"], json!(9_007_199_254_740_992_i64));
    }

    #[test]
    fn what_is_no_json_becomes_null() {
        let odd = prost_types::Value { kind: Some(Kind::NumberValue(f64::NAN)) };
        assert_eq!(from_value(odd), Value::Null);
        assert_eq!(from_value(prost_types::Value { kind: None }), Value::Null);
    }
}
