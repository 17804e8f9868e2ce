use std::sync::Arc;
use std::time::Duration;

use concert_engine::Engine;
use concert_model::{Object, ObjectKey};
use concert_store::{Chance, Delete, Error};
use serde_json::{Value, json};

use super::*;
use crate::managed::connection::fixtures::{World, by, gvk, quiet};
use crate::managed::event::Notes;
use crate::managed::vocabulary::config::{FINALIZER, LABEL_CONFIG, LABEL_CONFIG_KIND};

/// A controller for a kind of configuration, which runs.
struct Running {
    world: World,
    notes: Arc<Notes>,
    _engine: Engine,
    config: ObjectKey,
}

impl Running {
    async fn start(kind: &str) -> Self {
        let (world, notes) = (World::new().await, Arc::new(Notes::new()));
        world.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})).await;
        let usage = gvk("ProviderConfigUsage");
        let (store, clock) = (world.store.clone(), world.clock.clone());
        let controller = controller(store, clock, notes.clone(), gvk(kind), usage, None);
        let engine =
            Engine::new(world.store.clone(), world.clock.clone(), Chance::seeded(1), world.tasks.clone());
        let handle = engine.start(controller).unwrap();
        handle.ready().await;
        let config = world.object(kind, "p", json!({})).await.key().unwrap();
        let running = Self { world, notes, _engine: engine, config };
        running.settle().await;
        running
    }

    /// Lets the pause between two counts pass.
    async fn settle(&self) {
        quiet().await;
        tokio::time::advance(Duration::from_secs(1)).await;
        quiet().await;
    }

    async fn usage(&self, namespace: &str, name: &str, kind: &str, is_owned: bool) -> Object {
        let owner = json!([{"apiVersion": "example.com/v1", "kind": "Bucket", "name": name, "uid": name,
            "controller": true}]);
        let mut metadata = json!({"namespace": namespace, "labels": {LABEL_CONFIG: "p"}});
        if !kind.is_empty() {
            metadata["labels"][LABEL_CONFIG_KIND] = json!(kind);
        }
        if is_owned {
            metadata["ownerReferences"] = owner;
        }
        self.world.object("ProviderConfigUsage", name, json!({"metadata": metadata})).await
    }

    async fn delete(&self, key: &ObjectKey) {
        self.world.store.delete(key, &Delete::default(), &by()).await.unwrap();
    }

    async fn users(&self) -> Value {
        self.settle().await;
        self.world.get(&self.config).await.status()["users"].clone()
    }
}

#[tokio::test(start_paused = true)]
async fn users_are_counted_as_they_come_and_go() {
    let running = Running::start("ProviderConfig").await;
    assert_eq!(running.world.get(&running.config).await.finalizers(), [FINALIZER]);
    assert_eq!(running.users().await, json!(0));
    let usage = running.usage("default", "a", "ProviderConfig", true).await;
    running.usage("default", "b", "ProviderConfig", true).await;
    assert_eq!(running.users().await, json!(2));
    let before = running.world.get(&running.config).await;
    running.delete(&usage.key().unwrap()).await;
    assert_eq!(running.users().await, json!(1));
    // What changes nothing writes nothing.
    let after = running.world.get(&running.config).await;
    assert_eq!(after.generation(), before.generation());
    running.settle().await;
    assert_eq!(running.world.get(&running.config).await, after);
}

#[tokio::test(start_paused = true)]
async fn usages_of_other_kinds_and_namespaces_do_not_count() {
    let running = Running::start("ProviderConfig").await;
    running.usage("default", "a", "ClusterProviderConfig", true).await;
    running.usage("far", "b", "ProviderConfig", true).await;
    running.usage("default", "c", "", true).await;
    assert_eq!(running.users().await, json!(1));

    let cluster = Running::start("ClusterProviderConfig").await;
    cluster.usage("default", "a", "ClusterProviderConfig", true).await;
    cluster.usage("far", "b", "ClusterProviderConfig", true).await;
    cluster.usage("far", "c", "ProviderConfig", true).await;
    assert_eq!(cluster.users().await, json!(2));
}

#[tokio::test(start_paused = true)]
async fn a_usage_that_lost_its_controller_is_deleted() {
    let running = Running::start("ProviderConfig").await;
    running.usage("default", "a", "ProviderConfig", false).await;
    running.usage("default", "b", "ProviderConfig", true).await;
    assert_eq!(running.users().await, json!(1));
    let left = running.world.list(gvk("ProviderConfigUsage").group_kind).await;
    assert_eq!(left.iter().map(Object::name).collect::<Vec<_>>(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_the_last_user() {
    let running = Running::start("ClusterProviderConfig").await;
    let usage = running.usage("default", "a", "ClusterProviderConfig", true).await;
    running.settle().await;
    running.delete(&running.config).await;
    assert_eq!(running.users().await, json!(1));
    let config = running.world.get(&running.config).await;
    assert_eq!(config.status()["conditions"][0]["type"], json!("Terminating"));
    let notes = running.notes.taken();
    let (component, event) = notes.first().expect("somebody is told");
    assert_eq!(&**component, "providerconfig/clusterproviderconfig.example.com");
    assert_eq!((event.is_warning, event.reason), (true, "UsageAccounting"));
    assert_eq!(event.message, "Blocking deletion while usages still exist");

    running.delete(&usage.key().unwrap()).await;
    running.settle().await;
    let gone = running.world.store.get(&running.config).await;
    assert!(matches!(gone, Err(Error::NotFound { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_unused_configuration_goes_at_once() {
    let running = Running::start("ProviderConfig").await;
    running.delete(&running.config).await;
    running.settle().await;
    assert!(running.world.store.get(&running.config).await.is_err());
    assert!(running.notes.taken().is_empty());
}

#[tokio::test(start_paused = true)]
async fn users_that_come_together_are_counted_together() {
    let running = Running::start("ProviderConfig").await;
    running.settle().await;
    for number in 0..20 {
        running.usage("default", &format!("u{number}"), "ProviderConfig", true).await;
        quiet().await;
    }
    // The first is counted at once, the others together when the pause is over.
    assert_eq!(running.world.get(&running.config).await.status()["users"], json!(1));
    assert_eq!(running.users().await, json!(20));
}
