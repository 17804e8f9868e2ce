//! Making an object fit to be stored, or saying what is wrong with it.

use std::collections::BTreeMap;

use concert_model::{Body, FieldError, FieldPath, Head, Object, ObjectKey, Rule, encoded, metadata, object};
use concert_schema::Schema;
use serde_json::Value;

use super::builtin;
use super::definition;
use super::kinds::Served;
use crate::contract::Result;
use crate::error::Error;

/// Largest object, as JSON: etcd's default bound, so that what fits here fits into Kubernetes.
pub const OBJECT_BYTES_MAX: usize = 1_572_864;

/// Prunes, defaults and validates `object` as one of its kind. `stored` is what it replaces.
pub(super) fn admit(served: &Served, object: &mut Object, stored: Option<&Head>) -> Result<()> {
    object.check_depth().map_err(|e| Error::invalid(describe(object), e))?;
    let schema = schema_of(served, object, stored)?;
    let kind = &served.kind.group_kind;
    let mut errors = builtin::normalise(kind, object);
    prune_metadata(object);
    errors.extend(metadata::validate(object, served.kind.name_rule));
    object.change(|whole| {
        schema.prune(whole);
        schema.default(whole);
        errors.extend(schema.validate(whole));
    });
    if definition::is_definition(kind) {
        definition::default(object);
        errors.extend(definition::validate(object));
    }
    if errors.is_empty() { Ok(()) } else { Err(Error::Invalid { what: describe(object), errors }) }
}

/// Prunes, defaults and validates a status that was sent with `object`.
pub(super) fn admit_status(
    served: &Served,
    object: &Object,
    stored: &Head,
    mut status: Value,
) -> Result<Value> {
    if object::is_deeper(&status, object::DEPTH_MAX - 1) {
        return Err(Error::invalid(describe(object), object::too_deep(FieldPath::new("status"))));
    }
    let schema = schema_of(served, object, Some(stored))?;
    let Some(schema) = schema.property("status") else {
        return Ok(if schema.preserves_unknown_fields() { status } else { Value::Null });
    };
    if status.is_null() {
        return Ok(status);
    }
    schema.prune(&mut status);
    schema.default(&mut status);
    let errors = schema.validate_at(&FieldPath::new("status"), &status);
    if errors.is_empty() { Ok(status) } else { Err(Error::Invalid { what: describe(object), errors }) }
}

/// The schema of the version that `object` is written in: one that is served, or the one that it was
/// read in, which may not be served any more.
fn schema_of<'a>(served: &'a Served, object: &Object, stored: Option<&Head>) -> Result<&'a Schema> {
    let invalid = |error| Error::invalid(describe(object), error);
    let version = object.gvk().map_err(invalid)?.version;
    let is_open =
        served.kind.versions.contains(&version) || stored.is_some_and(|head| head.version == version);
    let schema = served.schema(&version).filter(|_| is_open);
    schema.ok_or_else(|| {
        let versions: Vec<String> = served.kind.versions.iter().map(|v| format!("{v:?}")).collect();
        let detail = format!("served versions: {}", versions.join(", "));
        let value = Value::from(&*version);
        invalid(FieldError::new(FieldPath::new("apiVersion"), Rule::NotSupported, &value, detail))
    })
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

/// Writes an admitted object down; `head` is what is not to be read from it.
pub(super) fn encode(served: &Served, key: &ObjectKey, head: Head, object: &Object) -> Result<Body> {
    let field = |path: &String| Some((path.clone(), encoded::selectable(object, path)?));
    let head = Head {
        version: served.kind.storage_version.clone(),
        generation: object.generation(),
        labels: object.labels(),
        owners: object.owners(),
        fields: served.kind.selectable_fields.iter().filter_map(field).collect(),
        ..head
    };
    let body = Body::encode(key.clone(), head, object);
    check_size(&body)?;
    Ok(body)
}

pub(super) fn check_size(body: &Body) -> Result<()> {
    if body.payload().len() <= OBJECT_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid(body.key.to_string(), FieldError::too_long(FieldPath::root(), OBJECT_BYTES_MAX)))
}

/// The selectable fields of `head` after a write of `status`.
pub(super) fn status_fields(served: &Served, head: &Head, status: &Value) -> BTreeMap<String, String> {
    let mut fields = head.fields.clone();
    for path in served.kind.selectable_fields.iter().filter(|path| path.starts_with("status.")) {
        match encoded::text_at(status, &path["status.".len()..]) {
            Some(text) => drop(fields.insert(path.clone(), text)),
            None => drop(fields.remove(path)),
        }
    }
    fields
}
