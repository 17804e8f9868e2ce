//! What Secrets and ConfigMaps hold.

use concert_model::name::SUBDOMAIN_BYTES_MAX;
use concert_model::{FieldError, FieldPath, Object, Rule, base64};
use serde_json::Value;

/// Makes the content of a Secret fit to be stored; says what cannot be.
pub(super) fn secret(object: &mut Object) -> Vec<FieldError> {
    let mut errors = encode_string_data(object);
    check_keys(object, "data", &mut errors);
    check_base64(object, "data", &mut errors);
    errors
}

/// All that is wrong with the content of a ConfigMap.
pub(super) fn config_map(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_keys(object, "data", &mut errors);
    check_keys(object, "binaryData", &mut errors);
    check_base64(object, "binaryData", &mut errors);
    errors
}

/// What is marked immutable stays as it is.
pub(super) fn validate_change(old: &Object, new: &Object) -> Vec<FieldError> {
    if old.get("immutable") != &Value::Bool(true) {
        return Vec::new();
    }
    let is_changed = |field: &&&str| old.get(field) != new.get(field);
    let detail = "field is immutable when `immutable` is set";
    let error = |field: &&str| FieldError::forbidden(FieldPath::new(*field), detail);
    ["data", "binaryData", "immutable"].iter().filter(is_changed).map(error).collect()
}

/// Keys of data become file names: Kubernetes' rule.
fn check_keys(object: &Object, field: &str, errors: &mut Vec<FieldError>) {
    let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let is_key = |key: &str| {
        (1..=SUBDOMAIN_BYTES_MAX).contains(&key.len())
            && key.bytes().all(inside)
            && key != "."
            && !key.starts_with("..")
    };
    let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.', be no more than \
                  253 bytes and not start with '..'";
    for key in object.get(field).as_object().into_iter().flat_map(|entries| entries.keys()) {
        if !is_key(key) {
            errors.push(FieldError::invalid_text(FieldPath::new(field).key(key), key, detail));
        }
    }
}

/// `stringData` is written in clear and stored in `data` as base64; a write-only convenience.
fn encode_string_data(object: &mut Object) -> Vec<FieldError> {
    let given = object.get("stringData").clone();
    object.set("stringData", Value::Null);
    let given = match given {
        Value::Null => return Vec::new(),
        Value::Object(given) => given,
        // Never repeated: it may be the secret itself.
        _ => return vec![FieldError::forbidden(FieldPath::new("stringData"), "must be a map of strings")],
    };
    let mut errors = Vec::new();
    for (key, value) in given {
        match (value.as_str(), object.get_mut("data").as_object_mut()) {
            (Some(text), Some(data)) => drop(data.insert(key, base64::encode(text.as_bytes()).into())),
            _ => {
                errors.push(FieldError::required(FieldPath::new("stringData").key(&key), "must be a string"));
            }
        }
    }
    errors
}

/// Bytes must be base64. Not a matter of the schema, whose errors would repeat what may be a secret.
fn check_base64(object: &Object, field: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in object.get(field).as_object().into_iter().flatten() {
        if value.as_str().is_some_and(|text| base64::decode(text).is_none()) {
            let (field, detail) = (FieldPath::new(field).key(key), "must be base64".to_owned());
            errors.push(FieldError { field, rule: Rule::Invalid, value: None, detail });
        }
    }
}
