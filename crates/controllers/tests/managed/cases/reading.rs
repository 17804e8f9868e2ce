//! The object is read first.

use concert_engine::Outcome;
use concert_model::GroupKind;
use serde_json::json;

use crate::bench::{Bench, polled, store_failed};
use crate::faulty::{Verb, unavailable};
use crate::stores::Subject;

pub async fn a_failing_read_is_the_stores_fault_and_tried_again(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    bench.store.fail(Verb::Get, bench.kind(), 1, unavailable);
    let failed = "cannot get managed resource: the store is unavailable: connection refused";
    assert_eq!(bench.reconcile().await, store_failed(failed));
    assert_eq!((bench.calls(), bench.writes(), bench.events()), (vec![], vec![], vec![]));
    assert_eq!(bench.reconcile().await, polled());
}

pub async fn what_is_not_there_is_done(subject: &Subject) {
    let bench = Bench::new(subject).await;
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert_eq!((bench.calls(), bench.writes(), bench.events()), (vec![], vec![], vec![]));
}

pub async fn what_was_torn_away_is_not_counted_any_more(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(json!({})).await;
    assert_eq!(bench.counts(), "KindMetrics { exists: 1, ready: 1, synced: 1, .. }");
    bench.edit(json!({"metadata": {"finalizers": null}})).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert_eq!(bench.counts(), "KindMetrics { exists: 0, ready: 0, synced: 0, .. }");
}

pub async fn a_kind_that_is_not_there_is_done(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.key.kind = GroupKind::new("nowhere.concert.dev", "Thing");
    assert_eq!(bench.reconcile().await, Outcome::Done);
}
