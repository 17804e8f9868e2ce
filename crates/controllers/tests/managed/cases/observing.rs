//! What the external thing looks like.

use concert_controllers::managed::vocabulary::FINALIZER;
use concert_controllers::managed::vocabulary::annotation::EXTERNAL_NAME;
use concert_provider::{Class, Error};
use serde_json::{Value, json};

use crate::bench::{Bench, all_well, allowing, boom, conflict, polled, retry, secret};
use crate::faulty::{Verb, unavailable};
use crate::stores::Subject;

pub async fn that_fails_is_said_and_tried_again(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    bench.provider.script(|script| script.observe.push_back(Err(boom())));
    assert_eq!(bench.reconcile().await, retry("observe failed: boom"));
    assert_eq!(bench.conditions().await, ["Synced=False/ReconcileError@1: observe failed: boom"]);
    assert_eq!(bench.events(), ["CannotObserveExternalResource: observe failed: boom"]);
    assert_eq!((bench.calls(), bench.writes()), (vec!["observe"], vec![Verb::Status]));
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
}

pub async fn that_fails_leaves_what_was_known_before(subject: &Subject) {
    let bench = Bench::new(subject).await;
    let before = bench.declare_ready(json!({})).await;
    bench.provider.script(|script| script.observe.push_back(Err(boom())));
    assert_eq!(bench.reconcile().await, retry("observe failed: boom"));
    let after = bench.get().await;
    assert_eq!(after.status()["atProvider"], before.status()["atProvider"]);
    assert_eq!(bench.conditions().await[0], "Ready=True/Available@1");
}

pub async fn that_meets_a_conflict_is_tried_again_silently(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    let error = Error::new(Class::Conflict, "somebody else");
    bench.provider.script(|script| script.observe.push_back(Err(error)));
    assert_eq!(bench.reconcile().await, conflict());
    assert_eq!((bench.events(), bench.writes()), (vec![], vec![]));
}

fn imported(actions: &[&str]) -> Value {
    let mut rest = allowing(actions);
    rest["metadata"] = json!({"annotations": {EXTERNAL_NAME: "imported"}});
    rest["spec"]["writeConnectionSecretToRef"] = json!({"name": "details"});
    rest
}

pub async fn only_finds_nothing_and_makes_nothing(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(imported(&["Observe"])).await;
    assert_eq!(bench.reconcile().await, polled());
    let text = "observe failed: external resource does not exist";
    assert_eq!(bench.conditions().await, [format!("Synced=False/ReconcileError@1: {text}")]);
    assert_eq!(bench.events(), [format!("CannotObserveExternalResource: {text}")]);
    assert_eq!((bench.calls(), bench.writes()), (vec!["observe"], vec![Verb::Status]));
}

pub async fn only_takes_over_what_is_there(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.provider.put("imported", json!({"size": 1}));
    bench.declare(imported(&["Observe"])).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
    assert_eq!(bench.get().await.finalizers(), [FINALIZER]);
    assert!(bench.secret("details").await["endpoint"].is_string());
    assert_eq!((bench.calls(), bench.events()), (vec!["observe"], vec![]));
    assert_eq!(bench.writes(), [Verb::Update, Verb::Status]);
}

pub async fn only_says_when_its_details_cannot_be_published(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.provider.put("imported", json!({"size": 1}));
    bench.declare(imported(&["Observe"])).await;
    bench.store.fail(Verb::Create, &secret(), 1, unavailable);
    let text = "cannot publish connection details: the store is unavailable";
    assert_eq!(bench.reconcile().await, retry(text));
    assert_eq!(bench.events(), [format!("CannotPublishConnectionDetails: {text}")]);
    assert_eq!(bench.conditions().await[1], format!("Synced=False/ReconcileError@1: {text}"));
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
}

pub async fn only_shows_what_differs(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.provider.put("imported", json!({"size": 5}));
    bench.declare(imported(&["Observe"])).await;
    assert_eq!(bench.reconcile().await, polled());
    let said = &bench.conditions().await[2];
    assert_eq!(said, "UpToDate=False/UpdateRestricted@1: spec.forProvider.size: 5 -> 1");
    assert_eq!(bench.provider.things()["imported"], json!({"size": 5}));
}

pub async fn finds_nothing_where_policies_allow_to_update_but_not_to_create(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(imported(&["Observe", "Update"])).await;
    assert_eq!(bench.reconcile().await, polled());
    let text = "observe failed: external resource does not exist and `spec.managementPolicies` does not allow Create";
    assert_eq!(bench.conditions().await, [format!("Synced=False/ReconcileError@1: {text}")]);
    assert_eq!(bench.calls(), ["observe"]);
}
