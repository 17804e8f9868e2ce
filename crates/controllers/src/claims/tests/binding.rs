use serde_json::{Value, json};

use super::world::{World, class_ref, secret, store_ref, stores};

#[tokio::test(start_paused = true)]
async fn a_claim_by_class_is_bound_and_can_be_used() {
    let world = World::new().await;
    world.class("ha", json!({}), json!({})).await;
    let claim = world.redis("app", json!({"classRef": class_ref("ha"), "engineVersion": "3.2"})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
    let expected = ("True".into(), "Resource is available for use".into(), String::new());
    assert_eq!(world.said(&claim, "Ready").await, expected);
    let synced = world.said(&claim, "Synced").await;
    assert_eq!((synced.0.as_str(), synced.1.as_str()), ("True", "Successfully reconciled resource"));
    let managed = world.managed(&claim).await.unwrap();
    assert_eq!(managed.status()["bindingPhase"], "Bound");
    assert_eq!(managed.spec()["forProvider"]["redisVersion"], "REDIS_3_2");
    assert_eq!(managed.spec()["reclaimPolicy"], "Delete");
    let copied = world.get(&secret("team", "app-conn")).await;
    assert!(copied.get("data")["password"].is_string(), "{copied:?}");
    let external = world.get(&claim).await.annotation("crossplane.io/external-name").map(str::to_owned);
    assert_eq!(external.as_deref(), Some(managed.name()));
    assert_eq!((world.told("CreatedManagedResource"), world.told("BoundManagedResource")), (1, 1));
    assert_eq!(world.live(), 1);
    // Other programs know them by these names.
    assert_eq!(world.get(&claim).await.finalizers(), ["finalizer.resourceclaim.crossplane.io"]);
    assert_eq!(managed.finalizers(), ["finalizer.managedresource.crossplane.io"]);
}

/// The kind and plural group of a claim, its class kind and group, and what the class is for.
const PORTABLE: [(&str, &str, &str, &str, &str); 6] = [
    ("storage.crossplane.io", "Bucket", "storage.aws.crossplane.io", "S3BucketClass", r#"{"region": "us"}"#),
    ("storage.crossplane.io", "Bucket", "storage.gcp.crossplane.io", "BucketClass", r#"{"location": "US"}"#),
    (
        "cache.crossplane.io",
        "RedisCluster",
        "cache.gcp.crossplane.io",
        "CloudMemorystoreInstanceClass",
        r#"{"region": "us", "tier": "BASIC", "memorySizeGb": 1}"#,
    ),
    (
        "compute.crossplane.io",
        "KubernetesCluster",
        "compute.azure.crossplane.io",
        "AKSClusterClass",
        r#"{"location": "WestUS2"}"#,
    ),
    (
        "database.crossplane.io",
        "MySQLInstance",
        "database.gcp.crossplane.io",
        "CloudSQLInstanceClass",
        r#"{"region": "us", "tier": "db-n1-standard-1"}"#,
    ),
    (
        "database.crossplane.io",
        "PostgreSQLInstance",
        "database.gcp.crossplane.io",
        "CloudSQLInstanceClass",
        r#"{"region": "us", "tier": "db-n1-standard-1"}"#,
    ),
];

#[tokio::test(start_paused = true)]
async fn every_portable_claim_binds_on_each_of_its_clouds() {
    let world = World::new().await;
    for (number, (group, kind, class_group, class_kind, fields)) in PORTABLE.iter().enumerate() {
        let name = format!("class-{number}");
        let class_version = format!("{class_group}/v1beta1");
        let fields: Value = serde_json::from_str(fields).unwrap();
        world
            .create(json!({"apiVersion": class_version, "kind": class_kind, "metadata": {"name": name},
                "specTemplate": {"writeConnectionSecretsToNamespace": "system",
                    "providerRef": {"name": "gcp"}, "forProvider": fields}}))
            .await;
        let class = json!({"apiVersion": class_version, "kind": class_kind, "name": name});
        let claim = world
            .create(json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind,
                "metadata": {"name": format!("c{number}"), "namespace": "team"},
                "spec": {"classRef": class, "writeConnectionSecretToRef": {"name": format!("s{number}")}}}))
            .await;
        world.settle().await;
        assert_eq!(world.phase(claim.key()).await, "Bound", "{kind}: {:?}", world.get(claim.key()).await);
        assert!(world.has(&secret("team", &format!("s{number}"))).await, "{kind}");
    }
    assert_eq!(world.live(), PORTABLE.len());
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_there_already_is_bound_when_it_is_ready() {
    let world = World::new().await;
    let claim = world.redis("app", json!({"resourceRef": store_ref("legacy")})).await;
    let (status, reason, message) = world.said(&claim, "Ready").await;
    assert_eq!(status, "False");
    assert_eq!(reason, "Managed claim is waiting for managed resource to become bindable");
    assert!(message.contains("CloudMemorystoreInstance legacy does not exist"), "{message}");
    assert_eq!(world.said(&claim, "Synced").await.0, "True");
    let store = world.store("legacy", json!({})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
    assert_eq!(world.get(&store).await.spec()["claimRef"]["name"], "app");
    assert!(world.has(&secret("team", "app-conn")).await);
}

#[tokio::test(start_paused = true)]
async fn a_missing_class_is_said_and_found_when_it_comes() {
    let world = World::new().await;
    let claim = world.redis("app", json!({"classRef": class_ref("late")})).await;
    let (status, _, message) = world.said(&claim, "Synced").await;
    assert_eq!(status, "False");
    assert_eq!(
        message,
        "CloudMemorystoreInstanceClass late does not exist: create it, or claim by another class"
    );
    assert_eq!(world.said(&claim, "Ready").await.1, "Resource is being created");
    world.class("late", json!({}), json!({})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
}

#[tokio::test(start_paused = true)]
async fn a_class_whose_provider_is_missing_is_said_on_the_claim() {
    let world = World::new().await;
    world.class("lost", json!({}), json!({"providerRef": {"name": "nobody"}})).await;
    let claim = world.redis("app", json!({"classRef": class_ref("lost")})).await;
    let (status, _, message) = world.said(&claim, "Ready").await;
    assert_eq!(status, "False");
    assert!(message.contains("nobody"), "{message}");
    world.create(super::world::account("nobody")).await;
    world.settle().await;
    assert_eq!(world.phase(&claim).await, "Bound");
}

#[tokio::test(start_paused = true)]
async fn a_class_that_names_no_provider_means_the_default_one() {
    let world = World::new().await;
    let class = world.class("bare", json!({}), json!({"providerRef": null})).await;
    assert!(world.get(&class).await.get("specTemplate").get("providerRef").is_none_or(Value::is_null));
    let claim = world.redis("app", json!({"classRef": class_ref("bare")})).await;
    let (status, _, message) = world.said(&claim, "Ready").await;
    assert_eq!(status, "False");
    assert!(message.contains("ProviderConfig.example.crossplane.io default does not exist"), "{message}");
    world.create(super::world::account("default")).await;
    world.settle().await;
    assert_eq!(world.phase(&claim).await, "Bound");
}

#[tokio::test(start_paused = true)]
async fn what_happens_to_a_class_later_is_no_matter_to_those_bound() {
    let world = World::new().await;
    let class = world.class("ha", json!({}), json!({})).await;
    let claim = world.redis("app", json!({"classRef": class_ref("ha")})).await;
    let before = world.managed(&claim).await.unwrap();
    world.patch(&class, json!({"specTemplate": {"forProvider": {"memorySizeGb": 9}}})).await;
    world.delete(&class).await;
    world.patch(&claim, json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(world.phase(&claim).await, "Bound");
    assert_eq!(world.managed(&claim).await.unwrap().spec(), before.spec());
}

#[tokio::test(start_paused = true)]
async fn of_ten_claims_on_one_class_one_goes_and_the_rest_stay_untouched() {
    let world = World::new().await;
    world.class("ha", json!({}), json!({})).await;
    let mut claims = Vec::new();
    for number in 0..10 {
        claims.push(world.redis(&format!("app-{number}"), json!({"classRef": class_ref("ha")})).await);
    }
    assert_eq!(world.live(), 10);
    let mut before = Vec::new();
    for claim in &claims {
        before.push((world.get(claim).await, world.managed(claim).await.unwrap()));
    }
    world.delete(&claims[3]).await;
    assert_eq!((world.live(), world.list(stores()).await.len()), (9, 9));
    for (claim, (old, managed)) in claims.iter().zip(before).filter(|(it, _)| **it != claims[3]) {
        assert_eq!(world.get(claim).await, old);
        assert_eq!(world.managed(claim).await.unwrap(), managed);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_vanished_after_it_was_bound_is_not_made_again() {
    let world = World::new().await;
    world.class("ha", json!({}), json!({})).await;
    let claim = world.redis("app", json!({"classRef": class_ref("ha")})).await;
    let managed = world.managed(&claim).await.unwrap().key().unwrap();
    world.delete(&managed).await;
    world.patch(&claim, json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert!(!world.has(&managed).await);
    let (status, _, message) = world.said(&claim, "Ready").await;
    assert_eq!(status, "False");
    assert!(message.contains("is gone"), "{message}");
    assert_eq!(world.live(), 0, "nothing else was made in its place");
    world.delete(&claim).await;
    assert!(!world.has(&claim).await);
}

#[tokio::test(start_paused = true)]
async fn a_claim_in_the_other_version_is_the_same_claim() {
    let world = World::new().await;
    world.class("c", json!({}), json!({})).await;
    let claim = world
        .create(json!({"apiVersion": "cache.crossplane.io/v1beta1", "kind": "RedisCluster",
            "metadata": {"name": "app", "namespace": "team"},
            "spec": {"classRef": class_ref("c"), "writeConnectionSecretToRef": {"name": "conn"}}}))
        .await;
    world.settle().await;
    assert_eq!(world.phase(claim.key()).await, "Bound");
    assert!(world.has(&secret("team", "conn")).await);
    world.delete(claim.key()).await;
    assert!(!world.has(claim.key()).await);
    assert_eq!(world.live(), 0);
}
