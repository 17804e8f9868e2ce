//! The external thing is made.

use std::time::Duration;

use concert_controllers::managed::vocabulary::annotation::{
    CREATE_FAILED, CREATE_PENDING, CREATE_SUCCEEDED, EXTERNAL_NAME,
};
use concert_controllers::managed::vocabulary::{FINALIZER, message};
use concert_engine::Outcome;
use concert_provider::{Class, Created, Delta, Error};
use serde_json::json;

use crate::bench::{Bench, all_well, boom, conflict, much_later, polled, requeue, retry};
use crate::faulty::{Trouble, Verb, forbidden, unavailable};
use crate::line::At;
use crate::scripted::absent;
use crate::stores::Subject;

pub async fn takes_one_pass_and_three_writes(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
    assert_eq!(bench.calls(), ["observe", "create", "observe"]);
    assert_eq!(bench.events(), ["CreatedExternalResource"]);
    assert_eq!(bench.writes(), [Verb::Update, Verb::Patch, Verb::Status]);
    let object = bench.get().await;
    assert_eq!(object.finalizers(), [FINALIZER]);
    assert_eq!(object.annotation(EXTERNAL_NAME), Some("thing-1"));
    assert!(object.annotation(CREATE_PENDING).is_some() && object.annotation(CREATE_SUCCEEDED).is_some());
    assert!(object.annotation(CREATE_FAILED).is_none() && !bench.has_token().await);
    assert_eq!(object.pointer("/status/atProvider/id"), Some(&json!("thing-1")));
}

pub async fn is_the_same_for_cluster_scoped_objects(subject: &Subject) {
    let bench = Bench::cluster(subject).await;
    bench.declare(json!({})).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
    assert_eq!(bench.writes(), [Verb::Update, Verb::Patch, Verb::Status]);
    bench.delete().await;
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await && bench.provider.things().is_empty());
}

pub async fn leads_to_a_steady_state_without_writes(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.declare_ready(json!({"spec": {"writeConnectionSecretToRef": {"name": "details"}}})).await;
    for _ in 0..2 {
        assert_eq!(bench.reconcile().await, polled());
        assert_eq!(bench.calls(), ["observe"]);
        assert!(bench.store.take_writes().is_empty() && bench.events().is_empty());
        bench.clock.advance(60);
        // The second time as a process that remembers nothing.
        bench.restart();
    }
}

pub async fn tells_of_progress_and_when_to_look_again(subject: &Subject) {
    let bench = Bench::new(subject).await;
    let wait = Duration::from_secs(5);
    let created = Created {
        delta: Delta { external_name: Some("slow".into()), ..Delta::default() },
        progress: Some("60 %".into()),
        again_after: Some(wait),
        ..Created::default()
    };
    bench.provider.script(|script| {
        script.create.push_back(Ok(created));
        script.observe.extend([Ok(absent()), Ok(absent())]);
    });
    bench.declare(json!({})).await;
    assert_eq!(bench.reconcile().await, Outcome::Requeue(message::PENDING.into(), Some(wait)));
    assert_eq!(bench.conditions().await, ["Ready=False/Creating@1: 60 %", "Synced=True/ReconcileSuccess@1"]);
    assert_eq!(bench.annotation(EXTERNAL_NAME).await.as_deref(), Some("slow"));
}

pub async fn does_not_begin_when_the_intent_cannot_be_written(subject: &Subject) {
    for error in [unavailable, forbidden] {
        let bench = Bench::new(subject).await;
        bench.declare(json!({})).await;
        bench.store.fail(Verb::Update, bench.kind(), 1, error);
        let text = format!("cannot update managed resource: {}", error(&bench.key));
        assert_eq!(bench.reconcile().await, retry(&text));
        let said = ["Ready=False/Creating@1".to_owned(), format!("Synced=False/ReconcileError@1: {text}")];
        assert_eq!(bench.conditions().await, said);
        assert_eq!(bench.events(), [format!("CannotUpdateManagedResource: {text}")]);
        assert_eq!(bench.calls(), ["observe"]);
        assert!(bench.get().await.finalizers().is_empty());
        assert_eq!(bench.reconcile().await, polled());
        assert_eq!((bench.conditions().await, bench.provider.tokens().len()), (all_well(1), 1));
    }
}

pub async fn does_not_begin_on_an_object_that_changed(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    let change = json!({"spec": {"forProvider": {"size": 9}}});
    bench.store.trouble(Verb::Update, bench.kind(), 1, Trouble::Meanwhile(change));
    assert_eq!(bench.reconcile().await, conflict());
    assert_eq!(
        (bench.calls(), bench.events(), bench.writes()),
        (vec!["observe"], vec![], vec![Verb::Update])
    );
    assert_eq!(bench.conditions().await, [""; 0]);
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.provider.things()["thing-1"], json!({"size": 9}));
}

pub async fn begins_once_when_the_answer_to_the_intent_is_lost(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.can_look_up = true;
    bench.declare(json!({})).await;
    bench.store.trouble(Verb::Update, bench.kind(), 1, Trouble::LosesAnswer);
    // The status is not written either: it would be that of an object that is no more.
    assert_eq!(bench.reconcile().await, conflict());
    assert!(bench.has_token().await && bench.provider.tokens().is_empty());
    bench.forget();
    bench.restart();
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.calls(), ["lookup", "observe", "create", "observe"]);
    assert_eq!((bench.conditions().await, bench.provider.things().len()), (all_well(1), 1));
}

pub async fn is_not_in_doubt_where_it_was_never_sent(subject: &Subject) {
    for can_look_up in [true, false] {
        let mut bench = Bench::new(subject).await;
        bench.managed.rules.can_look_up = can_look_up;
        bench.declare(json!({})).await;
        bench.store.trouble(Verb::Update, bench.kind(), 1, Trouble::LosesAnswer);
        assert_eq!(bench.reconcile().await, conflict());
        assert!(bench.has_token().await && bench.provider.tokens().is_empty());
        bench.forget();
        // The same process knows that it sent nothing, and need not ask.
        assert_eq!(bench.reconcile().await, polled());
        assert_eq!(bench.calls(), ["observe", "create", "observe"]);
        assert_eq!((bench.conditions().await, bench.provider.things().len()), (all_well(1), 1));
    }
}

pub async fn that_fails_is_written_down_and_tried_again(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    bench.provider.script(|script| script.create.push_back(Err(boom())));
    assert_eq!(bench.reconcile().await, retry("create failed: boom"));
    let said = ["Ready=False/Creating@1", "Synced=False/ReconcileError@1: create failed: boom"];
    assert_eq!(bench.conditions().await, said);
    assert_eq!(bench.events(), ["CannotCreateExternalResource: create failed: boom"]);
    assert_eq!(bench.writes(), [Verb::Update, Verb::Patch, Verb::Status]);
    assert!(bench.annotation(CREATE_FAILED).await.is_some() && !bench.has_token().await);
    assert!(bench.annotation(CREATE_SUCCEEDED).await.is_none());
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!((bench.conditions().await, bench.provider.things().len()), (all_well(1), 1));
}

pub async fn that_meets_a_conflict_is_tried_again_silently(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    let error = Error::new(Class::Conflict, "somebody else");
    bench.provider.script(|script| script.create.push_back(Err(error)));
    assert_eq!(bench.reconcile().await, conflict());
    assert_eq!((bench.events(), bench.conditions().await), (vec![], vec![]));
    assert!(bench.annotation(CREATE_FAILED).await.is_some() && !bench.has_token().await);
    assert_eq!(bench.reconcile().await, polled());
}

pub async fn does_not_begin_where_nobody_is_connected(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(json!({})).await;
    assert_eq!(bench.reconcile().await, polled());
    bench.clock.advance(60);
    bench.provider.remove("thing-1");
    // The glance that finds it gone says goodbye; the pass that is to make it again is not let in.
    bench.line.breaks(At::Disconnect, boom());
    bench.line.breaks(At::Connect, boom());
    assert_eq!(bench.poll().await, retry("connect failed: boom"));
    assert!(!bench.has_token().await && bench.provider.things().is_empty());
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!((bench.conditions().await, bench.provider.things().len()), (all_well(1), 1));
}

pub async fn does_not_begin_with_too_little_time_left(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    let clock = bench.clock.clone();
    bench.line.while_observing(move || clock.advance(55));
    let why = "too little time was left to create it: the provider is slow to say what is there";
    assert_eq!(bench.reconcile().await, requeue(why));
    assert_eq!(bench.conditions().await, [format!("Ready=False/Creating@1: {why}")]);
    assert_eq!((bench.calls(), bench.has_token().await), (vec!["observe"], false));
    bench.line.while_observing(|| ());
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!((bench.conditions().await, bench.provider.things().len()), (all_well(1), 1));
}

pub async fn does_not_begin_with_what_the_provider_refuses(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    let refusal = || Err(Error::new(Class::Terminal, "spec.forProvider.size: must be even"));
    bench.provider.script(|script| script.validate.push_back(refusal()));
    let text = "create failed: spec.forProvider.size: must be even";
    assert_eq!(bench.reconcile().await, much_later(text));
    let said = ["Ready=False/Creating@1".to_owned(), format!("Synced=False/ReconcileError@1: {text}")];
    assert_eq!(bench.conditions().await, said);
    assert_eq!(bench.events(), [format!("CannotCreateExternalResource: {text}")]);
    assert_eq!((bench.calls(), bench.writes()), (vec!["observe"], vec![Verb::Status]));
    assert!(bench.annotation(CREATE_PENDING).await.is_none());
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!((bench.conditions().await, bench.provider.things().len()), (all_well(1), 1));
}
