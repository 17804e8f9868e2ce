//! Reading `spec.forProvider`, with refusals that name field and rule.

use concert_model::Object;
use concert_provider::{Class, Error};
use serde_json::Value;

use crate::Result;

/// Where the fields are.
pub(crate) const AT: &str = "spec.forProvider";

/// A refusal that stands until the object changes.
pub(crate) fn refuse(field: &str, rule: &str) -> Error {
    Error::new(Class::Terminal, format!("{AT}.{field}: {rule}"))
}

/// One field, null if it is not there.
pub(crate) fn field<'o>(object: &'o Object, name: &str) -> &'o Value {
    object.spec().get("forProvider").and_then(|it| it.get(name)).unwrap_or(&Value::Null)
}

/// A whole number within bounds; none if it is left out.
pub(crate) fn whole(object: &Object, name: &str, from: i64, to: i64) -> Result<Option<i64>> {
    let value = field(object, name);
    if value.is_null() {
        return Ok(None);
    }
    // The older protocol has only doubles.
    let doubled = value.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < 1e15).map(|it| it as i64);
    match value.as_i64().or(doubled).filter(|it| (from..=to).contains(it)) {
        Some(number) => Ok(Some(number)),
        None => Err(refuse(name, &format!("must be a whole number from {from} to {to}"))),
    }
}

/// A text; none if it is left out.
pub(crate) fn text<'o>(object: &'o Object, name: &str) -> Result<Option<&'o str>> {
    match field(object, name) {
        Value::Null => Ok(None),
        Value::String(text) if !text.is_empty() => Ok(Some(text)),
        _ => Err(refuse(name, "must be a text that is not empty")),
    }
}

/// One of some words, the first if it is left out.
pub(crate) fn choice(object: &Object, name: &str, words: &[&'static str]) -> Result<&'static str> {
    let Some(text) = text(object, name)? else { return Ok(words[0]) };
    let known = words.iter().find(|word| **word == text);
    known.copied().ok_or_else(|| refuse(name, &format!("must be one of {}", words.join(", "))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(fields: Value) -> Object {
        let whole = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"},
            "spec": {"forProvider": fields}});
        Object::from_value(whole).unwrap()
    }

    #[test]
    fn refusals_name_field_and_rule() {
        let object = object(json!({"size": 1.5, "name": "", "mode": "c"}));
        let error = whole(&object, "size", 1, 9).unwrap_err();
        assert_eq!(error.message, "spec.forProvider.size: must be a whole number from 1 to 9");
        let error = text(&object, "name").unwrap_err();
        assert_eq!(error.message, "spec.forProvider.name: must be a text that is not empty");
        let error = choice(&object, "mode", &["a", "b"]).unwrap_err();
        assert_eq!(error.message, "spec.forProvider.mode: must be one of a, b");
        assert_eq!(error.class, Class::Terminal);
    }

    #[test]
    fn what_is_left_out_is_not_there_and_doubles_are_numbers() {
        let object = object(json!({"size": 3.0}));
        assert_eq!(whole(&object, "size", 1, 9).unwrap(), Some(3));
        assert_eq!(whole(&object, "other", 1, 9).unwrap(), None);
        assert_eq!(text(&object, "other").unwrap(), None);
        assert_eq!(choice(&object, "other", &["a", "b"]).unwrap(), "a");
    }
}
