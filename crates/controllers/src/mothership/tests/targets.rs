//! What happens in target clusters.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use concert_model::inventory::names;
use concert_model::{GroupKind, Object, ObjectKey};
use concert_store::{Delete, Store as _};
use serde_json::{Value, json};

use super::world::{World, by, define};

fn instance(name: &str, size: i64) -> Object {
    let kind = GroupKind::new("services.example.com", "ServiceInstance").at_version("v1alpha1");
    let mut object = Object::new(&kind, "", name);
    object.set("spec", json!({"size": size}));
    object
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster(GroupKind::new("services.example.com", "ServiceInstance"), name)
}

fn cares() -> Value {
    json!({"clusterEvents": [{"group": "services.example.com", "version": "v1alpha1", "kind": "ServiceInstance"}]})
}

async fn world() -> World {
    let world = World::new().await;
    define(&world.target, "services.example.com", "ServiceInstance", "serviceinstances").await;
    world.register("connectivity-proxy", cares()).await;
    world.register("other", json!({})).await;
    world.runtime("rt-1").await;
    world.do_well("connectivity-proxy").await;
    world.do_well("other").await;
    world
}

#[tokio::test(start_paused = true)]
async fn r7_chosen_kinds_are_watched_in_a_target_cluster_as_soon_as_there_are_credentials() {
    let world = world().await;
    world.target.create(instance("early", 1), &by()).await.unwrap();
    world.settle().await;
    world.nothing("connectivity-proxy").await;
    world.put("rt-1", "credentials", json!({"kubeconfig": "1"})).await;
    world.pass(2).await;
    world.nothing("connectivity-proxy").await;
    world.target.create(instance("a", 1), &by()).await.unwrap();
    world.settle().await;
    let item = world.one("connectivity-proxy").await;
    assert!(item.reasons.contains("cluster-event"), "{}", item.reasons);
    world.say("connectivity-proxy", &item, "ready").await;
    world.nothing("other").await;
    world.pass(5).await;
    let mut changed = world.target.get(&key("a")).await.unwrap().decode();
    changed.set("spec", json!({"size": 2}));
    world.target.update(changed, &by()).await.unwrap();
    world.settle().await;
    world.do_well("connectivity-proxy").await;
    world.pass(5).await;
    world.target.delete(&key("a"), &Delete::default(), &by()).await.unwrap();
    world.settle().await;
    world.do_well("connectivity-proxy").await;
}

#[tokio::test(start_paused = true)]
async fn r7_other_credentials_wake_nobody_and_nothing_is_missed_over_them() {
    let world = world().await;
    world.put("rt-1", "credentials", json!({"kubeconfig": "1"})).await;
    world.target.create(instance("a", 1), &by()).await.unwrap();
    world.settle().await;
    world.do_well("connectivity-proxy").await;
    world.pass(5).await;
    for version in 2..5 {
        world.put("rt-1", "credentials", json!({"kubeconfig": version.to_string()})).await;
        world.pass(2).await;
        world.nothing("connectivity-proxy").await;
    }
    world.target.create(instance("b", 1), &by()).await.unwrap();
    world.settle().await;
    world.do_well("connectivity-proxy").await;
}

#[tokio::test(start_paused = true)]
async fn r7_nothing_is_watched_that_nobody_wants_any_more() {
    let world = world().await;
    world.put("rt-1", "credentials", json!({"kubeconfig": "1"})).await;
    world.deregister("connectivity-proxy").await;
    world.target.create(instance("a", 1), &by()).await.unwrap();
    world.settle().await;
    world.register("connectivity-proxy", cares()).await;
    world.pass(2).await;
    world.patch_entry("rt-1", json!({"spec": {"paused": true}})).await;
    world.target.create(instance("b", 1), &by()).await.unwrap();
    world.settle().await;
    world.nothing("connectivity-proxy").await;
}

#[tokio::test(start_paused = true)]
async fn r7_what_comes_while_there_are_no_credentials_is_news_although_nothing_was_there_before() {
    let world = world().await;
    world.put("rt-1", "credentials", json!({"kubeconfig": "1"})).await;
    world.pass(2).await;
    world.nothing("connectivity-proxy").await;
    let credentials = names::section_key("rt-1", "credentials");
    world.inventory.delete(&credentials, &Delete::default(), &by()).await.unwrap();
    world.pass(2).await;
    world.target.create(instance("a", 1), &by()).await.unwrap();
    world.settle().await;
    world.nothing("connectivity-proxy").await;
    world.put("rt-1", "credentials", json!({"kubeconfig": "2"})).await;
    world.pass(2).await;
    let item = world.one("connectivity-proxy").await;
    assert!(item.reasons.contains("cluster-event"), "{}", item.reasons);
}

#[tokio::test(start_paused = true)]
async fn r7_a_kind_that_a_cluster_gets_later_is_watched_from_then_on() {
    let world = World::new().await;
    world.register("connectivity-proxy", cares()).await;
    world.runtime("rt-1").await;
    world.do_well("connectivity-proxy").await;
    world.put("rt-1", "credentials", json!({"kubeconfig": "1"})).await;
    world.pass(120).await;
    world.nothing("connectivity-proxy").await;
    define(&world.target, "services.example.com", "ServiceInstance", "serviceinstances").await;
    world.target.create(instance("a", 1), &by()).await.unwrap();
    world.pass(60).await;
    let item = world.one("connectivity-proxy").await;
    assert!(item.reasons.contains("cluster-event"), "{}", item.reasons);
}

#[tokio::test(start_paused = true)]
async fn r7_a_cluster_that_cannot_be_found_is_looked_for_again_by_the_same_credentials() {
    let world = world().await;
    world.way.is_lost.store(true, Ordering::Relaxed);
    world.put("rt-1", "credentials", json!({"kubeconfig": "1"})).await;
    world.pass(60).await;
    world.way.is_lost.store(false, Ordering::Relaxed);
    world.pass(600).await;
    world.target.create(instance("a", 1), &by()).await.unwrap();
    world.settle().await;
    let item = world.one("connectivity-proxy").await;
    assert!(item.reasons.contains("cluster-event"), "{}", item.reasons);
}

#[tokio::test(start_paused = true)]
async fn r7_a_cluster_too_many_waits_for_a_place_and_gets_the_next_that_is_free() {
    let world = World::new().await;
    world.register("connectivity-proxy", cares()).await;
    let all: BTreeSet<String> = (0..=1_000).map(|number| format!("rt-{number}")).collect();
    for id in &all {
        world.runtime(id).await;
        world.put(id, "credentials", json!({"kubeconfig": "1"})).await;
    }
    world.pass(3_600).await;
    let asked = world.way.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1_000);
    let watched = asked.first().unwrap();
    world.patch_entry(watched, json!({"spec": {"paused": true}})).await;
    world.pass(5).await;
    assert_eq!(*world.way.asked.lock().unwrap(), all, "the last one has its place");
}
