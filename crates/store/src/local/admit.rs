//! Making an object fit to be stored, or saying what is wrong with it.

use std::collections::BTreeMap;

use concert_model::{
    Body, Encoded, FieldError, FieldPath, Head, Object, ObjectKey, Rule, encoded, metadata, object,
};
use serde_json::Value;

use super::kinds::{Served, Version};
use super::{builtin, definition, rules};
use crate::contract::{By, Result};
use crate::error::Error;
use crate::unknown::{UnknownFields, unknown_field};

/// Largest object, as JSON: etcd's default bound, so that what fits here fits into Kubernetes.
pub const OBJECT_BYTES_MAX: usize = 1_572_864;

/// Most unknown fields of metadata that are named.
const UNKNOWN_METADATA_MAX: usize = 100;

/// Prunes, defaults and validates `object` as one of its kind. `stored` is what it replaces. Returns the
/// version it is written in.
pub(super) fn admit<'a>(
    served: &'a Served,
    object: &mut Object,
    stored: Option<&Encoded>,
    by: &By,
) -> Result<&'a Version> {
    object.check_depth().map_err(|e| Error::invalid(describe(object), e))?;
    let version = version_of(served, object, stored.map(Encoded::head))?;
    let kind = &served.kind.group_kind;
    let mut errors = builtin::normalise(kind, object);
    prune(version, object, by)?;
    errors.extend(metadata::validate(object, served.kind.name_rule));
    let mut broken = Vec::new();
    object.change(|whole| {
        version.schema.default(whole);
        broken = version.schema.validate(whole);
    });
    if let Some(stored) = stored.filter(|_| !broken.is_empty() && served.definition.is_some()) {
        // The definition may have become stricter since.
        let mut old = seen(version, stored);
        if served.kind.has_status {
            old.set("status", Value::Null);
        }
        let old = old.into_value();
        object.change(|whole| broken = version.schema.validate_change(&FieldPath::root(), whole, &old));
    }
    // What has the wrong type is named once.
    if definition::is_definition(kind) && broken.is_empty() {
        definition::default(object);
        errors.extend(definition::validate(object));
    }
    errors.extend(broken);
    if errors.is_empty() {
        errors = builtin::validate(kind, object);
        errors.extend(rules_broken(served, version, object, stored));
    }
    if errors.is_empty() { Ok(version) } else { Err(Error::Invalid { what: describe(object), errors }) }
}

/// What is stored, as `version` sees it.
fn seen(version: &Version, stored: &Encoded) -> Object {
    let mut object = stored.decode();
    object.change(|whole| {
        drop(version.schema.prune(whole));
        version.schema.default(whole);
    });
    object
}

/// The rules that `object` breaks. Opens what it replaces only where there are rules.
fn rules_broken(
    served: &Served,
    version: &Version,
    object: &mut Object,
    stored: Option<&Encoded>,
) -> Vec<FieldError> {
    if !version.has_rules {
        return Vec::new();
    }
    let old = stored.map(|stored| seen(version, stored));
    // An update of everything else keeps the status, which rules may compare with.
    let is_kept = served.kind.has_status && old.is_some();
    if let Some(old) = old.as_ref().filter(|_| is_kept) {
        object.set("status", old.status().clone());
    }
    let old = old.map(Object::into_value);
    let mut errors = Vec::new();
    object.change(|whole| errors = rules::broken(version, whole, old.as_ref()));
    if is_kept {
        object.set("status", Value::Null);
    }
    errors
}

/// Drops what the schema does not know, as `by` wants it.
pub(super) fn prune(version: &Version, object: &mut Object, by: &By) -> Result<()> {
    let mut unknown = prune_metadata(object);
    object.change(|whole| unknown.extend(version.schema.prune(whole)));
    tell(unknown, by, || describe(object))
}

/// Says of fields that were dropped what `by` wants said.
fn tell(unknown: Vec<FieldPath>, by: &By, what: impl FnOnce() -> String) -> Result<()> {
    match by.unknown_fields {
        _ if unknown.is_empty() => {}
        UnknownFields::Drop => {}
        UnknownFields::Warn => unknown.iter().for_each(|field| by.warnings.add(unknown_field(field))),
        UnknownFields::Refuse => return Err(Error::Unknown { what: what(), fields: unknown }),
    }
    Ok(())
}

/// Prunes, defaults and validates a status that was sent with `object`.
pub(super) fn admit_status(
    served: &Served,
    object: &Object,
    stored: &Encoded,
    mut status: Value,
    by: &By,
) -> Result<Value> {
    if object::is_deeper(&status, object::DEPTH_MAX - 1) {
        return Err(Error::invalid(describe(object), object::too_deep(FieldPath::new("status"))));
    }
    let version = version_of(served, object, Some(stored.head()))?;
    let path = FieldPath::new("status");
    let mut errors = Vec::new();
    match version.schema.property("status") {
        _ if status.is_null() => {}
        None if version.schema.preserves_unknown_fields() => {}
        None => {
            tell(vec![path], by, || describe(object))?;
            status = Value::Null;
        }
        Some(schema) => {
            let below = |dropped: FieldPath| FieldPath::new(format!("status.{}", dropped.as_str()));
            let unknown = schema.prune(&mut status).into_iter().map(below).collect();
            tell(unknown, by, || describe(object))?;
            schema.default(&mut status);
            errors = schema.validate_at(&path, &status);
            if !errors.is_empty() {
                let old = seen(version, stored);
                errors = schema.validate_change(&path, &status, old.status());
            }
        }
    }
    if errors.is_empty() {
        errors = rules::broken_by_status(version, stored, &status);
    }
    if errors.is_empty() { Ok(status) } else { Err(Error::Invalid { what: describe(object), errors }) }
}

/// The version that `object` is written in: one that is served, or the one that it was read in, which may
/// not be served any more.
pub(super) fn version_of<'a>(
    served: &'a Served,
    object: &Object,
    stored: Option<&Head>,
) -> Result<&'a Version> {
    let invalid = |error| Error::invalid(describe(object), error);
    let name = object.gvk().map_err(invalid)?.version;
    let is_open = served.kind.versions.contains(&name) || stored.is_some_and(|head| head.version == name);
    let version = served.version(&name).filter(|_| is_open);
    version.ok_or_else(|| {
        let versions: Vec<String> = served.kind.versions.iter().map(|v| format!("{v:?}")).collect();
        let detail = format!("served versions: {}", versions.join(", "));
        let value = Value::from(&*name);
        invalid(FieldError::new(FieldPath::new("apiVersion"), Rule::NotSupported, &value, detail))
    })
}

/// Drops fields of metadata that there are not, and says which.
fn prune_metadata(object: &mut Object) -> Vec<FieldPath> {
    let mut unknown = Vec::new();
    if let Value::Object(fields) = object.get_mut("metadata") {
        fields.retain(|field, value| {
            let is_known = metadata::KNOWN_FIELDS.contains(&field.as_str());
            if !is_known && unknown.len() < UNKNOWN_METADATA_MAX {
                unknown.push(FieldPath::new("metadata").child(field));
            }
            is_known && !value.is_null()
        });
        fields.remove("selfLink");
    }
    unknown
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
    if served.definition.is_none() {
        errors.extend(builtin::validate_change(&served.kind.group_kind, old_object, new));
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
