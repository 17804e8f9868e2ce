//! What an observation teaches is written to the object.

use concert_controllers::managed::vocabulary::FINALIZER;
use concert_controllers::managed::vocabulary::annotation::EXTERNAL_NAME;
use serde_json::{Value, json};

use crate::bench::{Bench, all_well, allowing, annotated, conflict, polled, retry};
use crate::faulty::{Trouble, Verb, unavailable};
use crate::stores::Subject;

const FAILED: &str = "cannot update managed resource: the store is unavailable";

/// A bench whose provider fills in a field of what is there.
async fn late(subject: &Subject) -> Bench {
    let bench = Bench::new(subject).await;
    bench.provider.put("there", json!({"size": 1}));
    let fields = json!({"forProvider": {"tier": "standard"}});
    bench.provider.script(|script| script.late = fields.as_object().cloned());
    bench
}

fn there() -> Value {
    annotated(&[(EXTERNAL_NAME, "there")])
}

async fn tier(bench: &Bench) -> Option<Value> {
    bench.get().await.pointer("/spec/forProvider/tier").cloned()
}

pub async fn a_finalizer_that_cannot_be_added_is_tried_again(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.provider.put("there", json!({"size": 5}));
    bench.declare(there()).await;
    bench.store.fail(Verb::Update, bench.kind(), 1, unavailable);
    assert_eq!(bench.reconcile().await, retry(FAILED));
    let said = ["Ready=True/Available@1".to_owned(), format!("Synced=False/ReconcileError@1: {FAILED}")];
    assert_eq!(bench.conditions().await, said);
    // Nothing is done to the thing while its object could go without us.
    assert_eq!(bench.calls(), ["observe"]);
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.get().await.finalizers(), [FINALIZER]);
    assert_eq!(bench.provider.things()["there"], json!({"size": 1}));
}

pub async fn a_finalizer_that_meets_a_conflict_is_added_later(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.provider.put("there", json!({"size": 1}));
    bench.declare(there()).await;
    let label = json!({"metadata": {"labels": {"by": "somebody"}}});
    bench.store.trouble(Verb::Update, bench.kind(), 1, Trouble::Meanwhile(label));
    assert_eq!(bench.reconcile().await, conflict());
    assert_eq!((bench.events(), bench.conditions().await), (vec![], vec![]));
    assert_eq!(bench.reconcile().await, polled());
}

pub async fn late_initialised_fields_are_written(subject: &Subject) {
    let bench = late(subject).await;
    bench.declare(there()).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(tier(&bench).await, Some(json!("standard")));
    assert_eq!(bench.writes(), [Verb::Update, Verb::Status]);
    // All of it is said of the generation that the write made, so that its echo finds nothing to say.
    assert_eq!(bench.conditions().await, all_well(2));
    assert_eq!(bench.reconcile().await, polled());
    assert!(bench.writes().is_empty());
}

pub async fn late_initialised_fields_that_cannot_be_written_are_tried_again(subject: &Subject) {
    let bench = late(subject).await;
    bench.declare(there()).await;
    bench.store.fail(Verb::Update, bench.kind(), 1, unavailable);
    assert_eq!(bench.reconcile().await, retry(FAILED));
    assert_eq!(bench.events(), [format!("CannotUpdateManagedResource: {FAILED}")]);
    assert_eq!(tier(&bench).await, None);
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(tier(&bench).await, Some(json!("standard")));
}

pub async fn late_initialised_fields_are_dropped_where_policies_say_so(subject: &Subject) {
    let bench = late(subject).await;
    let mut rest = allowing(&["Observe", "Create", "Update", "Delete"]);
    rest["metadata"] = there()["metadata"].clone();
    bench.declare(rest).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(tier(&bench).await, None);
    assert_eq!(bench.conditions().await, all_well(1));
}
