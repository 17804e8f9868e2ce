//! Namespaces go after their contents.

use concert_model::condition::{self, Condition};
use concert_store::{Propagation, Store};
use serde_json::json;

use super::world::{World, blocked_owner, namespace, owner};
use crate::gc::vocabulary::namespace::{CONTENT_FAILURE, CONTENT_REMAINING, FINALIZERS_REMAINING};

async fn condition_of(world: &World, kind: &str) -> Condition {
    condition::find(world.get(&namespace("far")).await.status(), kind).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_namespace_takes_its_contents_along_and_nothing_else() {
    let world = World::started().await;
    let near = world.object("Widget", "near", &[]).await;
    let outside = world.object("ClusterWidget", "outside", &[]).await;
    let root = world.object_in("far", "Widget", "root", &[], &[]).await;
    world.object_in("far", "Gadget", "child", &[blocked_owner(&root), owner(&outside)], &[]).await;
    for kind in ["ConfigMap", "Secret", "Event"] {
        world
            .create(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": "far"}}))
            .await;
    }
    world.delete_key(&namespace("far"), Propagation::Background).await;
    world.settle().await;
    assert!(world.local.get(&namespace("far")).await.is_err());
    assert_eq!(world.names().await, ["outside", "near"]);
    assert!(world.has(&near).await);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_says_what_it_waits_for() {
    let world = World::started().await;
    let one = world.object_in("far", "Widget", "one", &[], &["a.dev/f", "b.dev/g"]).await;
    let two = world.object_in("far", "Gadget", "two", &[], &["a.dev/f"]).await;
    world.object_in("far", "Gadget", "three", &[], &[]).await;
    world.delete_key(&namespace("far"), Propagation::Background).await;
    world.settle().await;
    assert_eq!(world.names().await, ["(two)", "(one)"]);
    let remaining = condition_of(&world, CONTENT_REMAINING).await;
    assert_eq!(
        remaining.message,
        "Some resources are remaining: gadgets.example.com has 1 resource instances, \
         widgets.example.com has 1 resource instances"
    );
    let finalizers = condition_of(&world, FINALIZERS_REMAINING).await;
    assert_eq!(
        finalizers.message,
        "Some content in the namespace has finalizers remaining: a.dev/f in 2 resource instances, \
         b.dev/g in 1 resource instances"
    );
    assert_eq!(condition_of(&world, CONTENT_FAILURE).await.reason, "ContentDeleted");
    assert_eq!(world.get(&namespace("far")).await.status()["phase"], "Terminating");
    world.release(two.key(), "a.dev/f").await;
    world.release(one.key(), "a.dev/f").await;
    world.settle().await;
    let remaining = condition_of(&world, CONTENT_REMAINING).await;
    assert_eq!(
        remaining.message,
        "Some resources are remaining: widgets.example.com has 1 resource instances"
    );
    let before = world.position().await;
    world.settle().await;
    assert_eq!(world.position().await, before);
    world.release(one.key(), "b.dev/g").await;
    world.settle().await;
    assert!(world.local.get(&namespace("far")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_others_keep_is_empty_and_says_so() {
    let world = World::started().await;
    let key = namespace("kept");
    world
        .create(json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "kept", "finalizers": ["a.dev/f"]}}))
        .await;
    world.object_in("kept", "Widget", "one", &[], &[]).await;
    world.delete_key(&key, Propagation::Background).await;
    world.settle().await;
    assert!(world.names().await.is_empty());
    let kept = world.get(&key).await;
    assert_eq!(kept.spec()["finalizers"], json!([]));
    assert_eq!(condition::find(kept.status(), CONTENT_REMAINING).unwrap().reason, "ContentRemoved");
    world.release(&key, "a.dev/f").await;
    assert!(world.local.get(&key).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_and_tried_again() {
    let world = World::started().await;
    world.object_in("far", "Widget", "one", &[], &[]).await;
    world.shaky.light_fuse(0, false);
    world.delete_key(&namespace("far"), Propagation::Background).await;
    world.settle().await;
    assert_eq!(world.names().await, ["one"]);
    world.shaky.mend();
    world.clock_on(120).await;
    assert!(world.local.get(&namespace("far")).await.is_err());
}
