//! OpenAPI v3, written from the kinds' cards.
//!
//! One document for each version of each group, and an index whose links change with the documents, so
//! that clients may keep them forever.

mod components;
mod operations;
mod schema;
mod two;

use serde_json::{Map, Value, json};

use super::answer::text;
use super::catalogue::{Group, Version};

pub(crate) use two::two;

/// The list of all documents.
pub(crate) fn index(groups: &[Group]) -> Vec<u8> {
    let mut paths = Map::new();
    for version in groups.iter().flat_map(|group| &group.versions) {
        let path = path_of(&version.api_version);
        let hash = &version.openapi().hash;
        paths.insert(path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}));
    }
    text(&json!({ "paths": paths }))
}

/// The document of one version of one group.
pub(crate) fn document(version: &Version) -> Vec<u8> {
    let (mut paths, mut schemas) = (Map::new(), components::shared());
    for resource in version.resources.values() {
        operations::add(&mut paths, resource);
        schema::add(&mut schemas, resource);
    }
    text(&json!({
        "openapi": "3.0.0",
        "info": {"title": "Concert", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// `api/v1` or `apis/GROUP/VERSION`.
fn path_of(api_version: &str) -> String {
    let prefix = if api_version.contains('/') { "apis" } else { "api" };
    format!("{prefix}/{api_version}")
}

/// A link to a schema of the same document.
fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
