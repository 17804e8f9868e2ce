//! Providers that are declared as objects.

use concert_model::condition::{self, Status};
use concert_model::{Object, ObjectKey, Patch};
use concert_store::{Delete, Part};
use serde_json::Value;

use super::*;
use crate::managed::plan::plan;
use crate::managed::{Controller, Running};

/// What clusters are given: the embedded store must take it too.
const DEFINITION: &str = include_str!("../../../../../deploy/crds/providers.yaml");

pub(super) async fn define_providers(store: &Local) {
    let definition: Value = serde_saphyr::from_str(DEFINITION).unwrap();
    store.create(Object::from_value(definition).unwrap(), &By::actor("test")).await.unwrap();
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster(GroupKind::new("concert.dev", "Provider"), name)
}

pub(super) async fn declare(store: &Local, name: &str, spec: Value) {
    let kind = GroupKind::new("concert.dev", "Provider").at_version("v1alpha1");
    let mut object = Object::new(&kind, "", name);
    object.set("spec", spec);
    store.create(object, &By::actor("test")).await.unwrap();
}

async fn ready(store: &Local, name: &str) -> Option<(Status, String, String)> {
    let object = store.get(&key(name)).await.ok()?.decode();
    let found = condition::find(object.status(), "Ready")?;
    Some((found.status, found.reason, found.message))
}

/// A reconciler whose configuration file has the provider `a`, for a kind of which nobody else knows.
async fn start(store: &Arc<Local>, cloud: &Cloud) -> Running {
    let mut config = config();
    config.providers[0].resource_types[0].kind = "Basket".into();
    cloud.take_down("a:1");
    Controller::new(config, options(store, cloud).with_leader_election(false)).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_come_change_and_go_live() {
    let (store, cloud) = (store(), Cloud::default());
    let running = start(&store, &cloud).await;
    let registry = running.registry().unwrap();
    // The kind may come later than the process.
    define_providers(&store).await;
    declare(&store, "b", json!({"endpoint": "b:1"})).await;
    until("b is ready", async || ready(&store, "b").await.is_some_and(|it| it.0 == Status::True)).await;
    let status = store.get(&key("b")).await.unwrap().decode().status().clone();
    assert_eq!(status["protocol"], "concert.provider.v1");
    assert_eq!(status["version"], "1.2.3");
    until("its kinds are told", async || {
        let object = store.get(&key("b")).await.unwrap().decode();
        object.status()["kinds"] == json!(["Bucket.v1.example.com"])
    })
    .await;
    assert!(registry.provider("b").unwrap().is_ok());

    cloud.take_down("elsewhere:1");
    let mut object = store.get(&key("b")).await.unwrap().decode();
    object.get_mut("spec")["endpoint"] = json!("elsewhere:1");
    store.update(object, &By::actor("test")).await.unwrap();
    until("b says why it is not ready", async || {
        ready(&store, "b").await == Some((Status::False, "Unreachable".into(), "connection refused".into()))
    })
    .await;

    store.delete(&key("b"), &Delete::default(), &By::actor("test")).await.unwrap();
    until("b is gone", async || registry.provider("b").is_none()).await;
    assert!(registry.provider("a").is_some());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_added_says_why_and_hurts_nobody_else() {
    let (store, cloud) = (store(), Cloud::default());
    define_providers(&store).await;
    let running = start(&store, &cloud).await;
    declare(&store, "a", json!({"endpoint": "x:1"})).await;
    declare(&store, "bad", json!({"endpoint": "nowhere"})).await;
    declare(&store, "good", json!({"endpoint": "g:1"})).await;
    until("a says that its name is taken", async || {
        ready(&store, "a").await.is_some_and(|it| it.0 == Status::False && it.1 == "NameTaken")
    })
    .await;
    until("bad says what is wrong", async || {
        ready(&store, "bad").await.is_some_and(|it| it.1 == "Invalid" && it.2.contains("spec.endpoint"))
    })
    .await;
    until("good is ready", async || ready(&store, "good").await.is_some_and(|it| it.0 == Status::True)).await;
    // A provider that stays as it is costs no writes.
    let version = store.get(&key("good")).await.unwrap().resource_version().clone();
    SystemClock::new().sleep(Duration::from_secs(5)).await;
    assert_eq!(*store.get(&key("good")).await.unwrap().resource_version(), version);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_whose_kinds_another_has_says_so() {
    let (store, cloud) = (store(), Cloud::default());
    define_providers(&store).await;
    let running = start(&store, &cloud).await;
    // Both since the same second, perhaps: then their names decide.
    declare(&store, "b", json!({"endpoint": "b:1"})).await;
    declare(&store, "c", json!({"endpoint": "c:1"})).await;
    until("c says who has its kind", async || {
        let why = "Bucket.example.com is served by the providers b and c: b keeps it";
        ready(&store, "c").await == Some((Status::False, "NotInCharge".into(), why.into()))
    })
    .await;
    until("b is ready", async || ready(&store, "b").await.is_some_and(|it| it.0 == Status::True)).await;
    store.delete(&key("b"), &Delete::default(), &By::actor("test")).await.unwrap();
    until("c is ready", async || ready(&store, "c").await.is_some_and(|it| it.0 == Status::True)).await;
    running.stop().await;
}

/// What `c` is told while `b`, which comes before it, has the kind.
const KEPT: &str = "Bucket.example.com is served by the providers b and c: b keeps it";

/// Changes a provider and waits until its status says so.
async fn edit(store: &Local, name: &str, endpoint: &str, reason: &str) {
    // A patch, since the status may be written at the same time.
    let patch = Patch::merge(json!({"spec": {"endpoint": endpoint}})).unwrap();
    store.patch(&key(name), Part::Main, &patch, &By::actor("test")).await.unwrap();
    until(reason, async || ready(store, name).await.is_some_and(|it| it.1 == reason)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_edited_refused_or_not_heard_of_keeps_its_kinds() {
    let (store, cloud) = (store(), Cloud::default());
    define_providers(&store).await;
    let running = start(&store, &cloud).await;
    declare(&store, "b", json!({"endpoint": "b:1"})).await;
    until("b is ready", async || ready(&store, "b").await.is_some_and(|it| it.0 == Status::True)).await;
    declare(&store, "c", json!({"endpoint": "c:1"})).await;
    let registry = running.registry().unwrap();
    until("c is told", async || registry.complaints("c") == [KEPT]).await;
    until("b's kinds are told", async || {
        let object = store.get(&key("b")).await.unwrap().decode();
        object.status()["kinds"] == json!(["Bucket.v1.example.com"])
    })
    .await;

    cloud.take_down("dead:1");
    edit(&store, "b", "dead:1", "Unreachable").await;
    assert_eq!(registry.complaints("c"), [KEPT]);
    edit(&store, "b", "nowhere", "Invalid").await;
    assert_eq!(registry.complaints("c"), [KEPT]);
    assert!(registry.provider("b").unwrap().unwrap_err().contains("spec.endpoint"));
    edit(&store, "b", "b:1", "Available").await;
    assert_eq!(registry.complaints("c"), [KEPT]);

    // The next process cannot ask, and remembers.
    running.stop().await;
    cloud.take_down("b:1");
    let running = start(&store, &cloud).await;
    let registry = running.registry().unwrap();
    until("c is up", async || registry.provider("c").is_some_and(|it| it.is_ok())).await;
    assert_eq!(registry.complaints("c"), [KEPT]);
    // Only who goes for good leaves something.
    store.delete(&key("b"), &Delete::default(), &By::actor("test")).await.unwrap();
    until("c is free of it", async || registry.complaints("c").is_empty()).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_refused_when_the_process_starts_keeps_its_kinds() {
    let (store, cloud) = (store(), Cloud::default());
    define_providers(&store).await;
    let running = start(&store, &cloud).await;
    declare(&store, "b", json!({"endpoint": "b:1"})).await;
    until("b is ready", async || ready(&store, "b").await.is_some_and(|it| it.0 == Status::True)).await;
    until("b's kinds are told", async || {
        let object = store.get(&key("b")).await.unwrap().decode();
        object.status()["kinds"] == json!(["Bucket.v1.example.com"])
    })
    .await;
    running.stop().await;
    // Nobody is there when it is broken.
    let patch = Patch::merge(json!({"spec": {"endpoint": "nowhere"}})).unwrap();
    store.patch(&key("b"), Part::Main, &patch, &By::actor("test")).await.unwrap();
    declare(&store, "c", json!({"endpoint": "c:1"})).await;
    let running = start(&store, &cloud).await;
    let registry = running.registry().unwrap();
    until("c is up", async || registry.provider("c").is_some_and(|it| it.is_ok())).await;
    assert_eq!(registry.complaints("c"), [KEPT]);
    assert!(registry.provider("b").unwrap().unwrap_err().contains("spec.endpoint"));
    until("b says that it keeps its kinds", async || {
        let said = ready(&store, "b").await;
        said.is_some_and(|it| {
            it.1 == "Invalid" && it.2.contains("spec.endpoint") && it.2.contains("nobody else")
        })
    })
    .await;
    until("c says who has its kind", async || {
        ready(&store, "c").await == Some((Status::False, "NotInCharge".into(), KEPT.into()))
    })
    .await;
    edit(&store, "b", "b:1", "Available").await;
    assert_eq!(registry.complaints("c"), [KEPT]);
    // Refused again, and gone for good: only that leaves something.
    edit(&store, "b", "nowhere", "Invalid").await;
    store.delete(&key("b"), &Delete::default(), &By::actor("test")).await.unwrap();
    until("c is free of it", async || registry.complaints("c").is_empty()).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_asks_those_that_objects_declare_too() {
    let (store, cloud) = (store(), Cloud::default());
    define_buckets(&*store).await;
    let ask = async || {
        let nobody = ControllerConfig { providers: Vec::new() };
        let object = Object::new(&bucket(), "", "a");
        plan(&nobody, &options(&store, &cloud), vec![object]).await.unwrap().remove(0).reason
    };
    assert_eq!(ask().await, "no provider serves Bucket.example.com");
    define_providers(&store).await;
    declare(&store, "bad", json!({"endpoint": "nowhere"})).await;
    let why = ask().await;
    assert!(why.starts_with("no provider serves Bucket.example.com; provider bad: spec.endpoint"), "{why}");
    declare(&store, "good", json!({"endpoint": "g:1"})).await;
    assert_eq!(ask().await, "nobody was there within 60s");
}

#[tokio::test]
async fn a_plan_asks_by_the_options_of_whoever_would_do_it() {
    let (store, cloud) = (store(), Cloud::default());
    define_buckets(&*store).await;
    let ask = async |options: Options| {
        let object = Object::new(&bucket(), "", "a");
        plan(&config(), &options, vec![object]).await.map(|mut it| it.remove(0).reason)
    };
    let hurried = options(&store, &cloud).with_reconcile_timeout(Duration::from_secs(5));
    assert_eq!(ask(hurried).await.unwrap(), "nobody was there within 5s");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tls.crt"), "half").unwrap();
    let error = ask(options(&store, &cloud).with_cert_dir(folder.path())).await.unwrap_err();
    assert!(error.to_string().contains("tls.key is missing"), "{error}");
}
