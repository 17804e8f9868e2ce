//! Nothing is done on request.

use concert_controllers::managed::vocabulary::annotation::{DELETE_WHILE_PAUSED, PAUSED};
use concert_engine::Outcome;
use serde_json::json;

use crate::bench::{Bench, all_well, allowing, annotated, conflict, on_change, polled, store_failed};
use crate::faulty::{Trouble, Verb, unavailable};
use crate::stores::Subject;

const SAID: [&str; 2] = ["Synced=False/ReconcilePaused@1", "UpToDate=Unknown/ReconcilePaused@1"];

async fn is_paused(bench: &Bench) {
    assert_eq!(bench.reconcile().await, on_change());
    assert_eq!(bench.conditions().await, SAID);
    assert_eq!(bench.events(), ["ReconciliationPaused"]);
    assert_eq!((bench.calls(), bench.writes()), (vec![], vec![Verb::Status]));
    assert_eq!(bench.reconcile().await, on_change());
    assert_eq!((bench.calls(), bench.writes()), (vec![], vec![]));
}

pub async fn by_annotation(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(annotated(&[(PAUSED, "true")])).await;
    is_paused(&bench).await;
}

pub async fn by_an_empty_list_of_policies(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(allowing(&[])).await;
    is_paused(&bench).await;
}

pub async fn takes_exactly_the_word_true(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(annotated(&[(PAUSED, "True")])).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
}

pub async fn ends_when_the_annotation_goes(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(annotated(&[(PAUSED, "true")])).await;
    is_paused(&bench).await;
    bench.annotate(PAUSED, None).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
    assert_eq!(bench.provider.things().len(), 1);
}

pub async fn ends_when_the_list_of_policies_is_filled(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(allowing(&[])).await;
    is_paused(&bench).await;
    bench.edit(allowing(&["*"])).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(2));
}

pub async fn that_cannot_be_said_is_tried_again(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(annotated(&[(PAUSED, "true")])).await;
    bench.store.fail(Verb::Status, bench.kind(), 1, unavailable);
    let failed = "cannot write the status: the store is unavailable: connection refused";
    assert_eq!(bench.reconcile().await, store_failed(failed));
    assert_eq!(bench.conditions().await, [""; 0]);
    bench.forget();
    is_paused(&bench).await;
}

pub async fn that_meets_a_conflict_is_tried_again_silently(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(annotated(&[(PAUSED, "true")])).await;
    let label = json!({"metadata": {"labels": {"by": "somebody"}}});
    bench.store.trouble(Verb::Status, bench.kind(), 1, Trouble::Meanwhile(label));
    assert_eq!(bench.reconcile().await, conflict());
    bench.forget();
    is_paused(&bench).await;
    assert_eq!(bench.get().await.labels()["by"], "somebody");
}

pub async fn holds_up_a_deletion_and_says_so(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(annotated(&[])).await;
    bench.annotate(PAUSED, Some("true")).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, on_change());
    let said = &bench.conditions().await[1];
    assert!(
        said.starts_with("Synced=False/ReconcilePaused@2: deletion waits until the pause ends"),
        "{said}"
    );
    assert_eq!((bench.calls(), bench.provider.things().len()), (vec![], 1));
}

pub async fn lets_a_deletion_pass_that_says_so(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(annotated(&[(DELETE_WHILE_PAUSED, "true")])).await;
    bench.annotate(PAUSED, Some("true")).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await && bench.provider.things().is_empty());
}
