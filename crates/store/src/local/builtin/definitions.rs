//! CustomResourceDefinitions: the fields that the definition of a kind has.
//!
//! What values they may have is said by `local::definition`, with the messages of
//! Kubernetes. Schemas stay open here: they are compiled, which tells more than this could.

use serde_json::{Value, json};

use super::{Told, conditions, plain, texts};
use crate::kind::Kind;
use crate::local::definition::{DEFINITION_GROUP, DEFINITION_KIND};

pub(super) fn told() -> Told {
    let kind = Kind {
        is_namespaced: false,
        has_status: true,
        has_generation: true,
        ..plain(DEFINITION_GROUP, "v1", DEFINITION_KIND, "customresourcedefinitions")
    };
    Told {
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        columns: &[("Created At", "string", ".metadata.creationTimestamp", 0)],
        ..Told::new(kind, json!({"spec": spec(), "status": status()}))
    }
}

fn open() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn number() -> Value {
    json!({"type": "integer", "format": "int32"})
}

fn record(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn records(properties: &Value) -> Value {
    json!({"type": "array", "items": record(properties)})
}

fn spec() -> Value {
    record(&json!({
        "group": text(), "scope": text(), "names": names(), "versions": versions(),
        "conversion": conversion(), "preserveUnknownFields": flag(),
    }))
}

fn names() -> Value {
    record(&json!({
        "plural": text(), "singular": text(), "kind": text(), "listKind": text(), "shortNames": texts(),
        "categories": texts(),
    }))
}

/// Generators of manifests write its lists as null.
fn status() -> Value {
    let mut stored = texts();
    stored["nullable"] = json!(true);
    record(&json!({"conditions": conditions(), "acceptedNames": names(), "storedVersions": stored}))
}

fn versions() -> Value {
    let scale =
        json!({"specReplicasPath": text(), "statusReplicasPath": text(), "labelSelectorPath": text()});
    let subresources = json!({"status": record(&json!({})), "scale": record(&scale)});
    let column = json!({
        "name": text(), "type": text(), "format": text(), "description": text(), "priority": number(),
        "jsonPath": text(),
    });
    records(&json!({
        "name": text(), "served": flag(), "storage": flag(), "deprecated": flag(),
        "deprecationWarning": text(), "schema": record(&json!({"openAPIV3Schema": open()})),
        "subresources": record(&subresources), "additionalPrinterColumns": records(&column),
        "selectableFields": records(&json!({"jsonPath": text()})),
    }))
}

fn conversion() -> Value {
    let service = json!({"namespace": text(), "name": text(), "path": text(), "port": number()});
    let client = json!({"url": text(), "service": record(&service), "caBundle": text()});
    let webhook = json!({"clientConfig": record(&client), "conversionReviewVersions": texts()});
    record(&json!({"strategy": text(), "webhook": record(&webhook)}))
}
