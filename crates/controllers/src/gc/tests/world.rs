//! A store with two kinds, and the collectors on it, on a clock that moves when everybody waits.

use std::sync::Arc;
use std::time::Duration;

use concert_engine::{Engine, Tasks, TokioSpawn};
use concert_model::{Encoded, GroupKind, Object, ObjectKey};
use concert_store::backend::memory::Memory;
use concert_store::{
    By, Chance, Clock, Config, Delete, Error, Local, PageRequest, Propagation, Query, Store,
};
use serde_json::{Value, json};

use super::shaky::Shaky;
use crate::fixtures::PausedClock;
use crate::gc::{Parts, Running, Settings, start};

pub struct World {
    pub clock: Arc<PausedClock>,
    pub local: Local,
    pub shaky: Arc<Shaky>,
    running: Option<(Running, Tasks)>,
}

impl World {
    /// `Widget` and `Gadget` in namespaces, `ClusterWidget` outside, the namespaces `default` and `far`,
    /// and nobody who collects.
    pub async fn new() -> Self {
        let clock = Arc::new(PausedClock::new());
        let config = Config::new(clock.clone(), Chance::seeded(7)).inline();
        let local = Local::open(Arc::new(Memory::new()), config).unwrap();
        let shaky = Arc::new(Shaky::new(local.clone()));
        let world = Self { clock, local, shaky, running: None };
        world.define("Widget", "Namespaced").await;
        world.define("Gadget", "Namespaced").await;
        world.define("ClusterWidget", "Cluster").await;
        world.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})).await;
        world
    }

    /// The same, with collectors that have seen everything.
    pub async fn started() -> Self {
        let mut world = Self::new().await;
        world.start().await;
        world
    }

    pub async fn start(&mut self) {
        let tasks = Tasks::new(Arc::new(TokioSpawn::current()), self.clock.clone());
        let chance = Chance::seeded(3);
        let engine = Engine::new(self.shaky.clone(), self.clock.clone(), chance.fork(), tasks.clone());
        let local = self.local.clone();
        let parts = Parts {
            engine,
            store: self.shaky.clone(),
            clock: self.clock.clone(),
            chance,
            tasks: tasks.clone(),
            kinds: Arc::new(move || local.kinds()),
            settings: Settings::default(),
            fence: None,
        };
        let running = start(parts).unwrap();
        running.ready().await;
        self.running = Some((running, tasks));
    }

    /// Ends everything that runs; what it knew is lost.
    pub async fn stop(&mut self) {
        let (running, tasks) = self.running.take().expect("it was started");
        running.stop(Duration::from_secs(1)).await;
        assert!(tasks.names().is_empty(), "{:?}", tasks.names());
        drop((running, tasks));
        // What has stopped holds on to nothing.
        assert_eq!(Arc::strong_count(&self.shaky), 1);
    }

    pub fn known(&self) -> (usize, usize) {
        self.running.as_ref().expect("it was started").0.known()
    }

    /// Lets everybody work until only those are left who wait for longer than that.
    pub async fn settle(&self) {
        self.clock.sleep(Duration::from_secs(30)).await;
    }

    /// Lets so many seconds pass.
    pub async fn clock_on(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    pub async fn define(&self, kind: &str, scope: &str) -> ObjectKey {
        let plural = format!("{}s", kind.to_lowercase());
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = self.create(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com", "scope": scope, "names": {"kind": kind, "plural": plural},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema}}],
            },
        }));
        definition.await.key().clone()
    }

    pub async fn create(&self, object: Value) -> Encoded {
        self.local.create(Object::from_value(object).unwrap(), &by()).await.unwrap()
    }

    /// Creates an object in `default`, or outside if its kind has no namespaces.
    pub async fn object(&self, kind: &str, name: &str, owners: &[Value]) -> Encoded {
        let namespace = if kind.starts_with("Cluster") { "" } else { "default" };
        self.object_in(namespace, kind, name, owners, &[]).await
    }

    pub async fn object_in(
        &self,
        namespace: &str,
        kind: &str,
        name: &str,
        owners: &[Value],
        finalizers: &[&str],
    ) -> Encoded {
        let mut object = Object::new(&widget_kind(kind).at_version("v1"), namespace, name);
        object.set_metadata("ownerReferences", json!(owners));
        object.set_metadata("finalizers", json!(finalizers));
        self.local.create(object, &by()).await.unwrap()
    }

    pub async fn delete(&self, object: &Encoded, propagation: Propagation) {
        self.delete_key(object.key(), propagation).await;
    }

    pub async fn delete_key(&self, key: &ObjectKey, propagation: Propagation) {
        let options = Delete { propagation, ..Delete::default() };
        self.local.delete(key, &options, &by()).await.unwrap();
    }

    pub async fn get(&self, key: &ObjectKey) -> Object {
        self.local.get(key).await.unwrap().decode()
    }

    /// Whether this very incarnation is there.
    pub async fn has(&self, object: &Encoded) -> bool {
        match self.local.get(object.key()).await {
            Ok(found) => found.head().uid == object.head().uid,
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }

    pub async fn release(&self, key: &ObjectKey, finalizer: &str) {
        let mut object = self.get(key).await;
        assert!(object.remove_finalizer(finalizer));
        self.local.update(object, &by()).await.unwrap();
    }

    /// Names of all objects of our kinds, those that wait for finalizers in parentheses.
    pub async fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for kind in ["ClusterWidget", "Gadget", "Widget"] {
            let Ok(page) = self.local.list(&Query::all(widget_kind(kind)), &PageRequest::whole()).await
            else {
                continue;
            };
            for object in page.items {
                let name = object.key().name.to_string();
                names.push(if object.head().deleted_at.is_some() { format!("({name})") } else { name });
            }
        }
        names
    }

    /// Differs with every write.
    pub async fn position(&self) -> String {
        let page = self.local.list(&Query::all(widget_kind("Widget")), &PageRequest::whole()).await.unwrap();
        page.position.to_string()
    }
}

pub fn by() -> By {
    By::actor("test")
}

pub fn widget_kind(kind: &str) -> GroupKind {
    GroupKind::new("example.com", kind)
}

pub fn namespace(name: &str) -> ObjectKey {
    ObjectKey::cluster(GroupKind::new("", "Namespace"), name)
}

/// A reference to an owner, which need not wait for the object.
pub fn owner(object: &Encoded) -> Value {
    let gvk = object.body().gvk();
    json!({"apiVersion": gvk.api_version(), "kind": &*gvk.group_kind.kind, "name": &*object.key().name,
        "uid": &*object.head().uid.0})
}

/// A reference to an owner that waits for the object.
pub fn blocked_owner(object: &Encoded) -> Value {
    let mut reference = owner(object);
    reference["blockOwnerDeletion"] = json!(true);
    reference
}
