//! Making an object fit to be stored, or saying what is wrong with it.

use concert_model::{Body, FieldError, FieldPath, Head, Object, ObjectKey, Rule, encoded, metadata};
use serde_json::Value;

use super::builtin;
use super::definition;
use super::kinds::Served;
use crate::contract::Result;
use crate::error::Error;

/// Largest object, as JSON: etcd's default bound, so that what fits here fits into Kubernetes.
pub const OBJECT_BYTES_MAX: usize = 1_572_864;

/// Prunes, defaults and validates `object` as one of its kind.
pub(super) fn admit(served: &Served, object: &mut Object) -> Result<()> {
    let what = describe(object);
    let invalid = |errors| Error::Invalid { what: what.clone(), errors };
    encoded::check_size(object, OBJECT_BYTES_MAX).map_err(|e| invalid(vec![e]))?;
    let version = object.gvk().map_err(|e| invalid(vec![e]))?.version;
    let Some(schema) = served.schema(&version).filter(|_| served.kind.versions.contains(&version)) else {
        let served: Vec<String> = served.kind.versions.iter().map(|v| format!("{v:?}")).collect();
        let detail = format!("served versions: {}", served.join(", "));
        let value = Value::from(&*version);
        return Err(invalid(vec![FieldError::new(
            FieldPath::new("apiVersion"),
            Rule::NotSupported,
            &value,
            detail,
        )]));
    };
    let kind = &served.kind.group_kind;
    let mut errors = builtin::normalise(kind, object);
    prune_metadata(object);
    errors.extend(metadata::validate(object, served.kind.name_rule));
    let mut value = std::mem::replace(object, Object::new(&served.kind.gvk(), "", "")).into_value();
    schema.prune(&mut value);
    schema.default(&mut value);
    errors.extend(schema.validate(&value));
    *object = Object::from_value(value).map_err(|e| invalid(vec![e]))?;
    if definition::is_definition(kind) {
        definition::default(object);
        errors.extend(definition::validate(object));
    }
    // Defaults may have made it grow.
    errors.extend(encoded::check_size(object, OBJECT_BYTES_MAX).err());
    if errors.is_empty() { Ok(()) } else { Err(invalid(errors)) }
}

fn prune_metadata(object: &mut Object) {
    if let Value::Object(fields) = object.get_mut("metadata") {
        fields.retain(|field, value| !value.is_null() && metadata::KNOWN_FIELDS.contains(&field.as_str()));
        fields.remove("selfLink");
    }
}

/// What an error calls the object: it may not have a proper key yet.
pub(super) fn describe(object: &Object) -> String {
    let name = Some(object.name()).filter(|n| !n.is_empty()).unwrap_or("without a name");
    format!("{} {name}", object.kind())
}

/// Changes that no object of any kind may undergo.
pub(super) fn check_change(
    served: &Served,
    old: &Body,
    old_object: &Object,
    new: &Object,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if definition::is_definition(&served.kind.group_kind) {
        errors.extend(definition::validate_change(old_object, new));
    }
    if old.head.deleted_at.is_some() {
        let before = old_object.finalizers();
        let added: Vec<String> = new.finalizers().into_iter().filter(|f| !before.contains(f)).collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
            );
            errors.push(FieldError::forbidden(FieldPath::new("metadata.finalizers"), detail));
        }
    }
    if old_object.get("immutable") == &Value::Bool(true) && served.kind.group_kind.group.is_empty() {
        for field in ["data", "binaryData", "immutable"] {
            if old_object.get(field) != new.get(field) {
                let detail = "field is immutable when `immutable` is set";
                errors.push(FieldError::forbidden(FieldPath::new(field), detail));
            }
        }
    }
    errors
}

/// Writes an admitted object down.
pub(super) fn encode(served: &Served, key: &ObjectKey, head: Head, object: &Object) -> Body {
    let field = |path: &String| Some((path.clone(), encoded::selectable(object, path)?));
    let head = Head {
        version: served.kind.storage_version.clone(),
        labels: object.labels(),
        owners: object.owners(),
        fields: served.kind.selectable_fields.iter().filter_map(field).collect(),
        ..head
    };
    Body::encode(key.clone(), head, object)
}
