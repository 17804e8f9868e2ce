use std::sync::Mutex as StdMutex;

use async_trait::async_trait;
use concert_engine::{Controller, Engine, Outcome, Reconciler, Request};
use concert_model::ResourceVersion;
use concert_store::{Chance, Delete};

use super::fixtures::{World, by, gvk, object, quiet, secret};
use super::*;

async fn bucket(world: &World) -> Object {
    world.object("Bucket", "a", json!({"spec": {"writeConnectionSecretToRef": {"name": "conn"}}})).await
}

fn details(entries: &[(&str, &str)]) -> Details {
    entries.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect()
}

fn publisher(world: &World) -> Arc<Publisher> {
    Arc::new(Publisher::new(world.store.clone()))
}

async fn data(world: &World) -> Value {
    world.get(&secret("conn")).await.get("data").clone()
}

async fn version(world: &World) -> ResourceVersion {
    world.get(&secret("conn")).await.resource_version().unwrap()
}

fn existing(kind: &str, owner: Option<&Object>) -> Value {
    let owners: Vec<_> = owner.and_then(controller_reference).into_iter().collect();
    json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "data": {"extra": "eA=="},
        "metadata": {"name": "conn", "namespace": "default", "ownerReferences": owners}})
}

#[tokio::test]
async fn nothing_is_written_for_an_object_that_asks_for_nothing() {
    let world = World::new().await;
    let object = world.object("Bucket", "a", json!({"spec": {}})).await;
    publisher(&world).publish(&object, &details(&[("a", "b")]), &by()).await.unwrap();
    assert!(world.list(secret_kind()).await.is_empty());
}

#[tokio::test]
async fn the_secret_is_of_the_connection_type_and_belongs_to_its_object() {
    let world = World::new().await;
    let object = bucket(&world).await;
    publisher(&world).publish(&object, &details(&[("password", "hunter2")]), &by()).await.unwrap();
    let secret = world.get(&secret("conn")).await;
    assert_eq!(secret.get("type"), &json!("connection.crossplane.io/v1alpha1"));
    assert_eq!(secret.get("data"), &json!({"password": "aHVudGVyMg=="}));
    let [owner] = &secret.owners()[..] else { panic!("one owner") };
    assert!(owner.is_controller() && owner.block_owner_deletion == Some(true));
    assert_eq!((&owner.kind[..], &owner.name[..], Some(&owner.uid)), ("Bucket", "a", object.uid().as_ref()));
}

#[tokio::test]
async fn cluster_scoped_objects_say_in_which_namespace() {
    let world = World::new().await;
    let publisher = publisher(&world);
    let reference = json!({"spec": {"writeConnectionSecretToRef": {"name": "conn", "namespace": "default"}}});
    let good = world.object("ClusterBucket", "a", reference).await;
    publisher.publish(&good, &Details::new(), &by()).await.unwrap();
    assert_eq!(data(&world).await, Value::Null);
    let bad = world
        .object("ClusterBucket", "b", json!({"spec": {"writeConnectionSecretToRef": {"name": "x"}}}))
        .await;
    let error = publisher.publish(&bad, &Details::new(), &by()).await.unwrap_err();
    assert_eq!(error.to_string(), "spec.writeConnectionSecretToRef.namespace must not be empty");
}

#[tokio::test]
async fn entries_are_added_and_replaced_but_never_removed() {
    let world = World::new().await;
    let (object, publisher) = (bucket(&world).await, publisher(&world));
    for step in [&[("a", "1"), ("b", "1")][..], &[("b", "2"), ("c", "2")], &[]] {
        publisher.publish(&object, &details(step), &by()).await.unwrap();
    }
    assert_eq!(data(&world).await, json!({"a": "MQ==", "b": "Mg==", "c": "Mg=="}));
}

#[tokio::test]
async fn a_part_of_what_is_stored_is_no_write_whoever_asks() {
    let world = World::new().await;
    let object = bucket(&world).await;
    publisher(&world).publish(&object, &details(&[("a", "1"), ("b", "1")]), &by()).await.unwrap();
    let before = version(&world).await;
    // A publisher that remembers nothing, as after a restart.
    let fresh = publisher(&world);
    for step in [&[("b", "1")][..], &[("a", "1")], &[], &[("a", "1"), ("b", "1")]] {
        fresh.publish(&object, &details(step), &by()).await.unwrap();
    }
    assert_eq!(version(&world).await, before);
}

#[tokio::test]
async fn secrets_of_others_are_refused() {
    let world = World::new().await;
    let (object, publisher) = (bucket(&world).await, publisher(&world));
    world.create(existing("Opaque", None)).await;
    let error = publisher.publish(&object, &details(&[("a", "1")]), &by()).await.unwrap_err();
    assert_eq!(error.to_string(), "refusing to modify uncontrolled secret of type \"Opaque\"");
    world.store.delete(&secret("conn"), &Delete::default(), &by()).await.unwrap();

    let other = world.object("Bucket", "b", json!({})).await;
    world.create(existing(SECRET_TYPE, Some(&other))).await;
    let error = publisher.publish(&object, &details(&[("a", "1")]), &by()).await.unwrap_err();
    let uid = object.uid().unwrap();
    assert_eq!(error.to_string(), format!("existing secret is not controlled by UID \"{uid}\""));
    assert_eq!(data(&world).await, json!({"extra": "eA=="}));
}

#[tokio::test]
async fn an_orphaned_connection_secret_is_adopted() {
    let world = World::new().await;
    let object = bucket(&world).await;
    world.create(existing(SECRET_TYPE, None)).await;
    publisher(&world).publish(&object, &details(&[("a", "1")]), &by()).await.unwrap();
    let secret = world.get(&secret("conn")).await;
    assert_eq!(secret.get("data"), &json!({"a": "MQ==", "extra": "eA=="}));
    assert_eq!(secret.owners()[0].uid, object.uid().unwrap());
}

#[tokio::test]
async fn what_is_known_is_not_read_again_for_a_while() {
    let world = World::new().await;
    let (object, publisher) = (bucket(&world).await, publisher(&world));
    let details = details(&[("a", "1")]);
    publisher.publish(&object, &details, &by()).await.unwrap();
    // Nobody watches, so that only a read could notice.
    world.store.delete(&secret("conn"), &Delete::default(), &by()).await.unwrap();
    for _ in 0..60 {
        publisher.publish(&object, &details, &by()).await.unwrap();
    }
    assert!(world.list(secret_kind()).await.is_empty());
    publisher.publish(&object, &details, &by()).await.unwrap();
    assert_eq!(data(&world).await, json!({"a": "MQ=="}));
    publisher.forget(&object.uid().unwrap());
    assert!(publisher.lock().is_empty());
}

#[tokio::test]
async fn a_change_that_is_heard_of_while_the_store_is_asked_is_not_forgotten() {
    let world = World::new().await;
    let (object, publisher) = (bucket(&world).await, publisher(&world));
    let uid = object.uid().unwrap();
    let none = Details::new();
    publisher.publish(&object, &none, &by()).await.unwrap();
    let written = world.get(&secret("conn")).await;
    let hear = |version: &str| publisher.lock().hear(&secret("conn"), &ResourceVersion(version.into()));

    hear(&written.resource_version().unwrap().0);
    assert!(publisher.lock().holds(&uid, &secret("conn"), &none), "the echo of our own write");
    publisher.lock().asking(&uid, &secret("conn"));
    hear("another");
    publisher.lock().learn(&uid, &written);
    assert!(!publisher.lock().holds(&uid, &secret("conn"), &none));
}

/// Publishes the same details for whatever it is asked about.
struct Publishing {
    publisher: Arc<Publisher>,
    store: Arc<dyn Store>,
    runs: StdMutex<Vec<ObjectKey>>,
}

#[async_trait]
impl Reconciler for Publishing {
    async fn reconcile(&self, request: Request) -> Outcome {
        let object = self.store.get(&request.key).await.unwrap().decode();
        self.publisher.publish(&object, &details(&[("a", "1")]), &by()).await.unwrap();
        self.runs.lock().unwrap().push(request.key);
        Outcome::Done
    }
}

#[tokio::test(start_paused = true)]
async fn who_breaks_a_secret_wakes_its_object_which_puts_it_right() {
    let world = World::new().await;
    for kind in ["Bucket", "ClusterBucket"] {
        let reference =
            json!({"writeConnectionSecretToRef": {"name": kind.to_lowercase(), "namespace": "default"}});
        world.create(object(kind, "a", json!({"spec": reference}))).await;
        let (publisher, store) = (publisher(&world), world.store.clone());
        let source = publisher.source(gvk(kind).group_kind);
        let reconciler = Arc::new(Publishing { publisher, store, runs: StdMutex::default() });
        let objects = concert_engine::Objects::new(Query::all(gvk(kind).group_kind));
        let controller =
            Controller::builder(kind, reconciler.clone()).objects(objects).source(source).build();
        let engine =
            Engine::new(world.store.clone(), world.clock.clone(), Chance::seeded(1), world.tasks.clone());
        let handle = engine.start(controller).unwrap();
        handle.ready().await;
        quiet().await;
        let key = secret(&kind.to_lowercase());
        let expected = json!({"a": "MQ=="});
        assert_eq!(world.get(&key).await.get("data"), &expected);

        let patch = Patch::Merge(json!({"data": {"a": "Mg=="}}));
        world.store.patch(&key, Part::Main, &patch, &by()).await.unwrap();
        quiet().await;
        assert_eq!(world.get(&key).await.get("data"), &expected);

        world.store.delete(&key, &Delete::default(), &by()).await.unwrap();
        quiet().await;
        assert_eq!(world.get(&key).await.get("data"), &expected);
        let runs = reconciler.runs.lock().unwrap().clone();
        assert!(runs.iter().all(|it| it.kind == gvk(kind).group_kind && &*it.name == "a"), "{runs:?}");
    }
}
