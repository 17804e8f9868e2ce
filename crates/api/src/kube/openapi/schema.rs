//! The schema of a kind and of its list.

use serde_json::{Map, Value, json};

use super::components::{LIST_META, OBJECT_META};
use super::reference;
use crate::kube::catalogue::Resource;

/// `com.example.v1.Widget`; for Kubernetes' own kinds the names that its tools know.
pub(super) fn name_of(resource: &Resource, kind: &str) -> String {
    let (group, version) = (&*resource.group_kind().group, resource.version());
    if resource.card().is_built_in {
        let short = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) };
        if group == "apiextensions.k8s.io" {
            return format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}");
        }
        if group.is_empty() || group.ends_with(".k8s.io") {
            return format!("io.k8s.api.{short}.{version}.{kind}");
        }
    }
    let reversed: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", reversed.join("."))
}

pub(super) fn add(schemas: &mut Map<String, Value>, resource: &Resource) {
    let kind = &*resource.group_kind().kind;
    let (name, list_name) = (name_of(resource, kind), name_of(resource, &resource.card().list_kind));
    schemas.insert(name.clone(), object(resource));
    let mut list = json!({
        "description": format!("A list of {kind} objects."),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": api_version(), "kind": kind_field(),
            "items": {"description": "The objects.", "type": "array", "items": reference(&name)},
            "metadata": {"description": "What every list has.", "allOf": [reference(LIST_META)]},
        },
    });
    list["x-kubernetes-group-version-kind"] = json!([type_of(resource, &resource.card().list_kind)]);
    schemas.insert(list_name, list);
}

fn object(resource: &Resource) -> Value {
    let mut schema = match &*resource.view().schema {
        Value::Object(_) => Value::clone(&resource.view().schema),
        _ => json!({"type": "object"}),
    };
    let metadata_description =
        "What every object has: its name, its labels and what the server knows about it.";
    if schema.get("description").is_none() {
        schema["description"] = json!(format!("{} objects.", resource.group_kind().kind));
    }
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    if let Value::Object(properties) = &mut schema["properties"] {
        properties.insert("apiVersion".into(), api_version());
        properties.insert("kind".into(), kind_field());
        let metadata = json!({"description": metadata_description, "allOf": [reference(OBJECT_META)]});
        properties.insert("metadata".into(), metadata);
    }
    clean(&mut schema);
    schema["x-kubernetes-group-version-kind"] = json!([type_of(resource, &resource.group_kind().kind)]);
    schema
}

/// Takes out what OpenAPI readers stumble over: rules that are ours to enforce and mean nothing to them.
fn clean(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    if fields.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
        fields.remove("type");
    }
    for holder in ["properties", "patternProperties"] {
        if let Some(Value::Object(children)) = fields.get_mut(holder) {
            children.values_mut().for_each(clean);
        }
    }
    for holder in ["items", "additionalProperties", "not"] {
        if let Some(child) = fields.get_mut(holder) {
            clean(child);
        }
    }
}

pub(super) fn type_of(resource: &Resource, kind: &str) -> Value {
    json!({"group": &*resource.group_kind().group, "kind": kind, "version": resource.version()})
}

fn api_version() -> Value {
    json!({"description": "Group and version of the schema that the object is written in.", "type": "string"})
}

fn kind_field() -> Value {
    json!({"description": "The kind of the object, in the singular.", "type": "string"})
}
