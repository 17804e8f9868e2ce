use serde_json::json;

use super::world::{World, class_ref, secret, store_ref, stores};
use crate::claims::vocabulary::FINALIZER;

#[tokio::test(start_paused = true)]
async fn with_delete_everything_goes_with_the_claim() {
    let world = World::new().await;
    world.class("c", json!({}), json!({"reclaimPolicy": "Delete"})).await;
    let claim = world.redis("app", json!({"classRef": class_ref("c")})).await;
    assert_eq!(world.live(), 1);
    world.delete(&claim).await;
    assert!(!world.has(&claim).await);
    assert!(world.list(stores()).await.is_empty());
    assert_eq!(world.live(), 0);
    assert!(!world.has(&secret("team", "app-conn")).await);
    assert_eq!(world.told("UnboundManagedResource"), 1);
}

#[tokio::test(start_paused = true)]
async fn with_retain_the_resource_stays_and_is_never_bound_again() {
    let world = World::new().await;
    world.class("c", json!({}), json!({"reclaimPolicy": "Retain"})).await;
    let claim = world.redis("app", json!({"classRef": class_ref("c")})).await;
    let managed = world.managed(&claim).await.unwrap().key().unwrap();
    world.delete(&claim).await;
    assert!(!world.has(&claim).await);
    assert_eq!(world.phase(&managed).await, "Released");
    assert!(world.get(&managed).await.spec().get("claimRef").is_none());
    let again = world.redis("again", json!({"resourceRef": store_ref(&managed.name)})).await;
    let (_, _, message) = world.said(&again, "Synced").await;
    assert!(message.contains("was released by an earlier claim"), "{message}");
    world.delete(&again).await;
    assert!(!world.has(&again).await);
    world.delete(&managed).await;
    assert!(!world.has(&managed).await);
    assert_eq!(world.live(), 1, "what it stood for stays");
}

#[tokio::test(start_paused = true)]
async fn one_made_by_hand_that_says_nothing_stays() {
    let world = World::new().await;
    let store = world.store("legacy", json!({})).await;
    let claim = world.redis("app", json!({"resourceRef": store_ref("legacy")})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
    world.delete(&claim).await;
    assert!(!world.has(&claim).await);
    assert_eq!(world.phase(&store).await, "Released");
    world.delete(&store).await;
    assert_eq!(world.live(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_never_bound_goes_at_once() {
    let world = World::new().await;
    for spec in [json!({}), json!({"classRef": class_ref("none")}), json!({"resourceRef": store_ref("none")})]
    {
        let claim = world.redis("app", spec).await;
        world.delete(&claim).await;
        assert!(!world.has(&claim).await);
    }
    assert_eq!(world.told("UnboundManagedResource"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_held_and_never_bound_tells_of_nothing_that_it_let_go() {
    let world = World::new().await;
    let claim = world
        .create(json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
            "metadata": {"name": "app", "namespace": "team", "finalizers": [FINALIZER]},
            "spec": {"resourceRef": store_ref("none")}}))
        .await;
    world.settle().await;
    world.delete(claim.key()).await;
    assert!(!world.has(claim.key()).await);
    assert_eq!(world.told("UnboundManagedResource"), 0);
}
