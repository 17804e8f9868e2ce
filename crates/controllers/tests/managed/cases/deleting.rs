//! The external thing goes, and then its object.

use std::time::Duration;

use concert_controllers::managed::vocabulary::message::PENDING;
use concert_engine::Outcome;
use concert_model::{GroupKind, Object, ObjectKey};
use concert_provider::{Class, ConfigKind, Deleted, Error};
use serde_json::json;

use crate::bench::{Bench, boom, cluster_thing, conflict, on_change, polled, requeue, retry, user};
use crate::definition::{define, definition, unique};
use crate::faulty::{Trouble, Verb, unavailable};
use crate::scripted::seen;
use crate::stores::Subject;

async fn to_delete(subject: &Subject) -> Bench {
    let bench = Bench::new(subject).await;
    bench.declare_ready(json!({})).await;
    bench.delete().await;
    bench
}

pub async fn takes_one_pass_where_the_thing_goes_at_once(subject: &Subject) {
    let bench = to_delete(subject).await;
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert_eq!(bench.calls(), ["observe", "delete", "observe"]);
    assert_eq!(bench.events(), ["DeletedExternalResource"]);
    assert_eq!(bench.writes(), [Verb::Update]);
    assert!(bench.is_gone().await && bench.provider.things().is_empty());
}

pub async fn waits_while_the_thing_is_still_there(subject: &Subject) {
    let bench = to_delete(subject).await;
    let there = || Ok(seen("thing-1", &json!({"size": 1}), Vec::new()));
    bench.provider.script(|script| script.observe.extend([there(), there(), there(), there()]));
    let said = ["Ready=False/Deleting@2", "Synced=True/ReconcileSuccess@2", "UpToDate=True/ObserveMatched@1"];
    for _ in 0..2 {
        assert_eq!(bench.reconcile().await, requeue("waiting until the external resource is gone"));
        assert_eq!(bench.conditions().await, said);
        assert_eq!(bench.calls(), ["observe", "delete", "observe"]);
    }
    assert_eq!(bench.writes(), [Verb::Status]);
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert_eq!(bench.calls(), ["observe"]);
    assert!(bench.is_gone().await);
}

pub async fn tells_of_progress_and_when_to_look_again(subject: &Subject) {
    let bench = to_delete(subject).await;
    let wait = Duration::from_secs(5);
    let deleted =
        Deleted { progress: Some("draining".into()), again_after: Some(wait), ..Deleted::default() };
    bench.provider.script(|script| script.delete.push_back(Ok(deleted)));
    let why = "waiting until the external resource is gone";
    assert_eq!(bench.reconcile().await, Outcome::Requeue(why.into(), Some(wait)));
    assert_eq!(bench.conditions().await[0], "Ready=False/Deleting@2: draining");
}

pub async fn that_fails_is_said_and_tried_again(subject: &Subject) {
    let bench = to_delete(subject).await;
    bench.provider.script(|script| script.delete.push_back(Err(boom())));
    assert_eq!(bench.reconcile().await, retry("delete failed: boom"));
    let said = ["Ready=False/Deleting@2", "Synced=False/ReconcileError@2: delete failed: boom"];
    assert_eq!(bench.conditions().await[..2], said);
    assert_eq!(bench.events(), ["CannotDeleteExternalResource: delete failed: boom"]);
    assert!(!bench.is_gone().await);
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await);
}

pub async fn that_meets_a_conflict_is_tried_again_silently(subject: &Subject) {
    let bench = to_delete(subject).await;
    let error = Error::new(Class::Conflict, "somebody else");
    bench.provider.script(|script| script.delete.push_back(Err(error)));
    assert_eq!(bench.reconcile().await, conflict());
    assert_eq!(bench.events(), [""; 0]);
    assert_eq!(bench.reconcile().await, Outcome::Done);
}

pub async fn is_not_held_up_by_who_writes_meanwhile(subject: &Subject) {
    let bench = to_delete(subject).await;
    // Whoever binds it takes its claim out of it, and the grace of its creation is not over.
    let released = json!({"spec": {"claimRef": null}, "metadata": {"labels": {"somebody": "else"}}});
    bench.store.trouble(Verb::Update, bench.kind(), 1, Trouble::Meanwhile(released));
    assert_eq!(bench.reconcile().await, conflict());
    assert!(!bench.is_gone().await);
    bench.calls();
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert_eq!(bench.calls(), ["observe"]);
    assert!(bench.is_gone().await);
}

pub async fn is_decided_anew_when_something_else_is_wanted_meanwhile(subject: &Subject) {
    let bench = to_delete(subject).await;
    let other = json!({"metadata": {"annotations": {"crossplane.io/external-name": "another"}}});
    bench.store.trouble(Verb::Update, bench.kind(), 1, Trouble::Meanwhile(other));
    assert_eq!(bench.reconcile().await, conflict());
    // Nobody has deleted that one, and it may be there without being seen.
    assert_eq!(bench.reconcile().await, requeue(PENDING));
    assert!(!bench.is_gone().await);
}

pub async fn is_waited_for_by_who_does_not_remember_it(subject: &Subject) {
    let mut bench = to_delete(subject).await;
    bench.store.fail(Verb::Update, bench.kind(), 1, unavailable);
    assert_eq!(bench.reconcile().await, retry("cannot remove the finalizer: the store is unavailable"));
    bench.restart();
    assert_eq!(bench.reconcile().await, requeue(PENDING));
    bench.clock.advance(30);
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await);
}

pub async fn tries_again_when_the_finalizer_cannot_be_removed(subject: &Subject) {
    let bench = to_delete(subject).await;
    bench.store.fail(Verb::Update, bench.kind(), 1, unavailable);
    let text = "cannot remove the finalizer: the store is unavailable";
    assert_eq!(bench.reconcile().await, retry(text));
    assert_eq!(bench.conditions().await[1], format!("Synced=False/ReconcileError@2: {text}"));
    assert_eq!(bench.events(), ["DeletedExternalResource"]);
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await);
}

pub async fn waits_for_the_finalizers_of_others(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(json!({"metadata": {"finalizers": ["example.com/other"]}})).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, polled());
    let said = [
        "Ready=False/Deleting@2: waiting for other finalizers: example.com/other",
        "Synced=True/ReconcileSuccess@2",
    ];
    assert_eq!(bench.conditions().await[..2], said);
    assert_eq!((bench.calls(), bench.provider.things().len()), (vec!["observe"], 1));
    let ours = bench.get().await.finalizers().into_iter().filter(|it| it != "example.com/other");
    bench.edit(json!({"metadata": {"finalizers": ours.collect::<Vec<_>>()}})).await;
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await && bench.provider.things().is_empty());
}

pub async fn leaves_alone_what_never_was_ours(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({"metadata": {"finalizers": ["example.com/other"]}})).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, on_change());
    assert_eq!((bench.calls(), bench.writes(), bench.events()), (vec![], vec![], vec![]));
}

pub async fn keeps_its_account_until_the_object_has_gone(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    let usages = GroupKind::new(&*bench.kind().group, "ThingUsage");
    let account = cluster_thing();
    define(&bench.direct, definition(&account.group_kind, false, true)).await;
    define(&bench.direct, definition(&usages, true, true)).await;
    bench.managed.rules.served.configs =
        vec![ConfigKind { kind: account.clone(), usage: Some(usages.at_version("v1")) }];
    let name = unique("account");
    let mut config = Object::new(&account, "", &name);
    config.set("spec", json!({"credentials": {"source": "None"}}));
    bench.direct.create(config, &user()).await.unwrap();
    let reference = json!({"spec": {"providerConfigRef": {"kind": "ClusterThing", "name": name}}});
    let uid = bench.declare_ready(reference).await.uid().unwrap();
    let usage = ObjectKey::namespaced(usages, bench.key.namespace.clone(), &*uid.0);
    bench.delete().await;
    bench.store.fail(Verb::Update, bench.kind(), 1, unavailable);
    bench.reconcile().await;
    let is_held = async || !bench.direct.get(&usage).await.unwrap().decode().finalizers().is_empty();
    assert!(!bench.is_gone().await && is_held().await);
    bench.clock.advance(60);
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await);
    match bench.direct.get(&usage).await {
        Ok(left) => assert!(left.decode().finalizers().is_empty()),
        // Where what is owned is collected it has gone with its last finalizer.
        Err(error) => assert!(matches!(error, concert_store::Error::NotFound { .. }), "{error}"),
    }
}
