//! An object as a JSON tree, with typed access to its metadata.
//!
//! This is the form for reading and changing; at rest an object is an [`Encoded`](crate::Encoded).

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::field::{FieldError, FieldPath, Rule};
use crate::key::{GroupVersionKind, ObjectKey, ResourceVersion, Uid};
use crate::owner::OwnerReference;
use crate::selector::Labels;
use crate::time::{self, Timestamp};

/// Deepest nesting of an object. JSON readers stop at 128 levels, and what is stored must be readable.
pub const DEPTH_MAX: usize = 120;

/// A JSON object with `apiVersion`, `kind` and `metadata`.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub(crate) fields: Map<String, Value>,
}

impl Object {
    /// Takes a JSON tree for an object.
    ///
    /// # Errors
    /// Names the field that is missing or of the wrong type.
    pub fn from_value(value: Value) -> Result<Self, FieldError> {
        let Value::Object(fields) = value else {
            return Err(FieldError::invalid(FieldPath::root(), &value, "an object must be a JSON object"));
        };
        for field in ["apiVersion", "kind"] {
            match fields.get(field) {
                Some(Value::String(text)) if !text.is_empty() => {}
                None | Some(Value::String(_)) => return Err(FieldError::required(FieldPath::new(field), "")),
                Some(other) => {
                    return Err(FieldError::invalid(FieldPath::new(field), other, "must be a string"));
                }
            }
        }
        let mut object = Self { fields };
        match object.fields.get("metadata") {
            Some(Value::Object(_)) => {}
            None | Some(Value::Null) => drop(object.fields.insert("metadata".into(), json!({}))),
            Some(other) => {
                return Err(FieldError::invalid(FieldPath::new("metadata"), other, "must be an object"));
            }
        }
        object.gvk()?;
        Ok(object)
    }

    /// Reads JSON text.
    ///
    /// # Errors
    /// Says where the text stops being JSON, or what [`Object::from_value`] misses.
    pub fn from_slice(json: &[u8]) -> Result<Self, FieldError> {
        let value = serde_json::from_slice(json).map_err(|e| {
            FieldError::invalid_text(FieldPath::root(), "", format!("the body is not JSON: {e}"))
        })?;
        Self::from_value(value)
    }

    /// An object with nothing but its type and name; `namespace` is empty for cluster-scoped kinds.
    pub fn new(kind: &GroupVersionKind, namespace: &str, name: &str) -> Self {
        let mut metadata = json!({ "name": name });
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        let whole =
            json!({"apiVersion": kind.api_version(), "kind": &*kind.group_kind.kind, "metadata": metadata});
        let Value::Object(fields) = whole else { unreachable!("built as an object") };
        Self { fields }
    }

    /// The whole tree.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// The whole tree, by value.
    pub fn into_value(self) -> Value {
        Value::Object(self.fields)
    }

    /// Changes the tree as a whole. Whatever becomes of it, it stays an object.
    pub fn change(&mut self, change: impl FnOnce(&mut Value)) {
        let mut whole = Value::Object(std::mem::take(&mut self.fields));
        change(&mut whole);
        if let Value::Object(fields) = whole {
            self.fields = fields;
        }
    }

    /// Checks that it is nested no deeper than [`DEPTH_MAX`].
    ///
    /// # Errors
    /// The top-level field that is.
    pub fn check_depth(&self) -> Result<(), FieldError> {
        match self.fields.iter().find(|(_, value)| is_deeper(value, DEPTH_MAX - 1)) {
            None => Ok(()),
            Some((field, _)) => Err(too_deep(FieldPath::new(field))),
        }
    }

    /// The type it says it is of.
    ///
    /// # Errors
    /// `apiVersion` is not `VERSION` or `GROUP/VERSION`.
    pub fn gvk(&self) -> Result<GroupVersionKind, FieldError> {
        let api_version = self.text("apiVersion");
        GroupVersionKind::parse(api_version, self.text("kind"))
            .map_err(|e| FieldError::invalid_text(FieldPath::new("apiVersion"), api_version, e.to_string()))
    }

    /// Its identity.
    ///
    /// # Errors
    /// As [`Object::gvk`].
    pub fn key(&self) -> Result<ObjectKey, FieldError> {
        let kind = self.gvk()?.group_kind;
        Ok(ObjectKey::namespaced(kind, self.namespace(), self.name()))
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    /// `kind`.
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// `metadata.name`, empty if not set.
    pub fn name(&self) -> &str {
        self.metadata_text("name")
    }

    /// `metadata.namespace`, empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.metadata_text("namespace")
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> Option<Uid> {
        Some(self.metadata_text("uid")).filter(|t| !t.is_empty()).map(|t| Uid(t.into()))
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        let text = self.metadata_text("resourceVersion");
        if text.is_empty() { None } else { Some(ResourceVersion(text.into())) }
    }

    /// `metadata.generation`, 0 if not set.
    pub fn generation(&self) -> i64 {
        self.metadata("generation").as_i64().unwrap_or_default()
    }

    /// `metadata.labels`.
    pub fn labels(&self) -> Labels {
        self.metadata_as("labels")
    }

    /// `metadata.annotations`.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.metadata_as("annotations")
    }

    /// The value of one annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata("annotations").get(key).and_then(Value::as_str)
    }

    /// `metadata.finalizers`.
    pub fn finalizers(&self) -> Vec<String> {
        self.metadata_as("finalizers")
    }

    /// `metadata.ownerReferences`.
    pub fn owners(&self) -> Vec<OwnerReference> {
        self.metadata_as("ownerReferences")
    }

    /// `metadata.deletionTimestamp`.
    pub fn deleted_at(&self) -> Option<Timestamp> {
        time::parse(self.metadata_text("deletionTimestamp"))
    }

    /// `metadata.creationTimestamp`.
    pub fn created_at(&self) -> Option<Timestamp> {
        time::parse(self.metadata_text("creationTimestamp"))
    }

    /// `spec`, null if there is none.
    pub fn spec(&self) -> &Value {
        self.get("spec")
    }

    /// `status`, null if there is none.
    pub fn status(&self) -> &Value {
        self.get("status")
    }

    /// A top-level field, null if there is none.
    pub fn get(&self, field: &str) -> &Value {
        self.fields.get(field).unwrap_or(&Value::Null)
    }

    /// The value at a JSON pointer such as `/spec/size`.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        let (field, rest) = pointer.strip_prefix('/')?.split_once('/').unwrap_or((&pointer[1..], ""));
        let value = self.fields.get(field)?;
        if rest.is_empty() { Some(value) } else { value.pointer(&format!("/{rest}")) }
    }

    /// A field of `metadata`, null if there is none.
    pub fn metadata(&self, field: &str) -> &Value {
        self.get("metadata").get(field).unwrap_or(&Value::Null)
    }

    /// Sets a top-level field; null removes it.
    pub fn set(&mut self, field: &str, value: Value) {
        put(&mut self.fields, field, value);
    }

    /// A top-level field to change in place; made as an empty object if it is not there.
    pub fn get_mut(&mut self, field: &str) -> &mut Value {
        self.fields.entry(field).or_insert_with(|| json!({}))
    }

    /// Sets a field of `metadata`; null removes it.
    pub fn set_metadata(&mut self, field: &str, value: Value) {
        if let Value::Object(metadata) = self.get_mut("metadata") {
            put(metadata, field, value);
        }
    }

    /// Sets one label.
    pub fn set_label(&mut self, key: &str, value: &str) {
        self.set_entry("labels", key, value);
    }

    /// Sets one annotation.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        self.set_entry("annotations", key, value);
    }

    /// Takes one annotation away; says whether it was there.
    pub fn remove_annotation(&mut self, key: &str) -> bool {
        let annotations = self.fields.get_mut("metadata").and_then(|it| it.get_mut("annotations"));
        annotations.and_then(Value::as_object_mut).is_some_and(|it| it.remove(key).is_some())
    }

    /// Adds a finalizer; says whether it was missing.
    pub fn add_finalizer(&mut self, finalizer: &str) -> bool {
        let mut all = self.finalizers();
        if all.iter().any(|f| f == finalizer) {
            return false;
        }
        all.push(finalizer.to_owned());
        self.set_metadata("finalizers", json!(all));
        true
    }

    /// Takes a finalizer away; says whether it was there.
    pub fn remove_finalizer(&mut self, finalizer: &str) -> bool {
        let mut all = self.finalizers();
        let before = all.len();
        all.retain(|f| f != finalizer);
        let value = if all.is_empty() { Value::Null } else { json!(all) };
        self.set_metadata("finalizers", value);
        all.len() != before
    }

    fn set_entry(&mut self, map: &str, key: &str, value: &str) {
        let Value::Object(metadata) = self.get_mut("metadata") else { return };
        let entries = metadata.entry(map).or_insert_with(|| json!({}));
        match entries {
            Value::Object(entries) => drop(entries.insert(key.to_owned(), json!(value))),
            // Null or garbage: an object that was never stored. The entry is worth more.
            other => *other = json!({ key: value }),
        }
    }

    fn text(&self, field: &str) -> &str {
        self.get(field).as_str().unwrap_or_default()
    }

    fn metadata_text(&self, field: &str) -> &str {
        self.metadata(field).as_str().unwrap_or_default()
    }

    fn metadata_as<T: DeserializeOwned + Default>(&self, field: &str) -> T {
        // Metadata is validated before it is stored, so what cannot be read here was never stored.
        serde::Deserialize::deserialize(self.metadata(field)).unwrap_or_default()
    }
}

/// What is wrong with a field that is nested deeper than [`DEPTH_MAX`].
pub fn too_deep(field: FieldPath) -> FieldError {
    let detail = format!("must not be nested deeper than {DEPTH_MAX} levels");
    FieldError { field, rule: Rule::TooMany, value: None, detail }
}

/// True if `value` has more than `max` levels. Looks no deeper than that.
pub fn is_deeper(value: &Value, max: usize) -> bool {
    match value {
        Value::Array(items) => max == 0 || items.iter().any(|item| is_deeper(item, max - 1)),
        Value::Object(fields) => max == 0 || fields.values().any(|field| is_deeper(field, max - 1)),
        _ => false,
    }
}

fn put(map: &mut Map<String, Value>, field: &str, value: Value) {
    if value.is_null() {
        map.remove(field);
    } else {
        map.insert(field.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widget() -> Object {
        Object::from_value(json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "a", "namespace": "default", "labels": {"x": "y"}}, "spec": {"size": 3}}))
        .unwrap()
    }

    #[test]
    fn what_is_not_an_object_is_refused_by_field() {
        for (value, field) in [
            (json!([]), ""),
            (json!({"kind": "A"}), "apiVersion"),
            (json!({"apiVersion": "v1"}), "kind"),
            (json!({"apiVersion": 1, "kind": "A"}), "apiVersion"),
            (json!({"apiVersion": "a/b/c", "kind": "A"}), "apiVersion"),
            (json!({"apiVersion": "v1", "kind": "A", "metadata": []}), "metadata"),
        ] {
            assert_eq!(Object::from_value(value.clone()).unwrap_err().field.as_str(), field, "{value}");
        }
        assert!(Object::from_slice(b"{").unwrap_err().detail.contains("not JSON"));
    }

    #[test]
    fn nesting_has_a_bound() {
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        let mut object = widget();
        object.set("spec", nested(DEPTH_MAX - 1));
        assert!(object.check_depth().is_ok());
        object.set("spec", nested(DEPTH_MAX));
        assert_eq!(object.check_depth().unwrap_err().field.as_str(), "spec");
    }

    #[test]
    fn finalizers_are_a_set() {
        let mut object = widget();
        assert!(object.add_finalizer("a.dev/x"));
        assert!(!object.add_finalizer("a.dev/x"));
        assert!(object.remove_finalizer("a.dev/x"));
        assert!(!object.remove_finalizer("a.dev/x"));
        assert_eq!(object, widget());
    }

    #[test]
    fn annotations_come_and_go() {
        let mut object = widget();
        assert!(!object.remove_annotation("a.dev/x"));
        object.set_annotation("a.dev/x", "1");
        assert_eq!(object.annotation("a.dev/x"), Some("1"));
        assert!(object.remove_annotation("a.dev/x"));
        assert_eq!(object.annotation("a.dev/x"), None);
    }

    #[test]
    fn pointers_reach_into_the_tree() {
        assert_eq!(widget().pointer("/spec/size"), Some(&json!(3)));
        assert_eq!(widget().pointer("/spec"), Some(&json!({"size": 3})));
        assert_eq!(widget().pointer("/spec/none"), None);
        assert_eq!(widget().pointer("spec"), None);
    }
}
