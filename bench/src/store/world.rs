//! A store on a real disk with a realistic kind of 1 KB objects.

use std::any::Any;
use std::sync::Arc;

use anyhow::Result;
use concert_model::{GroupKind, GroupVersionKind, Object};
use concert_store::backend::{Sqlite, sqlite};
use concert_store::seal::Keyring;
use concert_store::{By, Chance, Config, Local, Store, SystemClock};
use serde_json::json;

/// A fresh store, and what it needs to work, which goes with it.
pub struct World {
    pub store: Local,
    pub kind: GroupVersionKind,
    _alive: Box<dyn Any + Send + Sync>,
}

impl World {
    pub fn open() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let chance = Chance::from_system();
        let keyring = Keyring::open(folder.path().join("store.key"), &chance)?;
        let backend = Sqlite::open(folder.path().join("store.db"), &sqlite::Options::default())?;
        let config = Config::new(Arc::new(SystemClock::new()), chance).sealed(keyring);
        Self::over(Local::open(Arc::new(backend), config)?, folder)
    }

    /// A world in this store, which is empty; `alive` is kept for as long.
    pub fn over(store: Local, alive: impl Any + Send + Sync) -> Result<Self> {
        let kind = GroupKind::new("bench.concert.dev", "Widget").at_version("v1");
        let runtime = tokio::runtime::Handle::current();
        let definition = Object::from_value(definition())?;
        tokio::task::block_in_place(|| runtime.block_on(store.create(definition, &by())))?;
        Ok(Self { store, kind, _alive: Box::new(alive) })
    }

    /// Makes objects `from..to`, many at a time.
    pub async fn fill(&self, from: usize, to: usize) -> Result<()> {
        let next = Arc::new(std::sync::atomic::AtomicUsize::new(from));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..64 {
            let (store, kind, next) = (self.store.clone(), self.kind.clone(), next.clone());
            tasks.spawn(async move {
                loop {
                    let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if n >= to {
                        return Ok::<_, anyhow::Error>(());
                    }
                    store.create(widget(&kind, n), &by()).await?;
                }
            });
        }
        while let Some(result) = tasks.join_next().await {
            result??;
        }
        Ok(())
    }
}

pub fn by() -> By {
    By::actor("bench").because("bench")
}

/// An object of about 1 KB, the size of a typical managed resource.
pub fn widget(kind: &GroupVersionKind, n: usize) -> Object {
    let mut object = Object::new(kind, "default", &format!("widget-{n:07}"));
    object.set_label("app", "bench");
    object.set_label("shard", &format!("s{}", n % 16));
    object.set_annotation("crossplane.io/external-name", &format!("widget-{n:07}"));
    object.set(
        "spec",
        json!({
            "forProvider": {
                "region": "eu-central-1", "size": n % 100, "engine": "redis", "engineVersion": "7.2",
                "subnets": ["subnet-0a1b2c3d4e5f", "subnet-1a2b3c4d5e6f", "subnet-2a3b4c5d6e7f"],
                "tags": {"team": "platform", "cost-center": "4711", "environment": "production"},
                "description": "x".repeat(420),
            },
            "providerConfigRef": {"name": "default"},
        }),
    );
    object
}

fn definition() -> serde_json::Value {
    let text = json!({"type": "string", "maxLength": 1024});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.bench.concert.dev"},
        "spec": {
            "group": "bench.concert.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["forProvider"], "properties": {
                        "forProvider": {"type": "object", "required": ["region"], "properties": {
                            "region": text, "size": {"type": "integer", "minimum": 0}, "engine": text,
                            "engineVersion": {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)*$"},
                            "subnets": {"type": "array", "items": text},
                            "tags": {"type": "object", "additionalProperties": text},
                            "description": text,
                            "deletionProtection": {"type": "boolean", "default": false},
                        }},
                        "providerConfigRef": {"type": "object", "properties": {"name": text}},
                    }},
                    "status": {"type": "object", "properties": {
                        "atProvider": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "conditions": {"type": "array", "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["type"], "items": {"type": "object",
                            "required": ["type", "status"], "properties": {"type": text, "status": text,
                            "reason": text, "message": text, "lastTransitionTime": text,
                            "observedGeneration": {"type": "integer"}}}},
                    }},
                }}},
            }],
        },
    })
}
