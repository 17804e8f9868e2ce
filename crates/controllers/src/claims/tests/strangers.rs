//! What somebody tries who may only write in one namespace.

use concert_model::{Object, Patch};
use concert_store::{Part, Store};
use serde_json::{Value, json};

use super::world::{World, by, class_ref, secret, store_ref, stores};

/// The claim kinds that are shipped.
const CLAIMS: [(&str, &str); 5] = [
    ("storage.crossplane.io", "Bucket"),
    ("cache.crossplane.io", "RedisCluster"),
    ("compute.crossplane.io", "KubernetesCluster"),
    ("database.crossplane.io", "MySQLInstance"),
    ("database.crossplane.io", "PostgreSQLInstance"),
];

/// A claim of another team that is bound, and the name of its managed resource.
async fn theirs(world: &World) -> (concert_model::ObjectKey, String) {
    world.class("c", json!({}), json!({})).await;
    let claim = world.redis_in("other", "theirs", json!({"classRef": class_ref("c")})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
    let managed = world.managed(&claim).await.unwrap();
    (claim, managed.name().to_owned())
}

fn copy(from: &concert_model::Object) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1",
        "metadata": {"name": "loot", "namespace": "team", "annotations": {
            "from.propagate.crossplane.io/namespace": from.namespace(),
            "from.propagate.crossplane.io/name": from.name(),
            "from.propagate.crossplane.io/uid": &*from.uid().unwrap().0}}})
}

#[tokio::test(start_paused = true)]
async fn a_forged_resource_reference_binds_and_frees_nothing() {
    let world = World::new().await;
    let (claim, name) = theirs(&world).await;
    let before = world.managed(&claim).await.unwrap();
    let forged = world.redis("forged", json!({"resourceRef": store_ref(&name)})).await;
    assert_ne!(world.phase(&forged).await, "Bound");
    let (_, _, message) = world.said(&forged, "Synced").await;
    assert!(message.contains("belongs to another claim (another namespace)"), "{message}");
    assert!(!world.has(&secret("team", "forged-conn")).await);
    world.delete(&forged).await;
    assert!(!world.has(&forged).await);
    assert_eq!(world.managed(&claim).await.unwrap(), before);
    assert_eq!(world.live(), 1);
}

/// One without a name would count as none, and the claim would get a class that nobody asked for.
#[tokio::test(start_paused = true)]
async fn a_class_must_be_named_in_full() {
    let world = World::new().await;
    for (group, kind) in CLAIMS {
        for lacks in ["apiVersion", "kind", "name"] {
            let mut class = class_ref("c");
            class.as_object_mut().unwrap().remove(lacks);
            let claim = json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind,
                "metadata": {"name": "x", "namespace": "team"}, "spec": {"classRef": class}});
            let refused = world.local.create(Object::from_value(claim).unwrap(), &by()).await;
            let error = refused.expect_err("it is refused").to_string();
            assert!(error.contains(&format!("spec.classRef.{lacks}: Required value")), "{kind}: {error}");
        }
    }
}

/// Who could point a claim elsewhere would leave what was made for it to nobody.
#[tokio::test(start_paused = true)]
async fn a_claim_cannot_be_turned_away_from_its_resource() {
    let world = World::new().await;
    for (group, kind) in CLAIMS {
        let reference = json!({"apiVersion": "a.dev/v1", "kind": "A", "name": "x"});
        let claim = world
            .create(json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind,
                "metadata": {"name": "x", "namespace": "team"}, "spec": {"resourceRef": reference}}))
            .await;
        for changed in
            [json!({"apiVersion": "b.dev/v1"}), json!({"kind": "B"}), json!({"name": "y"}), Value::Null]
        {
            let patch = Patch::Merge(json!({"spec": {"resourceRef": changed}}));
            let refused = world.local.patch(claim.key(), Part::Main, &patch, &by()).await;
            let error = refused.expect_err("it is refused").to_string();
            assert!(error.contains("resourceRef cannot change once it is set"), "{kind} {changed}: {error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_name_again_is_another_claim() {
    let world = World::new().await;
    world.class("keep", json!({}), json!({"reclaimPolicy": "Retain"})).await;
    let first = world.redis("app", json!({"classRef": class_ref("keep")})).await;
    let name = world.managed(&first).await.unwrap().name().to_owned();
    world.delete(&first).await;
    let second = world.redis("app", json!({"resourceRef": store_ref(&name)})).await;
    assert_ne!(world.phase(&second).await, "Bound");
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_somebody_elses_name_is_not_touched() {
    let world = World::new().await;
    world.class("c", json!({}), json!({})).await;
    let victim = world
        .create(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "victim", "namespace": "team"},
            "data": {"token": "c2VjcmV0"}}),
        )
        .await;
    let spec = json!({"classRef": class_ref("c"), "writeConnectionSecretToRef": {"name": "victim"}});
    let claim = world.redis("app", spec).await;
    let (_, _, message) = world.said(&claim, "Synced").await;
    assert!(message.starts_with("cannot establish control of existing connection secret"), "{message}");
    assert_eq!(world.get(victim.key()).await, victim.decode());
    assert_ne!(world.phase(&claim).await, "Bound");
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_says_where_it_is_from_gets_nothing_without_consent() {
    let world = World::new().await;
    let (claim, _) = theirs(&world).await;
    let source = world.get(&secret("system", &world.get(&claim).await.uid().unwrap().0)).await;
    let mine = world.redis("mine", json!({"resourceRef": store_ref("none")})).await;
    let mut loot = copy(&source);
    loot["metadata"]["ownerReferences"] = json!([{"apiVersion": "cache.crossplane.io/v1alpha1",
        "kind": "RedisCluster", "name": "mine", "uid": &*world.get(&mine).await.uid().unwrap().0,
        "controller": true}]);
    world.create(loot).await;
    world.patch(&secret("system", source.name()), json!({"data": {"again": "eA=="}})).await;
    assert!(world.get(&secret("team", "loot")).await.get("data").is_null());
}

#[tokio::test(start_paused = true)]
async fn a_reserved_resource_is_for_whom_it_is_reserved() {
    let world = World::new().await;
    let reserved = json!({"claimRef": {"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
        "namespace": "other", "name": "chosen"}});
    world.store("aside", reserved).await;
    let thief = world.redis("chosen", json!({"resourceRef": store_ref("aside")})).await;
    assert_ne!(world.phase(&thief).await, "Bound");
    let chosen = world.redis_in("other", "chosen", json!({"resourceRef": store_ref("aside")})).await;
    assert_eq!(world.phase(&chosen).await, "Bound");
}

#[tokio::test(start_paused = true)]
async fn namespaces_in_references_change_nothing() {
    let world = World::new().await;
    let mut class = class_ref("c");
    class["namespace"] = json!("elsewhere");
    world.class("c", json!({}), json!({})).await;
    let spec =
        json!({"classRef": class, "writeConnectionSecretToRef": {"name": "conn", "namespace": "other"}});
    let claim = world.redis("app", spec).await;
    assert_eq!(world.phase(&claim).await, "Bound");
    assert!(world.has(&secret("team", "conn")).await);
    assert!(!world.has(&secret("other", "conn")).await);
}

#[tokio::test(start_paused = true)]
async fn a_claim_cannot_say_that_somebody_elses_external_resource_is_its_own() {
    let world = World::new().await;
    let (claim, name) = theirs(&world).await;
    let thief = world
        .create(json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
            "metadata": {"name": "thief", "namespace": "team", "annotations": {"crossplane.io/external-name": name}},
            "spec": {"classRef": class_ref("c"), "writeConnectionSecretToRef": {"name": "loot"}}}))
        .await;
    world.settle().await;
    let (_, _, message) = world.said(thief.key(), "Synced").await;
    assert!(message.contains("may not say which external resource it means"), "{message}");
    assert_eq!(world.list(stores()).await.len(), 1);
    world.delete(thief.key()).await;
    assert_eq!(world.phase(&claim).await, "Bound");
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_classes_and_nothing_else() {
    let world = World::new().await;
    theirs(&world).await;
    for selector in [json!({"matchLabels": {"a b": "c"}}), json!({"matchLabels": {"kind": "RedisCluster"}})] {
        let claim = world.redis("trick", json!({"classSelector": selector})).await;
        assert_eq!(world.said(&claim, "Synced").await.0, "False");
        assert!(world.get(&claim).await.spec().get("classRef").is_none());
        world.delete(&claim).await;
        assert!(!world.has(&claim).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_a_stranger_controls_is_not_copied() {
    let world = World::new().await;
    // Somebody else's secret is where the managed resource is said to publish its own.
    let stranger = world
        .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stranger",
            "namespace": "system"}}))
        .await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "stranger",
        "uid": stranger.head().uid.to_string(), "controller": true});
    world
        .create(json!({"apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1",
            "metadata": {"name": "legacy-conn", "namespace": "system", "ownerReferences": [owner]},
            "data": {"password": "c2VjcmV0"}}))
        .await;
    world.store("legacy", json!({})).await;
    let claim = world.redis("app", json!({"resourceRef": store_ref("legacy")})).await;
    assert_ne!(world.phase(&claim).await, "Bound");
    assert!(!world.has(&secret("team", "app-conn")).await);
}
