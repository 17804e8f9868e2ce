//! A resource type as the CustomResourceDefinition that it is.

use concert_model::no8s::{is_ours, names};
use concert_model::{Encoded, GroupKind, Object, ResourceVersion, Timestamp, time};
use serde_json::{Value, json};

use super::definition_key;
use crate::rest::view::naive;

/// The number of a resource type: an annotation of its definition.
pub const ID: &str = names::ID;

/// One resource type, read from its definition.
#[derive(Clone, Debug)]
pub struct Type {
    /// The number by which REST knows it.
    pub id: u64,
    /// `DnsRecord`.
    pub name: String,
    /// `v1`.
    pub version: String,
    /// What its objects are.
    pub kind: GroupKind,
    /// What many of them are called in paths.
    pub plural: String,
    /// Whether it is on its way out.
    pub is_deleting: bool,
    /// The definition.
    pub object: Object,
    /// Of which state this was read.
    pub resource_version: ResourceVersion,
}

impl Type {
    /// Reads a definition; none for one that is no resource type.
    pub fn read(definition: &Encoded) -> Option<Self> {
        let object = definition.decode();
        let text = |pointer: &str| object.pointer(pointer)?.as_str().map(str::to_owned);
        let group = text("/spec/group").filter(|group| is_ours(group))?;
        let (name, version) = (object.annotation(names::TYPE)?, object.annotation(names::VERSION)?);
        Some(Self {
            id: object.annotation(ID)?.parse().ok()?,
            name: name.to_owned(),
            version: version.to_owned(),
            kind: GroupKind::new(group, text("/spec/names/kind")?),
            plural: text("/spec/names/plural")?,
            is_deleting: definition.head().deleted_at.is_some(),
            resource_version: definition.resource_version().clone(),
            object,
        })
    }

    /// Its JSON Schema.
    pub fn schema(&self) -> Value {
        let text = self.object.annotation(names::SCHEMA).unwrap_or("{}");
        serde_json::from_str(text).unwrap_or_else(|_| json!({}))
    }

    /// As REST shows it.
    pub fn view(&self) -> Value {
        let text = |name: &str| self.object.annotation(name);
        let metadata = text(names::METADATA).and_then(|it| serde_json::from_str(it).ok());
        let created = self.object.created_at();
        let updated = text(names::UPDATED_AT).and_then(time::parse).max(created);
        json!({
            "id": self.id, "name": self.name, "version": self.version, "schema": self.schema(),
            "description": text(names::DESCRIPTION), "status": text(names::STATUS).unwrap_or("active"),
            "metadata": metadata.unwrap_or_else(|| json!({})),
            "created_at": created.map(naive), "updated_at": updated.map(naive),
        })
    }
}

/// What somebody wants a type to be.
#[derive(Clone, Copy)]
pub(super) struct Wish<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) schema: &'a Value,
    pub(super) description: Option<&'a str>,
    pub(super) metadata: Option<&'a Value>,
}

/// The definition of a new type in `group`.
pub(super) fn build(wish: &Wish<'_>, group: &str, now: Timestamp) -> Value {
    let (name, version) = (wish.name, wish.version);
    let (plural, singular) = (names::plural(name), name.to_ascii_lowercase());
    let mut annotations = json!({
        names::TYPE: name, names::VERSION: version, names::SCHEMA: wish.schema.to_string(),
        names::STATUS: "active", names::UPDATED_AT: time::micros(now),
    });
    if let Some(description) = wish.description {
        annotations[names::DESCRIPTION] = json!(description);
    }
    if let Some(metadata) = wish.metadata {
        annotations[names::METADATA] = json!(metadata.to_string());
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": &*definition_key(&plural, group).name, "annotations": annotations},
        "spec": {
            "group": group, "scope": "Cluster",
            "names": {"plural": plural, "singular": singular, "kind": name, "categories": ["no8s"]},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                    {"name": "Message", "type": "string", "jsonPath": ".status.message"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }],
        },
    })
}
