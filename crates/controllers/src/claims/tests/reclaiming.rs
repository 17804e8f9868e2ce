//! What is bound to a claim that somebody tore away.

use concert_model::{GroupKind, ObjectKey, Patch};
use concert_store::{Delete, Part, Store};
use serde_json::json;

use super::world::{DEFINITIONS, World, by, class_ref, documents, secret, stores};

/// Takes an object away with its finalizers, before anybody who keeps it can look.
async fn tear(world: &World, key: &ObjectKey) {
    world.local.delete(key, &Delete::default(), &by()).await.unwrap();
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.local.patch(key, Part::Main, &none, &by()).await.unwrap();
    assert!(!world.has(key).await);
}

/// A bound claim by a class with this policy, and its managed resource.
async fn bound(world: &World, policy: &str) -> (ObjectKey, ObjectKey) {
    world.class("c", json!({}), json!({"reclaimPolicy": policy})).await;
    let claim = world.redis("app", json!({"classRef": class_ref("c")})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
    let managed = world.managed(&claim).await.unwrap().key().unwrap();
    (claim, managed)
}

#[tokio::test(start_paused = true)]
async fn with_delete_it_goes_although_its_claim_did_not_let_go() {
    let world = World::new().await;
    let (claim, _) = bound(&world, "Delete").await;
    tear(&world, &claim).await;
    world.settle().await;
    assert!(world.list(stores()).await.is_empty());
    assert_eq!(world.live(), 0);
    assert!(!world.has(&secret("team", "app-conn")).await);
    assert_eq!(world.told("UnboundManagedResource"), 1);
}

#[tokio::test(start_paused = true)]
async fn with_retain_it_is_released_and_says_no_more_whose_it_was() {
    let world = World::new().await;
    let (claim, managed) = bound(&world, "Retain").await;
    tear(&world, &claim).await;
    world.settle().await;
    assert_eq!(world.phase(&managed).await, "Released");
    assert!(world.get(&managed).await.spec().get("claimRef").is_none());
    assert_eq!(world.live(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_made_again_gets_another_and_keeps_it() {
    let world = World::new().await;
    let (claim, before) = bound(&world, "Delete").await;
    tear(&world, &claim).await;
    let again = world.redis("app", json!({"classRef": class_ref("c")})).await;
    for _ in 0..6 {
        world.settle().await;
    }
    let managed = world.managed(&again).await.unwrap();
    assert_ne!(managed.key().unwrap(), before);
    assert_eq!(world.list(stores()).await.len(), 1);
    assert_eq!((world.phase(&again).await.as_str(), world.live()), ("Bound", 1));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_ended_without_a_definition_and_it_is_made_up_for_when_it_comes_back() {
    let world = World::new().await;
    let (claim, managed) = bound(&world, "Delete").await;
    let definitions = GroupKind::new("concert.dev", "ClaimDefinition");
    tear(&world, &ObjectKey::cluster(definitions, "rediscluster")).await;
    world.settle().await;
    tear(&world, &claim).await;
    world.settle().await;
    assert_eq!((world.phase(&managed).await.as_str(), world.live()), ("Bound", 1));
    let redis = documents(DEFINITIONS).into_iter().find(|it| it["metadata"]["name"] == "rediscluster");
    world.create(redis.unwrap()).await;
    world.settle().await;
    assert!(!world.has(&managed).await);
    assert_eq!(world.live(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_bound_outlives_the_kind_of_its_claim() {
    let world = World::new().await;
    let (claim, managed) = bound(&world, "Delete").await;
    // It cannot go yet, and nor can it be known why its claims do.
    let name = "redisclusters.cache.crossplane.io";
    let kind = ObjectKey::cluster(GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition"), name);
    world.patch(&kind, json!({"metadata": {"finalizers": ["test.dev/held"]}})).await;
    world.local.delete(&kind, &Delete::default(), &by()).await.unwrap();
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.local.delete(&claim, &Delete::default(), &by()).await.unwrap();
    world.local.patch(&claim, Part::Main, &none, &by()).await.unwrap();
    world.settle().await;
    assert_eq!((world.phase(&managed).await.as_str(), world.live()), ("Bound", 1));
}
