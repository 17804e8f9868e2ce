//! How a create has ended must not be lost.

use std::time::Duration;

use concert_controllers::managed::vocabulary::annotation::{CREATE_SUCCEEDED, EXTERNAL_NAME};
use concert_engine::Outcome;
use concert_store::Clock;
use serde_json::json;

use crate::bench::{Bench, all_well, boom, polled, retry};
use crate::faulty::{Trouble, Verb, unavailable};
use crate::stores::Subject;

async fn is_made_once(bench: &Bench) {
    assert_eq!(bench.conditions().await, all_well(1));
    assert_eq!((bench.provider.tokens().len(), bench.provider.things().len()), (1, 1));
    assert!(bench.annotation(CREATE_SUCCEEDED).await.is_some() && !bench.has_token().await);
    assert_eq!(bench.annotation(EXTERNAL_NAME).await.as_deref(), Some("thing-1"));
}

pub async fn are_written_until_it_works(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    bench.store.fail(Verb::Patch, bench.kind(), 3, unavailable);
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.clock.elapsed(), Duration::from_millis(300));
    let mut writes = vec![Verb::Update];
    writes.extend([Verb::Patch; 4]);
    writes.push(Verb::Status);
    assert_eq!((bench.writes(), bench.events()), (writes, vec!["CreatedExternalResource".to_owned()]));
    is_made_once(&bench).await;
}

pub async fn that_are_failures_are_written_until_it_works(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    bench.provider.script(|script| script.create.push_back(Err(boom())));
    bench.store.fail(Verb::Patch, bench.kind(), 3, unavailable);
    assert_eq!(bench.reconcile().await, retry("create failed: boom"));
    assert!(!bench.has_token().await);
}

pub async fn whose_answer_is_lost_are_written_once(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    bench.store.trouble(Verb::Patch, bench.kind(), 1, Trouble::LosesAnswer);
    assert_eq!(bench.reconcile().await, polled());
    is_made_once(&bench).await;
}

pub async fn keep_what_others_wrote_meanwhile(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    let label = json!({"metadata": {"labels": {"by": "somebody"}, "annotations": {"example.com/a": "b"}}});
    bench.store.trouble(Verb::Patch, bench.kind(), 1, Trouble::Meanwhile(label));
    assert_eq!(bench.reconcile().await, polled());
    is_made_once(&bench).await;
    let object = bench.get().await;
    assert_eq!((&*object.labels()["by"], object.annotation("example.com/a")), ("somebody", Some("b")));
}

pub async fn that_cannot_be_written_are_found_out_later(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.can_look_up = true;
    bench.declare(json!({})).await;
    bench.store.fail(Verb::Patch, bench.kind(), usize::MAX, unavailable);
    let text = "cannot update managed resource: the store is unavailable";
    assert_eq!(bench.reconcile().await, retry(text));
    assert!(bench.clock.elapsed() >= Duration::from_secs(90));
    let said = ["Ready=False/Creating@1".to_owned(), format!("Synced=False/ReconcileError@1: {text}")];
    assert_eq!(bench.conditions().await, said);
    assert_eq!(bench.events(), [format!("CannotUpdateManagedResource: {text}")]);
    assert!(bench.has_token().await);
    bench.store.heal();
    bench.forget();
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.calls(), ["lookup", "observe"]);
    is_made_once(&bench).await;
}

pub async fn of_an_object_that_was_torn_away_are_nobodys(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    bench.store.trouble(Verb::Patch, bench.kind(), 1, Trouble::Vanishes);
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await);
}

pub async fn of_an_object_that_was_made_anew_are_not_told_of_the_new_one(subject: &Subject) {
    let bench = Bench::new(subject).await;
    let old = bench.declare(json!({})).await;
    bench.store.trouble(Verb::Patch, bench.kind(), 1, Trouble::IsReborn);
    assert_eq!(bench.reconcile().await, Outcome::Done);
    let new = bench.get().await;
    assert_ne!(new.uid(), old.uid());
    assert_eq!((new.annotation(EXTERNAL_NAME), new.finalizers().len()), (None, 0));
    assert_eq!((bench.conditions().await, bench.events()), (vec![], vec![]));
    // The new one has a thing of its own.
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.annotation(EXTERNAL_NAME).await.as_deref(), Some("thing-2"));
}
