//! Connection details are written where the object says.

use concert_controllers::managed::vocabulary::annotation::{CREATE_SUCCEEDED, EXTERNAL_NAME};
use concert_model::Object;
use concert_provider::{Created, Delta, Details};
use serde_json::{Value, json};

use crate::bench::{Bench, all_well, polled, retry, secret, user};
use crate::faulty::{Trouble, Verb, unavailable};
use crate::stores::Subject;

const FAILED: &str = "cannot publish connection details: the store is unavailable";

fn with_secret() -> Value {
    json!({"spec": {"writeConnectionSecretToRef": {"name": "details"}}})
}

fn resized() -> Value {
    json!({"spec": {"forProvider": {"size": 2}}})
}

pub async fn that_fails_when_observed_is_tried_again(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.provider.put("there", json!({"size": 1}));
    let mut rest = with_secret();
    rest["metadata"] = json!({"annotations": {EXTERNAL_NAME: "there"}});
    bench.declare(rest).await;
    bench.store.fail(Verb::Create, &secret(), 1, unavailable);
    assert_eq!(bench.reconcile().await, retry(FAILED));
    let said = ["Ready=True/Available@1".to_owned(), format!("Synced=False/ReconcileError@1: {FAILED}")];
    assert_eq!(bench.conditions().await, said);
    assert_eq!(bench.events(), [format!("CannotPublishConnectionDetails: {FAILED}")]);
    assert_eq!(bench.reconcile().await, polled());
    assert!(bench.secret("details").await["endpoint"].is_string());
}

pub async fn that_fails_when_created_does_not_lose_the_create(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(with_secret()).await;
    bench.store.fail(Verb::Create, &secret(), usize::MAX, unavailable);
    assert_eq!(bench.reconcile().await, retry(FAILED));
    let told = ["CreatedExternalResource".to_owned(), format!("CannotPublishConnectionDetails: {FAILED}")];
    assert_eq!(bench.events(), told);
    assert!(bench.annotation(CREATE_SUCCEEDED).await.is_some() && !bench.has_token().await);
    assert_eq!(bench.annotation(EXTERNAL_NAME).await.as_deref(), Some("thing-1"));
    bench.store.heal();
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!((bench.conditions().await, bench.provider.tokens().len()), (all_well(1), 1));
    assert!(bench.secret("details").await["endpoint"].is_string());
}

pub async fn that_fails_when_updated_is_said(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(with_secret()).await;
    bench.provider.script(|script| script.password = Some("hunter2".into()));
    bench.edit(resized()).await;
    bench.store.fail(Verb::Patch, &secret(), usize::MAX, unavailable);
    assert_eq!(bench.reconcile().await, retry(FAILED));
    let told = ["UpdatedExternalResource".to_owned(), format!("CannotPublishConnectionDetails: {FAILED}")];
    assert_eq!(bench.events(), told);
    assert_eq!(bench.conditions().await[1], format!("Synced=False/ReconcileError@2: {FAILED}"));
    bench.store.heal();
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(2));
}

pub async fn what_an_update_tells_is_added_to_what_is_there(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(with_secret()).await;
    bench.provider.script(|script| script.password = Some("hunter2".into()));
    bench.edit(resized()).await;
    assert_eq!(bench.reconcile().await, polled());
    let stored = bench.secret("details").await;
    assert_eq!(stored["password"], "aHVudGVyMg==");
    assert!(stored["endpoint"].is_string());
}

pub async fn that_meets_a_conflict_is_tried_again_silently(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(with_secret()).await;
    bench.provider.script(|script| script.password = Some("hunter2".into()));
    bench.edit(resized()).await;
    let label = json!({"metadata": {"labels": {"by": "somebody"}}});
    bench.store.trouble(Verb::Patch, &secret(), 1, Trouble::Meanwhile(label));
    // In the same pass: the provider does not tell a second time.
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.events(), ["UpdatedExternalResource"]);
    assert_eq!(bench.secret("details").await["password"], "aHVudGVyMg==");
}

pub async fn what_is_told_once_is_written_until_it_works(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(with_secret()).await;
    bench.provider.script(|script| {
        let created = Created {
            delta: Delta { external_name: Some("there".into()), ..Delta::default() },
            connection: Details::new().with("password", "hunter2"),
            ..Created::default()
        };
        script.create.push_back(Ok(created));
    });
    bench.provider.put("there", json!({"size": 1}));
    bench.store.fail(Verb::Create, &secret(), 7, unavailable);
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.events(), ["CreatedExternalResource"]);
    let stored = bench.secret("details").await;
    assert_eq!((&stored["password"], stored["endpoint"].is_string()), (&json!("aHVudGVyMg=="), true));
}

pub async fn does_not_touch_the_secret_of_somebody_else(subject: &Subject) {
    let bench = Bench::new(subject).await;
    let mut theirs = Object::new(&secret().at_version("v1"), &bench.key.namespace, "details");
    theirs.set("type", json!("Opaque"));
    theirs.set("data", json!({"key": "dmFsdWU="}));
    bench.direct.create(theirs, &user()).await.unwrap();
    bench.declare(with_secret()).await;
    let text = "refusing to modify uncontrolled secret of type \"Opaque\"";
    assert_eq!(bench.reconcile().await, retry(text));
    assert_eq!(bench.secret("details").await, json!({"key": "dmFsdWU="}));
}
