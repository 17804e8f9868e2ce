//! What stops to play does not strand the claims that are bound by it.

use concert_model::{GroupKind, ObjectKey};
use serde_json::{Value, json};

use super::world::{World, class_ref, secret, store_ref, stores};

fn redis() -> ObjectKey {
    ObjectKey::cluster(GroupKind::new("concert.dev", "ClaimDefinition"), "rediscluster")
}

fn crd(name: &str) -> ObjectKey {
    ObjectKey::cluster(GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition"), name)
}

/// A claim that is bound by the class `c`.
async fn bound(world: &World) -> ObjectKey {
    world.class("c", json!({}), json!({})).await;
    let claim = world.redis("app", json!({"classRef": class_ref("c")})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
    claim
}

/// The definition with another list of implementations.
async fn redefine(world: &World, change: impl FnOnce(&mut Value)) {
    let mut definition = world.get(&redis()).await.into_value();
    change(&mut definition["spec"]["implementations"]);
    world.patch(&redis(), json!({"spec": {"implementations": definition["spec"]["implementations"]}})).await;
}

/// A claim that came too late says why nothing is made for it.
async fn refused(world: &World, words: &str) {
    let late = world.redis("late", json!({"classRef": class_ref("c")})).await;
    let (_, _, message) = world.said(&late, "Synced").await;
    assert!(message.contains(words), "{message}");
    assert!(world.told("CannotConfigureManagedResource") > 0);
    world.delete(&late).await;
    assert!(!world.has(&late).await);
}

async fn follows(world: &World, claim: &ObjectKey) {
    let source = secret("system", &world.get(claim).await.uid().unwrap().0);
    world.patch(&source, json!({"data": {"extra": "bmV3"}})).await;
    assert_eq!(world.get(&secret("team", "app-conn")).await.get("data")["extra"], "bmV3");
}

async fn leaves(world: &World, claim: &ObjectKey) {
    world.delete(claim).await;
    assert!(!world.has(claim).await, "{:?}", world.get(claim).await.finalizers());
}

#[tokio::test(start_paused = true)]
async fn a_claim_can_go_when_the_kind_of_its_managed_resource_is_gone() {
    let world = World::new().await;
    let claim = bound(&world).await;
    world.delete(&crd("cloudmemorystoreinstances.cache.gcp.crossplane.io")).await;
    refused(&world, "CloudMemorystoreInstance.cache.gcp.crossplane.io is not defined").await;
    assert_eq!(world.said(&redis(), "Ready").await.1, "WaitingForKinds");
    leaves(&world, &claim).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_served_and_can_go_when_the_kind_of_its_class_is_gone() {
    let world = World::new().await;
    let claim = bound(&world).await;
    world.delete(&crd("cloudmemorystoreinstanceclasses.cache.gcp.crossplane.io")).await;
    refused(&world, "CloudMemorystoreInstanceClass.cache.gcp.crossplane.io is not defined").await;
    follows(&world, &claim).await;
    leaves(&world, &claim).await;
    assert!(world.list(stores()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_served_and_can_go_when_the_kind_of_policies_is_gone() {
    let world = World::new().await;
    let claim = bound(&world).await;
    world.delete(&crd("redisclusterpolicies.cache.crossplane.io")).await;
    refused(&world, "RedisClusterPolicy.cache.crossplane.io is not defined").await;
    follows(&world, &claim).await;
    leaves(&world, &claim).await;
    assert!(world.list(stores()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_served_and_can_go_when_the_mapping_is_broken() {
    for broken in ["claim.spec.engineVersoin", "claim."] {
        let world = World::new().await;
        let claim = bound(&world).await;
        redefine(&world, |them| them[0]["mapping"][0]["expression"] = json!(broken)).await;
        assert_eq!(world.said(&redis(), "Ready").await.1, "Invalid");
        refused(&world, "spec.implementations[0].mapping[0].expression").await;
        follows(&world, &claim).await;
        leaves(&world, &claim).await;
        assert!(world.list(stores()).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_served_and_can_go_when_its_implementation_was_taken_out() {
    let world = World::new().await;
    let claim = bound(&world).await;
    // Its class makes something else from now on.
    redefine(&world, |them| {
        them[0] = json!({"class": them[0]["class"],
            "managed": {"apiVersion": "database.gcp.crossplane.io/v1beta1", "kind": "CloudSQLInstance"}});
    })
    .await;
    assert_eq!(world.get(&redis()).await.status()["served"].as_array().unwrap().len(), 2);
    let bind = "claims/rediscluster.cache.crossplane.io/cloudmemorystoreinstance.cache.gcp.crossplane.io";
    let is_bind = |it: &&str| *it == bind;
    assert_eq!(world.claims.controllers().iter().filter(|it| is_bind(&&***it)).count(), 1);
    follows(&world, &claim).await;
    leaves(&world, &claim).await;
    assert!(world.list(stores()).await.is_empty());
    assert_eq!(world.get(&redis()).await.status()["served"].as_array().unwrap().len(), 1);
    assert_eq!(world.claims.controllers().iter().filter(|it| is_bind(&&***it)).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_definition_goes_after_its_claims_whatever_became_of_its_kinds() {
    let world = World::new().await;
    let claim = bound(&world).await;
    world.delete(&crd("cloudmemorystoreinstances.cache.gcp.crossplane.io")).await;
    world.delete(&redis()).await;
    assert_eq!(world.said(&redis(), "Ready").await.1, "Deleting");
    leaves(&world, &claim).await;
    assert!(!world.has(&redis()).await);
}

#[tokio::test(start_paused = true)]
async fn who_is_leaving_takes_on_nobody_new() {
    let world = World::new().await;
    let claim = bound(&world).await;
    world.store("legacy", json!({})).await;
    world.delete(&redis()).await;
    refused(&world, "it is being deleted").await;
    let late = world.redis("late", json!({"resourceRef": store_ref("legacy")})).await;
    assert_eq!(world.phase(&late).await, "");
    follows(&world, &claim).await;
    leaves(&world, &claim).await;
    assert!(!world.has(&redis()).await, "nothing is bound by it any more");
}

#[tokio::test(start_paused = true)]
async fn another_definition_takes_over_from_one_that_leaves() {
    let world = World::new().await;
    let claim = bound(&world).await;
    let mut heir = world.get(&redis()).await.into_value();
    heir["metadata"] = json!({"name": "the-heir"});
    heir["status"] = json!(null);
    let heir = world.create(heir).await.key().clone();
    world.settle().await;
    assert_eq!(world.said(&heir, "Ready").await.1, "Taken");
    world.delete(&redis()).await;
    assert!(!world.has(&redis()).await, "its claims are safe with the other");
    assert_eq!(world.said(&heir, "Ready").await.1, "Available");
    follows(&world, &claim).await;
    leaves(&world, &claim).await;
}
