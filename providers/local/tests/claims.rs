//! Claims that end in servers one can talk to: the example of the guide, on a control plane of our own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod services;

use std::sync::Arc;

use concert_model::{GroupKind, Object, ObjectKey};
use concert_provider::{Details, InProcess};
use concert_server::serve::{Layer, Plane, Running};
use concert_store::{By, Delete, Error, Store};
use serde_json::json;

use services::{Cluster, Stage, Talk, has, until};

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

/// A control plane in this process whose one provider is `stage`.
async fn plane(stage: &Stage, folder: &std::path::Path) -> Running {
    let settings = Layer {
        data_dir: Some(folder.to_owned()),
        listen: Some("127.0.0.1:0".to_owned()),
        admin_listen: Some("0".to_owned()),
        dev: Some(true),
        plugins: Some("off".to_owned()),
        ..Layer::default()
    };
    let local = stage.local.clone();
    let dial = Arc::new(move |_: &_| Ok(Arc::new(InProcess::new(local.clone())) as _));
    let running = Plane::new(settings.resolve().unwrap()).with_dial(dial).start().await.unwrap();
    for text in SHIPPED {
        running.apply(text, "test").await.unwrap();
    }
    let provider = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider",
        "metadata": {"name": "local"}, "spec": {"endpoint": "in-process:1"}});
    running.apply(&provider.to_string(), "test").await.unwrap();
    running
}

async fn find(running: &Running, key: &ObjectKey) -> Option<Object> {
    match running.store().get(key).await {
        Ok(object) => Some(object.decode()),
        Err(Error::NotFound { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn redis_claim() -> ObjectKey {
    ObjectKey::namespaced(GroupKind::new("cache.crossplane.io", "RedisCluster"), "default", "shop-cache")
}

fn postgres_claim() -> ObjectKey {
    let kind = GroupKind::new("database.crossplane.io", "PostgreSQLInstance");
    ObjectKey::namespaced(kind, "default", "shop-orders")
}

/// Waits until a claim is bound; what its own secret says, and the managed resource behind it.
async fn bound(running: &Running, claim: &ObjectKey, managed: &str) -> (Details, ObjectKey) {
    let claim = until(|| async {
        let claim = find(running, claim).await?;
        (claim.status()["bindingPhase"] == "Bound").then_some(claim)
    })
    .await;
    let name = claim.spec()["writeConnectionSecretToRef"]["name"].as_str().unwrap();
    let secret = ObjectKey::namespaced(GroupKind::new("", "Secret"), "default", name);
    let secret = find(running, &secret).await.unwrap();
    let mut details = Details::new();
    for (name, value) in secret.get("data").as_object().unwrap() {
        let bytes = concert_model::base64::decode(value.as_str().unwrap()).unwrap();
        details = details.with(name.as_str(), bytes);
    }
    let made = claim.spec()["resourceRef"]["name"].as_str().unwrap();
    (details, ObjectKey::cluster(GroupKind::new("local.concert.dev", managed), made))
}

async fn let_go(running: &Running, claim: &ObjectKey, managed: &ObjectKey) {
    running.store().delete(claim, &Delete::default(), &By::actor("test")).await.unwrap();
    for key in [claim, managed] {
        until(|| async { find(running, key).await.is_none().then_some(()) }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_talks_to_what_it_claimed() {
    if !has("redis-server") {
        return;
    }
    let Some(cluster) = Cluster::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::open(&folder.path().join("cloud"));
    let running = plane(&stage, &folder.path().join("plane")).await;
    let admin = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "postgres-admin", "namespace": "default"}, "stringData": {"url": cluster.url()}});
    for text in [&*admin.to_string(), CLASSES, CLAIMS] {
        running.apply(text, "test").await.unwrap();
    }

    let (details, redis) = bound(&running, &redis_claim(), "RedisInstance").await;
    let mut talk = Talk::open(&details).await;
    assert_eq!(talk.say("SET order 42").await, "+OK\r\n");
    assert_eq!(talk.say("GET order").await, "$2\r\n42\r\n");

    let (details, database) = bound(&running, &postgres_claim(), "PostgreSQLDatabase").await;
    let client = cluster.application(&details).await.unwrap();
    client.batch_execute("CREATE TABLE orders (id int); INSERT INTO orders VALUES (42)").await.unwrap();
    let row = client.query_one("SELECT id FROM orders", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 42);
    drop(client);

    let_go(&running, &redis_claim(), &redis).await;
    let_go(&running, &postgres_claim(), &database).await;
    assert!(cluster.application(&details).await.is_err(), "the database is gone with its claim");
    running.stop().await;
}
