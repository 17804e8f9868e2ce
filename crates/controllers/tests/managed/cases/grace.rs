//! A new thing may be invisible for a while.

use concert_controllers::managed::vocabulary::message::PENDING;
use concert_engine::Outcome;
use serde_json::json;

use crate::bench::{Bench, all_well, polled, requeue};
use crate::faulty::Verb;
use crate::scripted::absent;
use crate::stores::Subject;

/// An object whose thing was made and cannot be seen for so many looks more.
async fn invisible(subject: &Subject, looks: usize) -> Bench {
    let bench = Bench::new(subject).await;
    bench.provider.script(|script| script.observe.extend((0..looks + 2).map(|_| Ok(absent()))));
    bench.declare(json!({})).await;
    assert_eq!(bench.reconcile().await, requeue(PENDING));
    assert_eq!(bench.calls(), ["observe", "create", "observe"]);
    assert_eq!(bench.conditions().await, ["Ready=False/Creating@1", "Synced=True/ReconcileSuccess@1"]);
    assert_eq!(bench.writes(), [Verb::Update, Verb::Patch, Verb::Status]);
    bench.forget();
    bench
}

pub async fn is_waited_out(subject: &Subject) {
    let bench = invisible(subject, 1).await;
    bench.clock.advance(29);
    assert_eq!(bench.reconcile().await, requeue(PENDING));
    assert_eq!(bench.events(), ["PendingExternalResource"]);
    assert_eq!(bench.calls(), ["observe"]);
    let said = [format!("Ready=False/Creating@1: {PENDING}"), "Synced=True/ReconcileSuccess@1".to_owned()];
    assert_eq!(bench.conditions().await, said);
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!((bench.conditions().await, bench.provider.tokens().len()), (all_well(1), 1));
}

pub async fn ends_and_the_thing_is_made_again(subject: &Subject) {
    let bench = invisible(subject, 1).await;
    bench.clock.advance(30);
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.calls(), ["observe", "create", "observe"]);
    assert_eq!(bench.provider.tokens().len(), 2);
}

pub async fn holds_up_a_deletion(subject: &Subject) {
    let bench = invisible(subject, 2).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, requeue(PENDING));
    assert_eq!(bench.conditions().await[0], format!("Ready=False/Deleting@2: {PENDING}"));
    assert!(!bench.is_gone().await);
    bench.clock.advance(30);
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert_eq!(bench.calls(), ["observe", "observe"]);
    assert!(bench.is_gone().await);
}
