//! What the tests of several modules next door need: a store with a few kinds, on a clock that only
//! moves when everybody waits for it.

use std::sync::Arc;

use concert_engine::{Tasks, TokioSpawn};
use concert_model::{Encoded, GroupKind, GroupVersionKind, Object, ObjectKey};
use concert_store::backend::memory::Memory;
use concert_store::{By, Chance, Config, Local, PageRequest, Query, Store};
use serde_json::{Value, json};

use crate::fixtures::PausedClock;

pub struct World {
    pub clock: Arc<PausedClock>,
    pub store: Arc<dyn Store>,
    pub tasks: Tasks,
}

pub const GROUP: &str = "example.com";

impl World {
    /// A store with `Bucket` and `Network` in namespaces and `ClusterBucket` and `ClusterNetwork`
    /// outside, with their configurations and usages.
    pub async fn new() -> Self {
        let clock = Arc::new(PausedClock::new());
        let config = Config::new(clock.clone(), Chance::seeded(7)).inline();
        let store: Arc<dyn Store> = Arc::new(Local::open(Arc::new(Memory::new()), config).unwrap());
        let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
        let world = Self { clock, store, tasks };
        for kind in ["Bucket", "Network", "ProviderConfig", "ProviderConfigUsage"] {
            world.define(GROUP, kind, "Namespaced").await;
        }
        for kind in ["ClusterBucket", "ClusterNetwork", "ClusterProviderConfig"] {
            world.define(GROUP, kind, "Cluster").await;
        }
        // As providers for Crossplane 1 have them.
        for kind in ["ProviderConfig", "ProviderConfigUsage"] {
            world.define("legacy.example.com", kind, "Cluster").await;
        }
        world
    }

    async fn define(&self, group: &str, kind: &str, scope: &str) {
        let plural = format!("{}s", kind.to_lowercase());
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        self.create(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group, "scope": scope, "names": {"kind": kind, "plural": plural},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema}}],
            },
        }))
        .await;
    }

    pub async fn create(&self, object: Value) -> Encoded {
        self.store.create(Object::from_value(object).unwrap(), &by()).await.unwrap()
    }

    /// Creates an object of a kind of ours; in `default` unless its kind has no namespaces.
    pub async fn object(&self, kind: &str, name: &str, rest: Value) -> Object {
        self.create(self::object(kind, name, rest)).await.decode()
    }

    pub async fn get(&self, key: &ObjectKey) -> Object {
        self.store.get(key).await.unwrap().decode()
    }

    pub async fn list(&self, kind: GroupKind) -> Vec<Object> {
        let page = self.store.list(&Query::all(kind), &PageRequest::whole()).await.unwrap();
        page.items.iter().map(Encoded::decode).collect()
    }
}

pub fn by() -> By {
    By::actor("test")
}

pub fn gvk(kind: &str) -> GroupVersionKind {
    GroupKind::new(GROUP, kind).at_version("v1")
}

/// An object of a kind of ours with some more fields, which may include metadata.
pub fn object(kind: &str, name: &str, rest: Value) -> Value {
    let namespace = if kind.starts_with("Cluster") { "" } else { "default" };
    let mut object = Object::new(&gvk(kind), namespace, name).into_value();
    let Value::Object(rest) = rest else { unreachable!("fields of an object") };
    for (field, value) in rest {
        match (&mut object[&field], value) {
            (Value::Object(old), Value::Object(new)) => old.extend(new),
            (place, value) => *place = value,
        }
    }
    object
}

pub fn secret(name: &str) -> ObjectKey {
    ObjectKey::namespaced(GroupKind::new("", "Secret"), "default", name)
}

/// Lets every task run until none has anything to do.
pub async fn quiet() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}
