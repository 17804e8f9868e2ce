use std::sync::Arc;
use std::time::Duration;

use concert_engine::{Lane, Outcome, Reasons, Reconciler, Request};
use concert_model::ObjectKey;
use concert_store::{Chance, Clock};
use serde_json::{Value, json};

use super::world::{World, class_ref, is_default};
use crate::claims::hands::Hands;
use crate::claims::schedule::{Manner, Scheduler};

fn policy(name: &str, class: &str) -> Value {
    json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisClusterPolicy",
        "metadata": {"name": name, "namespace": "team"}, "defaultClassRef": class_ref(class)})
}

fn selecting(grade: &str) -> Value {
    json!({"classSelector": {"matchLabels": {"grade": grade}}})
}

#[tokio::test(start_paused = true)]
async fn a_policy_comes_before_a_default_and_a_selector_before_both() {
    let world = World::new().await;
    world.class("default", is_default(), json!({})).await;
    world.class("political", json!({}), json!({})).await;
    world.class("selected", json!({"labels": {"grade": "prod"}}), json!({})).await;
    world.create(policy("p", "political")).await;
    let class = async |key| world.get(key).await.spec()["classRef"]["name"].clone();
    let by_policy = world.redis("a", json!({})).await;
    assert_eq!(class(&by_policy).await, "political");
    let by_selector = world.redis("b", selecting("prod")).await;
    assert_eq!(class(&by_selector).await, "selected");
    let elsewhere = world.redis_in("other", "c", json!({})).await;
    assert_eq!(class(&elsewhere).await, "default");
    let by_class = world.redis("d", json!({"classRef": class_ref("default"), "classSelector": {}})).await;
    assert_eq!(class(&by_class).await, "default");
    for claim in [by_policy, by_selector, elsewhere, by_class] {
        assert_eq!(world.phase(&claim).await, "Bound");
    }
    assert_eq!((world.told("SelectedResourceClass"), world.told("DefaultResourceClass")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_class_says_so_until_one_comes() {
    let world = World::new().await;
    let claim = world.redis("a", json!({})).await;
    let (status, _, message) = world.said(&claim, "Synced").await;
    assert_eq!(status, "False");
    assert!(message.starts_with("unable to locate a policy that specifies a default class"), "{message}");
    world.class("default", is_default(), json!({})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
    assert_eq!(world.said(&claim, "Synced").await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_comes_is_found_at_once() {
    let world = World::new().await;
    world.class("c", json!({}), json!({})).await;
    let claim = world.redis("a", json!({})).await;
    world.create(policy("p", "c")).await;
    world.settle().await;
    assert_eq!(world.phase(&claim).await, "Bound");
}

#[tokio::test(start_paused = true)]
async fn two_policies_are_said_and_one_that_goes_helps() {
    let world = World::new().await;
    world.class("c", json!({}), json!({})).await;
    world.create(policy("p", "c")).await;
    let second = world.create(policy("q", "c")).await;
    let claim = world.redis("a", json!({})).await;
    let (_, _, message) = world.said(&claim, "Synced").await;
    assert_eq!(
        message,
        "multiple policies that specify a default class defined for claim kind: p, q; delete all but one"
    );
    world.delete(second.key()).await;
    assert_eq!(world.phase(&claim).await, "Bound");
}

#[tokio::test(start_paused = true)]
async fn of_two_defaults_one_is_taken_and_that_is_said() {
    let world = World::new().await;
    world.class("one", is_default(), json!({})).await;
    world.class("two", is_default(), json!({})).await;
    let claim = world.redis("a", json!({})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
    let (_, reason, message) = world.said(&claim, "ClassChosen").await;
    assert_eq!(reason, "SeveralDefaultClasses");
    assert!(message.contains("among 2 default classes (one, two)"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_nothing_matches_says_so_until_something_does() {
    let world = World::new().await;
    let class = world.class("c", json!({"labels": {"grade": "dev"}}), json!({})).await;
    let claim = world.redis("a", selecting("prod")).await;
    let (_, _, message) = world.said(&claim, "Synced").await;
    assert!(message.starts_with("no class matches spec.classSelector"), "{message}");
    world.patch(&class, json!({"metadata": {"labels": {"grade": "prod"}}})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
}

/// One class for buckets on each of two clouds.
async fn two_clouds(world: &World, metadata: Value) {
    for (group, kind, fields) in [
        ("storage.aws.crossplane.io", "S3BucketClass", json!({"region": "us"})),
        ("storage.gcp.crossplane.io", "BucketClass", json!({"location": "US"})),
    ] {
        world
            .create(json!({"apiVersion": format!("{group}/v1beta1"), "kind": kind, "metadata": metadata,
                "specTemplate": {"writeConnectionSecretsToNamespace": "system",
                    "providerRef": {"name": "gcp"}, "forProvider": fields}}))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_defaults_on_two_clouds_one_is_taken_and_that_is_said() {
    let world = World::new().await;
    let mut metadata = is_default();
    metadata["name"] = json!("any");
    two_clouds(&world, metadata).await;
    let claim = world
        .create(json!({"apiVersion": "storage.crossplane.io/v1alpha1", "kind": "Bucket",
            "metadata": {"name": "b", "namespace": "team"}, "spec": {}}))
        .await;
    world.settle().await;
    assert_eq!(world.phase(claim.key()).await, "Bound");
    let (_, reason, message) = world.said(claim.key(), "ClassChosen").await;
    assert_eq!(reason, "SeveralDefaultClasses");
    assert!(message.contains("among 2 default classes (any, "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn classes_of_two_clouds_race_for_a_claim_and_one_wins() {
    let world = World::new().await;
    two_clouds(&world, json!({"name": "any", "labels": {"grade": "prod"}})).await;
    let mut kinds = std::collections::BTreeSet::new();
    for number in 0..12 {
        let claim = world
            .create(json!({"apiVersion": "storage.crossplane.io/v1alpha1", "kind": "Bucket",
                "metadata": {"name": format!("b{number}"), "namespace": "team"}, "spec": selecting("prod")}))
            .await;
        world.settle().await;
        assert_eq!(world.phase(claim.key()).await, "Bound");
        kinds.insert(world.get(claim.key()).await.spec()["classRef"]["kind"].to_string());
    }
    assert_eq!(kinds.len(), 2, "both have a chance");
    assert_eq!(world.live(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_names_a_missing_class_is_said_until_that_comes() {
    let world = World::new().await;
    world.create(policy("p", "later")).await;
    let claim = world.redis("a", json!({})).await;
    let (_, _, message) = world.said(&claim, "Synced").await;
    assert!(message.contains("CloudMemorystoreInstanceClass later does not exist: create it"), "{message}");
    world.class("later", json!({}), json!({})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
}

/// How long it takes until a claim has a class.
async fn time_to_choose(world: &World, claim: &ObjectKey) -> Duration {
    let (step, mut waited) = (Duration::from_millis(10), Duration::ZERO);
    while world.get(claim).await.spec()["classRef"].is_null() {
        assert!(waited < Duration::from_secs(10), "nobody chooses");
        world.clock.sleep(step).await;
        waited += step;
    }
    waited
}

#[tokio::test(start_paused = true)]
async fn who_has_rivals_waits_up_to_a_second_and_a_half_and_who_has_none_does_not() {
    let world = World::new().await;
    two_clouds(&world, json!({"name": "any", "labels": {"grade": "prod"}})).await;
    world.class("only", json!({"labels": {"grade": "prod"}}), json!({})).await;
    let mut waits = Vec::new();
    for number in 0..20 {
        let bucket = world
            .create(json!({"apiVersion": "storage.crossplane.io/v1alpha1", "kind": "Bucket",
                "metadata": {"name": format!("b{number}"), "namespace": "team"}, "spec": selecting("prod")}))
            .await;
        waits.push(time_to_choose(&world, bucket.key()).await);
    }
    // Of two that wait, the first counts.
    let (first, last) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
    assert!(*last <= Duration::from_millis(1_550) && *last > Duration::from_millis(500), "{waits:?}");
    assert!(*first < Duration::from_millis(500), "{waits:?}");
    let redis = world
        .create(json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
            "metadata": {"name": "r", "namespace": "team"}, "spec": selecting("prod")}))
        .await;
    assert!(time_to_choose(&world, redis.key()).await <= Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_class_looks_again_after_thirty_seconds() {
    let world = World::new().await;
    let claim = world.redis("a", selecting("prod")).await;
    let ensemble = world.claims.ensemble_of(&claim.kind).unwrap();
    let hands = Hands {
        name: "test".into(),
        store: Arc::new(world.local.clone()),
        clock: world.clock.clone(),
        chance: Chance::seeded(1),
        recorder: world.notes.clone(),
    };
    let implementation = ensemble.implementations[0].clone();
    let scheduler = Scheduler::new(Manner::Select, ensemble, implementation, hands);
    let request = Request {
        key: claim,
        attempt: 0,
        reasons: Reasons::default(),
        lane: Lane::Event,
        fence: None,
        is_onlooker: false,
        deadline: world.clock.elapsed() + Duration::from_secs(60),
        permit: None,
    };
    let outcome = scheduler.reconcile(request).await;
    assert!(
        matches!(&outcome, Outcome::Requeue(_, Some(wait)) if *wait == Duration::from_secs(30)),
        "{outcome:?}"
    );
}
