//! Claims that end in servers one can talk to: the example of the guide, on a control plane of our own and
//! on Kubernetes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod planes;
mod services;

use concert_model::{GroupKind, Object, ObjectKey};
use concert_provider::Details;
use concert_store::{By, Delete, Error};
use serde_json::json;

use planes::{Control, on_kubernetes, on_our_own};
use services::{Cluster, Stage, Talk, has, until, until_or};

/// What is applied before anybody claims anything.
const SHIPPED: [&str; 9] = [
    include_str!("../../../deploy/claims/redisclusters.yaml"),
    include_str!("../../../deploy/claims/postgresqlinstances.yaml"),
    include_str!("../crds/providerconfigs.yaml"),
    include_str!("../crds/providerconfigusages.yaml"),
    include_str!("../crds/redisinstances.yaml"),
    include_str!("../crds/redisinstanceclasses.yaml"),
    include_str!("../crds/postgresqldatabases.yaml"),
    include_str!("../crds/postgresqldatabaseclasses.yaml"),
    include_str!("../claims.yaml"),
];
const CLASSES: &str = include_str!("../../../examples/claims/local.yaml");
const CLAIMS: &str = include_str!("../../../examples/claims/local-claims.yaml");

/// The same claim kind on a cloud, beside this machine.
const CLOUD: [&str; 6] = [
    include_str!("../../example/crds/example-providerconfigs.yaml"),
    include_str!("../../example/crds/example-providerconfigusages.yaml"),
    include_str!("../../../deploy/claims/managed/cloudmemorystoreinstances.yaml"),
    include_str!("../../../deploy/claims/classes.yaml"),
    include_str!("../../../deploy/claims/definitions.yaml"),
    include_str!("../../../examples/claims/memorystore.yaml"),
];

async fn find(control: &Control, key: &ObjectKey) -> Option<Object> {
    match control.store.get(key).await {
        Ok(object) => Some(object.decode()),
        Err(Error::NotFound { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn redis_claim() -> ObjectKey {
    ObjectKey::namespaced(GroupKind::new("cache.crossplane.io", "RedisCluster"), "team-a", "shop-cache")
}

/// A Redis of the grade that only the cloud has.
fn prod_claim() -> (String, ObjectKey) {
    let claim = json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
        "metadata": {"name": "shop-sessions", "namespace": "team-a"},
        "spec": {"classSelector": {"matchLabels": {"grade": "prod"}}, "engineVersion": "3.2",
            "writeConnectionSecretToRef": {"name": "shop-sessions"}}});
    let kind = GroupKind::new("cache.crossplane.io", "RedisCluster");
    (claim.to_string(), ObjectKey::namespaced(kind, "team-a", "shop-sessions"))
}

fn postgres_claim() -> ObjectKey {
    let kind = GroupKind::new("database.crossplane.io", "PostgreSQLInstance");
    ObjectKey::namespaced(kind, "team-a", "shop-orders")
}

/// Waits until a claim is bound; what its own secret says, and the managed resource behind it.
async fn bound(control: &Control, claim: &ObjectKey, managed: &str) -> (Details, ObjectKey) {
    bound_to(control, claim, &GroupKind::new("local.concert.dev", managed)).await
}

async fn bound_to(control: &Control, claim: &ObjectKey, managed: &GroupKind) -> (Details, ObjectKey) {
    let claim = until_or(|| async {
        match find(control, claim).await {
            Some(claim) if claim.status()["bindingPhase"] == "Bound" => Ok(claim),
            Some(claim) => Err(standing(control, claim, managed).await),
            None => Err(format!("there is no {claim}")),
        }
    })
    .await;
    assert_eq!(claim.spec()["resourceRef"]["kind"], *managed.kind);
    let name = claim.spec()["writeConnectionSecretToRef"]["name"].as_str().unwrap();
    let secret = ObjectKey::namespaced(GroupKind::new("", "Secret"), claim.namespace(), name);
    let secret = find(control, &secret).await.unwrap();
    let mut details = Details::new();
    for (name, value) in secret.get("data").as_object().unwrap() {
        let bytes = concert_model::base64::decode(value.as_str().unwrap()).unwrap();
        details = details.with(name.as_str(), bytes);
    }
    let made = claim.spec()["resourceRef"]["name"].as_str().unwrap();
    (details, ObjectKey::cluster(managed.clone(), made))
}

/// How a claim stands, and what is made for it so far.
async fn standing(control: &Control, claim: Object, managed: &GroupKind) -> String {
    let made = claim.spec()["resourceRef"]["name"].as_str().unwrap_or_default();
    let made = match made {
        "" => None,
        name => control.store.get(&ObjectKey::cluster(managed.clone(), name)).await.ok(),
    };
    let made = made.map_or("nothing".to_owned(), |it| it.decode().into_value().to_string());
    format!("{}, and made for it is {made}", claim.into_value())
}

async fn let_go(control: &Control, claim: &ObjectKey, managed: &ObjectKey) {
    control.store.delete(claim, &Delete::default(), &By::actor("test")).await.unwrap();
    for key in [claim, managed] {
        until_or(|| async {
            let left = find(control, key).await;
            left.map_or(Ok(()), |it| Err(format!("{key} is still there: {}", it.into_value())))
        })
        .await;
    }
}

/// The story, whoever keeps the objects.
async fn story(control: &Control, cluster: &Cluster) {
    for text in SHIPPED {
        control.apply(text).await;
    }
    let admin = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "postgres-admin", "namespace": "platform"},
        "stringData": {"url": cluster.url()}});
    for text in [CLASSES, &*admin.to_string(), CLAIMS] {
        control.apply(text).await;
    }

    let (details, redis) = bound(control, &redis_claim(), "RedisInstance").await;
    let mut talk = Talk::open(&details).await;
    assert_eq!(talk.say("SET order 42").await, "+OK\r\n");
    assert_eq!(talk.say("GET order").await, "$2\r\n42\r\n");

    let (details, database) = bound(control, &postgres_claim(), "PostgreSQLDatabase").await;
    let client = cluster.application(&details).await.unwrap();
    client.batch_execute("CREATE TABLE orders (id int); INSERT INTO orders VALUES (42)").await.unwrap();
    let row = client.query_one("SELECT id FROM orders", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 42);
    drop(client);

    // A second definition of the same claim kind, whose class is of a cloud: both are claimed side by side.
    let (claim, key) = prod_claim();
    for text in CLOUD.into_iter().chain([&*claim]) {
        control.apply(text).await;
    }
    let elsewhere = GroupKind::new("cache.gcp.crossplane.io", "CloudMemorystoreInstance");
    let (_, memorystore) = bound_to(control, &key, &elsewhere).await;
    assert_eq!(talk.say("GET order").await, "$2\r\n42\r\n", "the one on this machine is not touched");

    let_go(control, &key, &memorystore).await;
    let_go(control, &redis_claim(), &redis).await;
    let_go(control, &postgres_claim(), &database).await;
    assert!(cluster.application(&details).await.is_err(), "the database is gone with its claim");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_talks_to_what_it_claimed() {
    if !has("redis-server") {
        return;
    }
    let Some(cluster) = Cluster::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::open(&folder.path().join("cloud"));
    let control = on_our_own(&stage, &folder.path().join("plane")).await;
    story(&control, &cluster).await;
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_in_kubernetes_talks_to_what_it_claimed() {
    if !has("redis-server") {
        return;
    }
    let Some(cluster) = Cluster::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::open(&folder.path().join("cloud"));
    let Some(control) = on_kubernetes(&stage).await else { return };
    story(&control, &cluster).await;
    control.stop().await;
}

/// A class of Redis on this machine, and a claim by it.
fn redis_by(class: &str, fields: serde_json::Value) -> (String, String, ObjectKey) {
    let made = json!({"apiVersion": "local.concert.dev/v1alpha1", "kind": "RedisInstanceClass",
        "metadata": {"name": class},
        "specTemplate": {"writeConnectionSecretsToNamespace": "default", "reclaimPolicy": "Delete",
            "forProvider": fields}});
    let reference = json!({"apiVersion": "local.concert.dev/v1alpha1", "kind": "RedisInstanceClass",
        "name": class});
    let claim = json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
        "metadata": {"name": class, "namespace": "default"},
        "spec": {"classRef": reference, "writeConnectionSecretToRef": {"name": class}}});
    let key = ObjectKey::namespaced(GroupKind::new("cache.crossplane.io", "RedisCluster"), "default", class);
    (made.to_string(), claim.to_string(), key)
}

/// Waits until a claim says something, and answers with that.
async fn says(control: &Control, claim: &ObjectKey, words: &str) -> String {
    until_or(|| async {
        let Some(claim) = find(control, claim).await else { return Err(format!("there is no {claim}")) };
        match concert_model::condition::find(claim.status(), "Ready") {
            Some(ready) if ready.message.contains(words) => Ok(ready.message),
            _ => Err(format!("not {words:?}: {}", claim.into_value())),
        }
    })
    .await
}

/// A control plane with all kinds, and no account: Redis needs none.
async fn redis_only(stage: &Stage, folder: &std::path::Path) -> Control {
    let control = on_our_own(stage, folder).await;
    for text in SHIPPED {
        control.apply(text).await;
    }
    control
}

/// Two claims are made, of which that for a Redis waits; the other has what it wants.
async fn a_database_is_bound_meanwhile(control: &Control, cluster: &Cluster) {
    let admin = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "postgres-admin", "namespace": "platform"},
        "stringData": {"url": cluster.url()}});
    for text in [CLASSES, &*admin.to_string(), CLAIMS] {
        control.apply(text).await;
    }
    let (details, database) = bound(control, &postgres_claim(), "PostgreSQLDatabase").await;
    let client = cluster.application(&details).await.unwrap();
    client.batch_execute("CREATE TABLE orders (id int)").await.unwrap();
    drop(client);
    let waiting = says(control, &redis_claim(), "is not installed").await;
    assert!(waiting.contains("no-such-redis"), "{waiting}");
    let_go(control, &postgres_claim(), &database).await;
    control.store.delete(&redis_claim(), &Delete::default(), &By::actor("test")).await.unwrap();
    until(|| async { find(control, &redis_claim()).await.is_none().then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_says_that_redis_server_is_not_installed_and_can_go() {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        concert_provider_local::Settings { program: "no-such-redis".into(), ..services::settings() };
    let stage = Stage::with(&folder.path().join("cloud"), settings);
    let control = redis_only(&stage, &folder.path().join("plane")).await;
    let (class, claim, key) = redis_by("missing", json!({}));
    control.apply(&class).await;
    control.apply(&claim).await;
    let said = says(&control, &key, "is not installed").await;
    assert!(said.contains("no-such-redis is not installed: install it"), "{said}");
    if let Some(cluster) = Cluster::start() {
        a_database_is_bound_meanwhile(&control, &cluster).await;
    }
    control.store.delete(&key, &Delete::default(), &By::actor("test")).await.unwrap();
    until(|| async { find(&control, &key).await.is_none().then_some(()) }).await;
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_says_that_its_port_is_taken_and_others_are_bound() {
    if !has("redis-server") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::open(&folder.path().join("cloud"));
    let control = redis_only(&stage, &folder.path().join("plane")).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (class, claim, refused) = redis_by("fixed", json!({"port": port}));
    control.apply(&class).await;
    control.apply(&claim).await;
    let said = says(&control, &refused, "is taken by").await;
    let expected = format!("port {port} of 127.0.0.1 is taken by another program: free it");
    assert!(said.contains(&expected), "{said}");

    let (class, claim, free) = redis_by("free", json!({}));
    control.apply(&class).await;
    control.apply(&claim).await;
    let (details, managed) = bound(&control, &free, "RedisInstance").await;
    assert_eq!(Talk::open(&details).await.say("SET order 42").await, "+OK\r\n");
    let_go(&control, &free, &managed).await;
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_there_before_is_observed_and_left_alone() {
    let Some(cluster) = Cluster::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::open(&folder.path().join("cloud"));
    let control = on_our_own(&stage, &folder.path().join("plane")).await;
    let admin = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "postgres-admin", "namespace": "platform"},
        "stringData": {"url": cluster.url()}});
    for text in SHIPPED.into_iter().chain([CLASSES, &*admin.to_string()]) {
        control.apply(text).await;
    }
    cluster.admin("postgres").await.batch_execute("CREATE DATABASE legacy").await.unwrap();
    let imported = json!({"apiVersion": "local.concert.dev/v1alpha1", "kind": "PostgreSQLDatabase",
        "metadata": {"name": "legacy", "annotations": {"crossplane.io/external-name": "legacy"}},
        "spec": {"managementPolicies": ["Observe"], "forProvider": {},
            "providerConfigRef": {"name": "default"},
            "writeConnectionSecretToRef": {"namespace": "platform", "name": "legacy"}}});
    control.apply(&imported.to_string()).await;
    let key = ObjectKey::cluster(GroupKind::new("local.concert.dev", "PostgreSQLDatabase"), "legacy");
    let seen = until(|| async {
        let found = find(&control, &key).await?;
        let ready = concert_model::condition::find(found.status(), "Ready")?;
        (ready.status == concert_model::condition::Status::True).then_some(found)
    })
    .await;
    assert_eq!(seen.status()["atProvider"]["name"], "legacy");
    let secret = ObjectKey::namespaced(GroupKind::new("", "Secret"), "platform", "legacy");
    let secret = until(|| find(&control, &secret)).await;
    assert!(secret.get("data")["host"].is_string() && secret.get("data").get("password").is_none());
    control.store.delete(&key, &Delete::default(), &By::actor("test")).await.unwrap();
    until(|| async { find(&control, &key).await.is_none().then_some(()) }).await;
    let there = "SELECT 1 FROM pg_database WHERE datname = 'legacy'";
    assert_eq!(cluster.admin("postgres").await.query(there, &[]).await.unwrap().len(), 1);
    control.stop().await;
}
