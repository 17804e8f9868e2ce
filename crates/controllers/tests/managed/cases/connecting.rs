//! The way to the provider.

use std::time::Duration;

use concert_engine::Outcome;
use concert_model::{Object, Patch};
use concert_provider::{Class, ConfigKind, Error};
use concert_store::{By, Part};
use serde_json::json;

use crate::bench::{Bench, all_well, boom, cluster_thing, conflict, much_later, polled, retry};
use crate::definition::{define, definition, unique};
use crate::faulty::Verb;
use crate::line::At;
use crate::stores::Subject;

async fn broken(subject: &Subject, error: Error) -> Bench {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    bench.line.breaks(At::Connect, error);
    bench
}

pub async fn that_fails_is_said_and_tried_again(subject: &Subject) {
    let bench = broken(subject, boom()).await;
    assert_eq!(bench.reconcile().await, retry("connect failed: boom"));
    assert_eq!(bench.conditions().await, ["Synced=False/ReconcileError@1: connect failed: boom"]);
    assert_eq!(bench.events(), ["CannotConnectToProvider: connect failed: boom"]);
    assert_eq!((bench.calls(), bench.writes()), (vec![], vec![Verb::Status]));
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
}

pub async fn that_fails_the_same_way_again_is_not_written_again(subject: &Subject) {
    let bench = broken(subject, boom()).await;
    bench.line.breaks(At::Connect, boom());
    assert_eq!(bench.reconcile().await, retry("connect failed: boom"));
    assert_eq!(bench.writes(), [Verb::Status]);
    assert_eq!(bench.reconcile().await, retry("connect failed: boom"));
    assert!(bench.writes().is_empty());
}

pub async fn that_meets_a_conflict_is_tried_again_silently(subject: &Subject) {
    let bench = broken(subject, Error::new(Class::Conflict, "somebody else")).await;
    assert_eq!(bench.reconcile().await, conflict());
    assert_eq!((bench.events(), bench.writes()), (vec![], vec![]));
}

pub async fn that_needs_a_person_is_tried_much_later(subject: &Subject) {
    let bench = broken(subject, Error::new(Class::NeedsHuman, "sign the contract")).await;
    assert_eq!(bench.reconcile().await, much_later("connect failed: sign the contract"));
    assert_eq!(
        bench.conditions().await,
        ["Synced=False/ReconcileError@1: connect failed: sign the contract"]
    );
}

pub async fn that_is_throttled_waits_exactly_as_long_as_it_is_told(subject: &Subject) {
    let wait = Duration::from_secs(7);
    let bench = broken(subject, Error::new(Class::Throttled, "slow down").after(wait)).await;
    let outcome = bench.reconcile().await;
    assert_eq!(outcome, Outcome::Requeue("connect failed: slow down".into(), Some(wait)));
}

pub async fn that_cannot_be_ended_is_only_worth_an_event(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    bench.line.breaks(At::Disconnect, boom());
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.events(), ["CreatedExternalResource", "CannotDisconnectFromProvider: boom"]);
    assert_eq!(bench.conditions().await, all_well(1));
}

pub async fn is_ended_after_a_failure_too(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    bench.provider.script(|script| script.observe.push_back(Err(boom())));
    bench.line.breaks(At::Disconnect, Error::new(Class::Transient, "bye"));
    assert_eq!(bench.reconcile().await, retry("observe failed: boom"));
    let told = ["CannotDisconnectFromProvider: bye", "CannotObserveExternalResource: observe failed: boom"];
    assert_eq!(bench.events(), told);
}

pub async fn that_is_denied_is_tried_with_the_account_as_it_is_then(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.served.configs = vec![ConfigKind { kind: cluster_thing(), usage: None }];
    define(&bench.direct, definition(&cluster_thing().group_kind, false, true)).await;
    let name = unique("account");
    let mut account = Object::new(&cluster_thing(), "", &name);
    account.set("spec", json!({"credentials": {"source": "None"}}));
    let by = By::actor("test");
    let account = bench.direct.create(account, &by).await.unwrap();
    bench.declare(json!({"spec": {"providerConfigRef": {"kind": "ClusterThing", "name": name}}})).await;
    for at in [At::Connect, At::Observe] {
        bench.line.breaks(at, Error::new(Class::Denied, "who are you?"));
        let Outcome::Transient(failure) = bench.reconcile().await else { panic!("it is tried again") };
        assert_eq!(&*failure.text, "connect failed: who are you?");
        let renewed = Patch::merge(json!({"spec": {"renewed": format!("{at:?}")}})).unwrap();
        bench.direct.patch(account.key(), Part::Main, &renewed, &by).await.unwrap();
    }
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.reconcile().await, polled());
    let [first, second, third, fourth] = &bench.line.accounts()[..] else { panic!("four passes") };
    assert!(first != second && second != third, "a refused account is read again");
    assert_eq!(third, fourth, "one that is accepted is not");
}
