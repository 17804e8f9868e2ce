use std::sync::Arc;
use std::time::Duration;

use concert_engine::Engine;
use concert_model::{Object, ObjectKey};
use concert_store::{Chance, Delete, Error};
use serde_json::{Value, json};

use super::run::{RETRY, pause_after};
use super::*;
use crate::managed::connection::fixtures::{World, by, gvk, quiet};
use crate::managed::event::Notes;
use crate::managed::vocabulary::config::{FINALIZER, LABEL_CONFIG, LABEL_CONFIG_KIND, USAGE_FINALIZER};

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
        let controller =
            controller(store, clock, notes.clone(), gvk(kind), usage, concert_engine::Authority::Alone);
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

#[test]
fn counting_is_a_small_part_of_the_time_and_never_far_behind() {
    let (millisecond, second) = (Duration::from_millis(1), Duration::from_secs(1));
    assert_eq!(pause_after(millisecond), second);
    assert_eq!(pause_after(100 * millisecond), 2 * second);
    assert_eq!(pause_after(60 * second), RETRY);
}

#[tokio::test(start_paused = true)]
async fn a_usage_that_is_to_go_counts_as_long_as_its_user_is_there() {
    let running = Running::start("ProviderConfig").await;
    let user = running.world.object("Bucket", "b", json!({"metadata": {"namespace": "default"}})).await;
    let owner = json!([{"apiVersion": "example.com/v1", "kind": "Bucket", "name": "b", "uid": user.uid(),
        "controller": true}]);
    let labels = json!({LABEL_CONFIG: "p", LABEL_CONFIG_KIND: "ProviderConfig"});
    let metadata = json!({"namespace": "default", "labels": labels, "ownerReferences": owner,
        "finalizers": [USAGE_FINALIZER]});
    let usage = running.world.object("ProviderConfigUsage", "u", json!({"metadata": metadata})).await;
    let usage = usage.key().unwrap();
    // A foreground deletion takes what is owned first.
    running.delete(&usage).await;
    assert_eq!(running.users().await, json!(1));
    running.delete(&user.key().unwrap()).await;
    // Its user has gone without letting it go: the next look finds that out.
    let mut config = running.world.get(&running.config).await;
    config.set_annotation("look", "again");
    running.world.store.update(config, &by()).await.unwrap();
    assert_eq!(running.users().await, json!(0));
    assert!(running.world.store.get(&usage).await.is_err());
}

/// A usage of the configuration `p` by a Bucket, held as a reconciler holds it.
async fn held(running: &Running) -> (Object, ObjectKey) {
    let user = running.world.object("Bucket", "b", json!({"metadata": {"namespace": "default"}})).await;
    let owner = json!([{"apiVersion": "example.com/v1", "kind": "Bucket", "name": "b", "uid": user.uid(),
        "controller": true}]);
    let labels = json!({LABEL_CONFIG: "p", LABEL_CONFIG_KIND: "ProviderConfig"});
    let metadata = json!({"namespace": "default", "labels": labels, "ownerReferences": owner,
        "finalizers": [USAGE_FINALIZER]});
    let usage = running.world.object("ProviderConfigUsage", "u", json!({"metadata": metadata})).await;
    (user, usage.key().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_usage_that_is_to_go_is_looked_at_until_its_user_has_gone() {
    let running = Running::start("ProviderConfig").await;
    let (user, usage) = held(&running).await;
    running.delete(&usage).await;
    assert_eq!(running.users().await, json!(1));
    running.delete(&user.key().unwrap()).await;
    tokio::time::advance(RETRY).await;
    assert_eq!(running.users().await, json!(0));
    assert!(running.world.store.get(&usage).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_usage_of_what_is_not_there_goes_with_its_user() {
    let running = Running::start("ProviderConfig").await;
    running.delete(&running.config).await;
    running.settle().await;
    assert!(running.world.store.get(&running.config).await.is_err());
    let (user, usage) = held(&running).await;
    running.settle().await;
    assert!(running.world.store.get(&usage).await.is_ok(), "its user is there");
    running.delete(&usage).await;
    running.settle().await;
    assert!(running.world.store.get(&usage).await.is_ok(), "its user is still there");
    running.delete(&user.key().unwrap()).await;
    tokio::time::advance(RETRY).await;
    running.settle().await;
    assert!(running.world.store.get(&usage).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn when_the_kind_of_usages_goes_first_nobody_is_held() {
    let running = Running::start("ProviderConfig").await;
    let usage = running.usage("default", "a", "ProviderConfig", true).await;
    assert_eq!(running.users().await, json!(1));
    running.delete(&running.config).await;
    running.settle().await;
    // As the collector does it: the objects first, then the definition.
    let definition = ObjectKey::cluster(
        concert_model::GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition"),
        "providerconfigusages.example.com",
    );
    running.delete(&definition).await;
    running.delete(&usage.key().unwrap()).await;
    let mut terminating = running.world.get(&definition).await;
    terminating.set_metadata("finalizers", json!([]));
    running.world.store.update(terminating, &by()).await.unwrap();
    running.settle().await;
    running.settle().await;
    assert!(running.world.store.get(&running.config).await.is_err());
}
