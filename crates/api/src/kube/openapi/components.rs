//! Schemas that every document has: metadata, lists, options, refusals.

use serde_json::{Map, Value, json};

use super::reference;

pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub(super) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const OWNER: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference";
const MANAGED: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";

pub(super) fn shared() -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut add = |name: &str, schema: Value| drop(schemas.insert(name.to_owned(), schema));
    add(OBJECT_META, object_meta());
    add(LIST_META, list_meta());
    add(DELETE_OPTIONS, delete_options());
    add(OWNER, owner());
    add(MANAGED, managed());
    add(STATUS, status());
    add(PATCH, json!({"description": "A change to an object.", "type": "object"}));
    add(
        TIME,
        json!({"description": "A moment, as RFC 3339 writes it.", "type": "string", "format": "date-time"}),
    );
    schemas
}

fn text(description: &str) -> Value {
    json!({"description": description, "type": "string"})
}

fn flag(description: &str) -> Value {
    json!({"description": description, "type": "boolean"})
}

fn number(description: &str) -> Value {
    json!({"description": description, "type": "integer", "format": "int64"})
}

fn texts(description: &str) -> Value {
    json!({"description": description, "type": "object", "additionalProperties": {"type": "string"}})
}

fn list(description: &str, items: &Value) -> Value {
    json!({"description": description, "type": "array", "items": items})
}

fn linked(description: &str, name: &str) -> Value {
    json!({"description": description, "allOf": [reference(name)]})
}

fn object_meta() -> Value {
    let mut owners = list("Objects that this one lives and dies with.", &reference(OWNER));
    owners["x-kubernetes-list-type"] = json!("map");
    owners["x-kubernetes-list-map-keys"] = json!(["uid"]);
    owners["x-kubernetes-patch-merge-key"] = json!("uid");
    owners["x-kubernetes-patch-strategy"] = json!("merge");
    let mut finalizers = list(
        "Must be empty before the object goes; each entry names who takes it away.",
        &json!({"type": "string"}),
    );
    finalizers["x-kubernetes-list-type"] = json!("set");
    finalizers["x-kubernetes-patch-strategy"] = json!("merge");
    json!({
        "description": "What every object has: its name, its labels and what the server knows about it.",
        "type": "object",
        "properties": {
            "annotations": texts("Free texts for tools. They cannot be selected by."),
            "creationTimestamp": linked("When the object was made. Set by the server.", TIME),
            "deletionGracePeriodSeconds": number("How long the object may take to go. Set by the server."),
            "deletionTimestamp": linked("When its deletion was asked for. Set by the server.", TIME),
            "finalizers": finalizers,
            "generateName": text("A prefix; the server makes up the rest of the name."),
            "generation": number("Counts changes of what is wanted. Set by the server."),
            "labels": texts("Short texts that objects are selected by."),
            "managedFields": list("Who manages which fields. Set by the server.", &reference(MANAGED)),
            "name": text("Unique within kind and namespace. Cannot be changed."),
            "namespace": text("Where the object lives; none for cluster-scoped kinds. Cannot be changed."),
            "ownerReferences": owners,
            "resourceVersion": text("The token of one write: compare for equality only. Set by the server."),
            "selfLink": text("No longer used."),
            "uid": text("Identity of this incarnation. Set by the server."),
        },
    })
}

fn list_meta() -> Value {
    json!({
        "description": "What every list has.",
        "type": "object",
        "properties": {
            "continue": text("Where the next page starts; empty at the end."),
            "remainingItemCount": number("How many objects are left, if that is known."),
            "resourceVersion": text("The moment that the list shows."),
            "selfLink": text("No longer used."),
        },
    })
}

fn delete_options() -> Value {
    json!({
        "description": "How to delete.",
        "type": "object",
        "properties": {
            "apiVersion": text("The version of this schema."),
            "kind": text("DeleteOptions."),
            "dryRun": list("All: do everything but the deletion.", &json!({"type": "string"})),
            "gracePeriodSeconds": number("How long the object may take to go."),
            "orphanDependents": flag("Replaced by propagationPolicy."),
            "preconditions": {
                "description": "Delete only this incarnation or state.", "type": "object",
                "properties": {"uid": text("Only this incarnation."), "resourceVersion": text("Only this state.")},
            },
            "propagationPolicy": text("What happens to owned objects: Background, Foreground or Orphan."),
        },
    })
}

fn owner() -> Value {
    json!({
        "description": "An object that another one lives and dies with.",
        "type": "object",
        "required": ["apiVersion", "kind", "name", "uid"],
        "properties": {
            "apiVersion": text("Group and version of the owner."),
            "blockOwnerDeletion": flag("A foreground deletion of the owner waits for this object."),
            "controller": flag("The one owner that controls the object."),
            "kind": text("Kind of the owner."),
            "name": text("Name of the owner, in the same namespace or cluster-scoped."),
            "uid": text("The incarnation meant."),
        },
        "x-kubernetes-map-type": "atomic",
    })
}

fn managed() -> Value {
    json!({
        "description": "The fields that one manager manages.",
        "type": "object",
        "properties": {
            "apiVersion": text("The version of the object that the fields are of."),
            "fieldsType": text("FieldsV1."),
            "fieldsV1": {"description": "The fields, as a tree.", "type": "object"},
            "manager": text("Who."),
            "operation": text("Apply or Update."),
            "subresource": text("The part of the object that was written."),
            "time": linked("When it last changed.", TIME),
        },
    })
}

fn status() -> Value {
    json!({
        "description": "What became of a request that has no other answer.",
        "type": "object",
        "properties": {
            "apiVersion": text("The version of this schema."),
            "kind": text("Status."),
            "code": {"description": "The HTTP status.", "type": "integer", "format": "int32"},
            "details": {"description": "What it is about.", "type": "object"},
            "message": text("In words."),
            "metadata": linked("What every list has.", LIST_META),
            "reason": text("In one word."),
            "status": text("Success or Failure."),
        },
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "Status", "version": "v1"}],
    })
}
