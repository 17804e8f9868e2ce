//! The fields that objects of a kind can be selected by, as its definition lists them.

use std::collections::BTreeSet;

use concert_model::{FieldError, FieldPath, Rule};
use concert_schema::Schema;
use concert_schema::structural::Type;
use serde_json::Value;

/// Most fields of one version: Kubernetes' bound.
const FIELDS_MAX: usize = 8;

/// All that is wrong with the `selectableFields` of a version with this schema.
pub(super) fn validate(path: &FieldPath, list: &Value, schema: &Schema) -> Vec<FieldError> {
    let (mut errors, mut seen) = (Vec::new(), BTreeSet::new());
    for (i, field) in list.as_array().into_iter().flatten().enumerate() {
        let (path, value) = (path.index(i).child("jsonPath"), &field["jsonPath"]);
        let text = value.as_str().unwrap_or_default();
        if text.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else if let Err(detail) = check(text, schema) {
            errors.push(FieldError::invalid_text(path, text, detail));
        } else if !seen.insert(text) {
            errors.push(FieldError::new(path, Rule::Duplicate, value, ""));
        }
    }
    if seen.len() > FIELDS_MAX {
        let detail = format!("must have at most {FIELDS_MAX} items");
        errors.push(FieldError::new(path.clone(), Rule::TooMany, &Value::from(seen.len()), detail));
    }
    errors
}

/// The path must lead to a field that has one text for a selector to be compared with.
fn check(path: &str, schema: &Schema) -> Result<(), &'static str> {
    let Some(steps) = path.strip_prefix('.') else { return Err("must start with '.'") };
    let is_inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let is_name = |step: &str| !step.is_empty() && step.bytes().all(is_inside);
    if !steps.split('.').all(is_name) {
        return Err("must be names of fields, each after a '.'");
    }
    if steps.split('.').next() == Some("metadata") {
        return Err("must not point to fields in metadata");
    }
    let found = steps.split('.').try_fold(schema, |schema, step| schema.property(step));
    match found.map(Schema::kind) {
        None => Err("does not refer to a field of the schema"),
        Some(Some(Type::String | Type::Integer | Type::Boolean)) => Ok(()),
        Some(_) => Err("must point to a field of type string, boolean or integer"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(list: &Value) -> Vec<String> {
        let spec = json!({"type": "object", "properties": {
            "colour": {"type": "string"}, "size": {"type": "integer"}, "is-big": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "string"}}, "weight": {"type": "number"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let schema = Schema::compile(&schema).unwrap();
        validate(&FieldPath::new("f"), list, &schema).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn fields_with_one_text_can_be_selected_by() {
        for path in [".spec.colour", ".spec.size", ".spec.is-big"] {
            assert!(errors(&json!([{"jsonPath": path}])).is_empty(), "{path}");
        }
        assert!(errors(&Value::Null).is_empty());
    }

    #[test]
    fn paths_that_lead_nowhere_are_refused() {
        for path in [
            "spec.colour",
            ".spec.color",
            ".spec",
            ".spec.list",
            ".spec.list[0]",
            ".spec.weight",
            ".spec.free",
            ".spec.free.x",
            ".spec['colour']",
            ".spec..colour",
            ".metadata.name",
            ".",
        ] {
            let errors = errors(&json!([{"jsonPath": path}]));
            assert!(errors.len() == 1 && errors[0].starts_with("f[0].jsonPath: Invalid value"), "{errors:?}");
        }
        assert_eq!(errors(&json!([{}])), ["f[0].jsonPath: Required value"]);
        let twice = errors(&json!([{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.size"}]));
        assert!(twice.len() == 1 && twice[0].starts_with("f[1].jsonPath: Duplicate value"), "{twice:?}");
    }
}
