//! Objects as the API server sends them, and as we keep them.
//!
//! A tree is built for a moment, to put the bytes into canonical form; what stays is bytes, without
//! `managedFields`, which are often half of an object and of use to the API server only. The same goes for what
//! is written about definitions for people.

use std::collections::BTreeMap;
use std::sync::Arc;

use concert_model::{Body, Encoded, Head, Object, ResourceVersion, Timestamp, encoded};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::kinds::{Resource, is_definition};
use super::prose::drop_prose;
use crate::contract::Result;
use crate::error::Error;

/// One stored object of `resource`.
pub(super) fn object(resource: &Resource, bytes: &[u8]) -> Result<Encoded> {
    encode(resource, bytes, None)
}

/// What a dry run answers: it is not stored, so it may lack a resource version.
pub(super) fn dry_object(resource: &Resource, bytes: &[u8]) -> Result<Encoded> {
    encode(resource, bytes, Some(ResourceVersion("".into())))
}

fn encode(resource: &Resource, bytes: &[u8], otherwise: Option<ResourceVersion>) -> Result<Encoded> {
    let damaged = |why: String| Error::unavailable(format!("the server sent a broken object: {why}"));
    let mut tree: Value = serde_json::from_slice(bytes).map_err(|e| Error::Unavailable(e.into()))?;
    if let Some(fields) = tree.as_object_mut() {
        // Objects of a list may leave out what they are.
        let gvk = resource.kind.gvk();
        fields.entry("apiVersion").or_insert_with(|| json!(gvk.api_version()));
        fields.entry("kind").or_insert_with(|| json!(&*gvk.group_kind.kind));
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        if is_definition(&gvk.group_kind) {
            drop_prose(fields);
        }
    }
    let object = Object::from_value(tree).map_err(|e| damaged(e.to_string()))?;
    let mut key = object.key().map_err(|e| damaged(e.to_string()))?;
    if key.kind == resource.kind.group_kind {
        // The same names for all, and not one of its own for each.
        key.kind = resource.kind.group_kind.clone();
    }
    let (Some(uid), Some(version)) = (object.uid(), object.resource_version().or(otherwise)) else {
        return Err(damaged(format!("{key} has no uid or no resource version")));
    };
    let gvk = object.gvk().map_err(|e| damaged(e.to_string()))?;
    let field = |path: &String| Some((path.clone(), encoded::selectable(&object, path)?));
    let head = Head {
        version: gvk.version,
        uid,
        generation: object.generation(),
        created_at: object.created_at().unwrap_or(Timestamp::UNIX_EPOCH),
        deleted_at: object.deleted_at(),
        labels: object.labels(),
        owners: object.owners(),
        fields: resource.kind.selectable_fields.iter().filter_map(field).collect::<BTreeMap<_, _>>(),
    };
    Ok(Encoded::new(Arc::new(Body::encode(key, head, &object)), version))
}

/// The parts of a list.
#[derive(Deserialize)]
pub(super) struct List<'a> {
    #[serde(default)]
    pub(super) metadata: ListMetadata,
    #[serde(borrow, default)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

/// Where a list was read, and where it goes on.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListMetadata {
    pub(super) resource_version: String,
    #[serde(rename = "continue")]
    pub(super) next: Option<String>,
}

/// One line of a watch.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) what: &'a str,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

/// The only thing a bookmark holds.
#[derive(Deserialize)]
pub(super) struct Bookmark {
    pub(super) metadata: ListMetadata,
}

#[cfg(test)]
mod tests {
    use concert_model::GroupKind;
    use concert_model::metadata::NameRule;

    use super::*;
    use crate::kind::Kind;
    use crate::local::{DEFINITION_GROUP, DEFINITION_KIND};

    #[test]
    fn definitions_are_kept_without_what_only_people_read() {
        let kind = Kind {
            group_kind: GroupKind::new(DEFINITION_GROUP, DEFINITION_KIND),
            storage_version: "v1".into(),
            versions: vec!["v1".into()],
            plural: "customresourcedefinitions".into(),
            is_namespaced: false,
            has_status: true,
            has_generation: true,
            name_rule: NameRule::Subdomain,
            selectable_fields: Vec::new(),
        };
        let resource = Resource { kind: Arc::new(kind), name: "definitions".into() };
        let schema = json!({"openAPIV3Schema": {"type": "object", "description": "Long."}});
        let sent = json!({"metadata": {"name": "things.example.com", "uid": "u", "resourceVersion": "1"},
            "spec": {"versions": [{"name": "v1", "schema": schema}]}});
        let kept = object(&resource, sent.to_string().as_bytes()).unwrap().decode();
        assert_eq!(kept.spec()["versions"][0]["schema"]["openAPIV3Schema"], json!({"type": "object"}));
    }
}
