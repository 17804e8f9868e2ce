//! Definitions of kinds, on stores that may be shared.

use std::sync::Arc;
use std::time::Duration;

use concert_model::condition::{self, Status};
use concert_model::{FieldSelector, GroupKind, Object, ObjectKey};
use concert_store::conformance::next;
use concert_store::{By, Clock, Error, Event, Query, Store, SystemClock};
use serde_json::{Value, json};

/// The kind of definitions.
pub fn definitions() -> GroupKind {
    GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition")
}

/// What defines `kind`: everything is allowed, and one field is typed.
pub fn definition(kind: &GroupKind, is_namespaced: bool, has_status: bool) -> Object {
    let open = |properties: Value| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties});
    let size = json!({"size": {"type": "integer", "format": "int64"}});
    let schema = open(json!({"spec": open(json!({"forProvider": open(size)})), "status": open(json!({}))}));
    let plural = format!("{}s", kind.kind.to_lowercase());
    let subresources = if has_status { json!({"status": {}}) } else { json!({}) };
    let mut object = Object::new(&definitions().at_version("v1"), "", &format!("{plural}.{}", kind.group));
    object.set(
        "spec",
        json!({
            "group": &*kind.group, "scope": if is_namespaced { "Namespaced" } else { "Cluster" },
            "names": {"kind": &*kind.kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": schema}}],
        }),
    );
    object
}

/// Defines a kind, unless another case has, and waits until it is served.
pub async fn define(store: &Arc<dyn Store>, definition: Object) -> ObjectKey {
    let key = definition.key().unwrap();
    let kind = GroupKind::new(
        definition.spec()["group"].as_str().unwrap(),
        definition.spec()["names"]["kind"].as_str().unwrap(),
    );
    match store.create(definition, &By::actor("test")).await {
        Ok(_) | Err(Error::AlreadyExists { .. }) => {}
        Err(error) => panic!("cannot define {kind}: {error}"),
    }
    let name = FieldSelector::field("metadata.name", &key.name);
    let mut events = store.watch(&Query::all(definitions()).with_fields(name), None).await.unwrap();
    let is_established = |event: &Event| {
        let status = event.object().map(|it| it.decode().status().clone()).unwrap_or_default();
        condition::find(&status, "Established").is_some_and(|it| it.status == Status::True)
    };
    while !is_established(&next(&mut events).await) {}
    // A server serves a kind some time after it says so, and has no event for it.
    until(async || store.kind(&kind).await.is_ok()).await;
    key
}

/// Looks until something is so that nobody tells of. The case's own deadline ends a hang.
pub async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let clock = SystemClock::new();
    while !is_so().await {
        clock.sleep(Duration::from_millis(20)).await;
    }
}

/// A name that no other case has used.
pub fn unique(stem: &str) -> String {
    let bits = concert_store::Chance::from_system().bits() & 0xff_ffff_ffff;
    format!("{stem}-{bits:010x}")
}

/// A fresh namespace.
pub async fn namespace(store: &Arc<dyn Store>) -> String {
    let name = unique("managed");
    let object = Object::new(&GroupKind::new("", "Namespace").at_version("v1"), "", &name);
    store.create(object, &By::actor("test")).await.unwrap();
    name
}
