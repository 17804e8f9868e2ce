//! A small controller of things in the world, in the shape of all our controllers: `decide` thinks,
//! `run` has the hands.

pub mod decide;
mod play;
pub mod run;

use std::sync::Arc;

use concert_model::{GroupKind, GroupVersionKind, Object, ObjectKey};
use serde_json::{Value, json};

pub use play::ToyPlay;

/// Keeps an object until its thing is gone.
pub const FINALIZER: &str = "sim.concert.dev/thing";
/// Written before each attempt to create: proves that the decision was not made on a stale read.
pub const INTENT: &str = "sim.concert.dev/intent";

/// The kind that the toy reconciles.
pub fn kind() -> GroupVersionKind {
    GroupKind::new("sim.concert.dev", "Widget").at_version("v1")
}

/// The key of a widget.
pub fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(kind().group_kind, "default", name)
}

/// A widget of a size, perhaps after another one.
pub fn widget(name: &str, size: i64, after: Option<&str>) -> Object {
    let mut object = Object::new(&kind(), "default", name);
    object.set("spec", json!({ "size": size }));
    if let Some(after) = after {
        object.get_mut("spec")["after"] = json!(after);
    }
    object
}

/// The definition of the kind.
pub fn definition() -> Value {
    let number = json!({"type": "integer"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.sim.concert.dev"},
        "spec": {"group": "sim.concert.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["size"],
                        "properties": {"size": number, "after": {"type": "string"}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}}}]},
    })
}

/// What the thing of an object is called in the world: never the same for two incarnations.
pub fn thing_of(object: &Object) -> Arc<str> {
    format!("{}/{}", object.name(), object.uid().map(|uid| uid.to_string()).unwrap_or_default()).into()
}
