//! Definitions go after their objects.

use concert_model::condition::{self, Status};
use concert_store::{Propagation, Store};
use serde_json::json;

use super::world::{World, owner, widget_kind};

#[tokio::test(start_paused = true)]
async fn a_definition_takes_its_objects_along_and_what_they_own() {
    let world = World::started().await;
    let definition = world.define("Thing", "Namespaced").await;
    let thing = world.object("Thing", "thing", &[]).await;
    world.object("Widget", "owned", &[owner(&thing)]).await;
    world.object("Widget", "bystander", &[]).await;
    world.settle().await;
    world.delete_key(&definition, Propagation::Background).await;
    world.settle().await;
    assert!(world.local.get(&definition).await.is_err());
    assert!(world.local.kind(&widget_kind("Thing")).await.is_err());
    assert_eq!(world.names().await, ["bystander"]);
}

#[tokio::test(start_paused = true)]
async fn a_definition_waits_for_finalizers_and_says_so() {
    let world = World::started().await;
    let definition = world.define("Thing", "Namespaced").await;
    let held = world.object_in("default", "Thing", "held", &[], &["a.dev/f"]).await;
    let free = world.object_in("far", "Thing", "free", &[], &[]).await;
    world.delete_key(&definition, Propagation::Background).await;
    world.settle().await;
    assert!(!world.has(&free).await);
    let waiting = world.get(&definition).await;
    let told = condition::find(waiting.status(), "Terminating").unwrap();
    assert_eq!((told.status, told.reason.as_str()), (Status::True, "InstanceDeletionInProgress"));
    assert_eq!(told.message, "1 instances remain, with finalizers a.dev/f");
    world.settle().await;
    assert_eq!(world.get(&definition).await, waiting);
    world.release(held.key(), "a.dev/f").await;
    world.settle().await;
    assert!(world.local.get(&definition).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_was_never_accepted_takes_nothing_along() {
    let world = World::started().await;
    let widget = world.object("Widget", "one", &[]).await;
    let twin = world.create(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "twins.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "twins"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }));
    let twin = twin.await;
    world.delete(&twin, Propagation::Background).await;
    world.settle().await;
    assert!(!world.has(&twin).await);
    assert!(world.has(&widget).await);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_defined_again_is_watched_again() {
    let world = World::started().await;
    for _ in 0..2 {
        let definition = world.define("Thing", "Namespaced").await;
        let thing = world.object("Thing", "thing", &[]).await;
        world.object("Thing", "child", &[owner(&thing)]).await;
        world.object("Widget", "child", &[owner(&thing)]).await;
        world.settle().await;
        world.delete(&thing, Propagation::Foreground).await;
        world.settle().await;
        assert!(world.names().await.is_empty());
        world.delete_key(&definition, Propagation::Background).await;
        world.settle().await;
        assert!(world.local.get(&definition).await.is_err());
    }
    assert_eq!(world.known(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_definition_and_a_namespace_that_go_together_both_go() {
    let world = World::started().await;
    let definition = world.define("Thing", "Namespaced").await;
    let thing = world.object_in("far", "Thing", "thing", &[], &["a.dev/f"]).await;
    world.delete_key(&definition, Propagation::Background).await;
    world.delete_key(&super::world::namespace("far"), Propagation::Background).await;
    world.settle().await;
    world.release(thing.key(), "a.dev/f").await;
    world.settle().await;
    assert!(world.local.get(&definition).await.is_err());
    assert!(world.local.get(&super::world::namespace("far")).await.is_err());
}
