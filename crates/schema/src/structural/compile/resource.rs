//! What every object has: apiVersion, kind and metadata, at the root and in embedded resources.
//!
//! The server owns their shape. A schema may repeat it, and may restrict the name.

use serde_json::Value;

use super::Compiler;
use super::keywords::Keywords;
use crate::structural::path::Path;
use crate::structural::schema::{Schema, Type};

pub(super) fn check(keywords: &Keywords<'_>, schema: &Schema, compiler: &mut Compiler) {
    if !schema.is_resource() {
        return;
    }
    let path = keywords.path();
    let place = path.child("properties");
    for (name, kind) in [("apiVersion", Type::String), ("kind", Type::String), ("metadata", Type::Object)] {
        let Some(property) = schema.properties.get(name) else { continue };
        let place = place.key(name);
        if property.kind != Some(kind) {
            let found = Value::from(property.kind.map_or("", Type::name));
            compiler.invalid(&place.child("type"), &found, format!("must be {}", kind.name()));
        }
        if schema.root {
            forbid_defaults(property, name, &place, compiler);
        }
    }
    if schema.embedded && !schema.preserves_unknown && schema.properties.is_empty() {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        compiler.require(&place, why);
    }
    let metadata = keywords.get("properties").and_then(|properties| properties.get("metadata"));
    if let Some(metadata) = metadata
        && schema.root
        && !restricts_names_only(metadata)
    {
        let why = "must not specify anything other than name and generateName, but metadata is \
                   implicitly specified";
        compiler.forbid(&place.key("metadata"), why);
    }
}

fn restricts_names_only(metadata: &Value) -> bool {
    let Value::Object(keywords) = metadata else { return false };
    let only_names = |properties: &Value| {
        let Value::Object(properties) = properties else { return false };
        properties.keys().all(|name| matches!(name.as_str(), "name" | "generateName"))
    };
    keywords.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" | "description" | "title" => true,
        "properties" => only_names(value),
        _ => false,
    })
}

/// The server fills these in; a default would come too late or be ignored.
fn forbid_defaults(schema: &Schema, name: &str, path: &Path<'_>, compiler: &mut Compiler) {
    if schema.default.is_some() {
        compiler.forbid(&path.child("default"), format!("must not be set in top-level {name}"));
    }
    let place = path.child("properties");
    for (property, schema) in &schema.properties {
        forbid_defaults(schema, name, &place.key(property), compiler);
    }
}
