//! The rules every object's `metadata` keeps, whatever its kind.

use serde_json::Value;

use crate::field::{FieldError, FieldPath, Rule};
use crate::name::{self, SyntaxError};
use crate::object::Object;
use crate::owner::OwnerReference;

/// Most bytes in all annotations of one object together: Kubernetes' bound.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// How the names of a kind are spelt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Lower case, dots allowed: most kinds.
    Subdomain,
    /// Lower case, no dots, at most 63 bytes: namespaces.
    Label,
    /// Anything that fits into a path segment: roles and bindings, whose names hold colons.
    PathSegment,
}

impl NameRule {
    /// Checks one name.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn check(self, text: &str) -> Result<(), SyntaxError> {
        match self {
            NameRule::Subdomain => name::check_subdomain(text),
            NameRule::Label => name::check_label(text),
            NameRule::PathSegment if text.is_empty() || matches!(text, "." | "..") => {
                Err(SyntaxError("must not be empty, '.' or '..'"))
            }
            NameRule::PathSegment if text.contains(['/', '%']) || text.len() > name::SUBDOMAIN_BYTES_MAX => {
                Err(SyntaxError("must not contain '/' or '%' and be no more than 253 bytes"))
            }
            NameRule::PathSegment => Ok(()),
        }
    }
}

/// All that is wrong with the metadata of `object`.
pub fn validate(object: &Object, rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = FieldPath::new("metadata");
    check_types(object, &path, &mut errors);
    if !errors.is_empty() {
        // The typed accessors below would read malformed fields as absent.
        return errors;
    }
    if object.name().is_empty() {
        errors.push(FieldError::required(path.child("name"), "name or generateName is required"));
    } else if let Err(e) = rule.check(object.name()) {
        errors.push(FieldError::invalid_text(path.child("name"), object.name(), e.to_string()));
    }
    for (key, value) in texts(object, "labels") {
        if let Err(e) = name::check_qualified(key) {
            errors.push(FieldError::invalid_text(path.child("labels"), key, e.to_string()));
        }
        if let Err(e) = name::check_label_value(value) {
            errors.push(FieldError::invalid_text(path.child("labels"), value, e.to_string()));
        }
    }
    check_annotations(object, &path, &mut errors);
    for (i, finalizer) in object.finalizers().iter().enumerate() {
        if let Err(e) = name::check_qualified(finalizer) {
            let field = path.child("finalizers").index(i);
            errors.push(FieldError::invalid_text(field, finalizer, e.to_string()));
        }
    }
    check_owners(&object.owners(), &path.child("ownerReferences"), &mut errors);
    errors
}

/// The entries of a map of strings in the metadata, whose types were checked before.
fn texts<'a>(object: &'a Object, field: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
    let map = object.metadata(field).as_object();
    map.into_iter().flatten().map(|(k, v)| (k, v.as_str().unwrap_or_default()))
}

fn check_annotations(object: &Object, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (key, _) in texts(object, "annotations") {
        // Keys of annotations may be in upper case, unlike anything else with a domain.
        if let Err(e) = name::check_qualified(&key.to_ascii_lowercase()) {
            errors.push(FieldError::invalid_text(path.child("annotations"), key, e.to_string()));
        }
    }
    let size: usize = texts(object, "annotations").map(|(k, v)| k.len() + v.len()).sum();
    if size > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long(path.child("annotations"), ANNOTATIONS_BYTES_MAX));
    }
}

fn check_owners(owners: &[OwnerReference], path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (i, owner) in owners.iter().enumerate() {
        let parts = [
            ("apiVersion", &owner.api_version),
            ("kind", &owner.kind),
            ("name", &owner.name),
            ("uid", &owner.uid.0.to_string()),
        ];
        for (part, text) in parts {
            if text.is_empty() {
                errors.push(FieldError::required(path.index(i).child(part), "must not be empty"));
            }
        }
    }
    let mut controllers = owners.iter().filter(|o| o.is_controller());
    if let (Some(first), Some(second)) = (controllers.next(), controllers.next()) {
        let detail = format!("only one owner can be the controller, {} and {} are", first.name, second.name);
        errors.push(FieldError::invalid(path.clone(), &Value::Array(Vec::new()), detail));
    }
}

/// Every known field has its type. Unknown ones are pruned elsewhere.
fn check_types(object: &Object, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let texts = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "selfLink",
        "creationTimestamp",
        "deletionTimestamp",
    ];
    let is_text_map = |v: &Value| v.as_object().is_some_and(|m| m.values().all(Value::is_string));
    let is_text_list = |v: &Value| v.as_array().is_some_and(|l| l.iter().all(Value::is_string));
    let is_owner_list = |v: &Value| {
        v.as_array()
            .is_some_and(|l| l.iter().all(|o| serde_json::from_value::<OwnerReference>(o.clone()).is_ok()))
    };
    let mut expect = |field: &str, type_name: &str, is_right: &dyn Fn(&Value) -> bool| {
        let value = object.metadata(field);
        if !value.is_null() && !is_right(value) {
            let detail = format!("must be {type_name}");
            errors.push(FieldError::new(path.child(field), Rule::Type, value, detail));
        }
    };
    for field in texts {
        expect(field, "a string", &Value::is_string);
    }
    for field in ["generation", "deletionGracePeriodSeconds"] {
        expect(field, "an integer", &|v| v.is_i64() || v.is_u64());
    }
    for field in ["labels", "annotations"] {
        expect(field, "a map of strings", &is_text_map);
    }
    expect("finalizers", "a list of strings", &is_text_list);
    expect("managedFields", "a list", &Value::is_array);
    expect(
        "ownerReferences",
        "a list of owner references with apiVersion, kind, name and uid",
        &is_owner_list,
    );
}

/// Fields of `metadata` that exist; all others are pruned, as Kubernetes does.
pub const KNOWN_FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors_of(metadata: Value) -> Vec<String> {
        let object = Object::from_value(json!({"apiVersion": "v1", "kind": "A", "metadata": metadata}));
        validate(&object.unwrap(), NameRule::Subdomain).iter().map(|e| e.field.to_string()).collect()
    }

    #[test]
    fn each_rule_names_its_field() {
        let owner = json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true});
        for (metadata, field) in [
            (json!({}), "metadata.name"),
            (json!({"name": "A"}), "metadata.name"),
            (json!({"name": 1}), "metadata.name"),
            (json!({"name": "a", "labels": {"a b": "c"}}), "metadata.labels"),
            (json!({"name": "a", "labels": {"a": "b c"}}), "metadata.labels"),
            (json!({"name": "a", "labels": {"a": 1}}), "metadata.labels"),
            (json!({"name": "a", "annotations": {"a b": ""}}), "metadata.annotations"),
            (json!({"name": "a", "annotations": {"a": "x".repeat(300_000)}}), "metadata.annotations"),
            (json!({"name": "a", "finalizers": ["ok.dev/x", "not ok"]}), "metadata.finalizers[1]"),
            (json!({"name": "a", "finalizers": "x"}), "metadata.finalizers"),
            (json!({"name": "a", "generation": "1"}), "metadata.generation"),
            (json!({"name": "a", "ownerReferences": [{"name": "b"}]}), "metadata.ownerReferences"),
            (json!({"name": "a", "ownerReferences": [owner, owner]}), "metadata.ownerReferences"),
        ] {
            assert_eq!(errors_of(metadata.clone()), [field], "{metadata}");
        }
    }

    #[test]
    fn good_metadata_has_no_errors() {
        let metadata = json!({"name": "a.b", "labels": {"app.dev/x": ""}, "annotations": {"A.dev/X": "any text"},
            "finalizers": ["orphan", "a.dev/b"]});
        assert_eq!(errors_of(metadata), Vec::<String>::new());
    }
}
