//! Objects go, and what they stood for stays.

use concert_engine::Outcome;
use serde_json::json;

use crate::bench::{Bench, allowing, conflict, retry};
use crate::faulty::{Trouble, Verb, unavailable};
use crate::stores::Subject;

const WITHOUT_DELETE: [&str; 3] = ["Observe", "Create", "Update"];

async fn is_orphaned(bench: &Bench) {
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await);
    assert_eq!((bench.calls(), bench.events(), bench.provider.things().len()), (vec![], vec![], 1));
}

pub async fn by_policies_without_delete(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(allowing(&WITHOUT_DELETE)).await;
    bench.delete().await;
    is_orphaned(&bench).await;
}

pub async fn by_the_deletion_policy_of_a_cluster_scoped_object(subject: &Subject) {
    let bench = Bench::cluster(subject).await;
    bench.declare_ready(json!({"spec": {"deletionPolicy": "Orphan"}})).await;
    bench.delete().await;
    is_orphaned(&bench).await;
}

pub async fn is_overruled_by_policies_that_name_delete(subject: &Subject) {
    let bench = Bench::cluster(subject).await;
    let policies = ["Observe", "Create", "Update", "Delete"];
    let spec = json!({"spec": {"deletionPolicy": "Orphan", "managementPolicies": policies}});
    bench.declare_ready(spec).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await && bench.provider.things().is_empty());
}

pub async fn takes_only_its_own_finalizer_away(subject: &Subject) {
    let bench = Bench::new(subject).await;
    let mut rest = allowing(&WITHOUT_DELETE);
    rest["metadata"] = json!({"finalizers": ["example.com/other"]});
    bench.declare_ready(rest).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert_eq!(bench.get().await.finalizers(), ["example.com/other"]);
}

pub async fn tries_again_when_the_finalizer_cannot_be_removed(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(allowing(&WITHOUT_DELETE)).await;
    bench.delete().await;
    bench.store.fail(Verb::Update, bench.kind(), 1, unavailable);
    let text = "cannot remove the finalizer: the store is unavailable";
    assert_eq!(bench.reconcile().await, retry(text));
    assert_eq!(
        bench.conditions().await[..2],
        ["Ready=False/Deleting@2".to_owned(), format!("Synced=False/ReconcileError@2: {text}")]
    );
    is_orphaned(&bench).await;
}

pub async fn is_silent_about_a_conflict(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(allowing(&WITHOUT_DELETE)).await;
    bench.delete().await;
    let before = bench.conditions().await;
    let annotation = json!({"metadata": {"annotations": {"by": "somebody"}}});
    bench.store.trouble(Verb::Update, bench.kind(), 1, Trouble::Meanwhile(annotation));
    assert_eq!(bench.reconcile().await, conflict());
    assert_eq!(bench.conditions().await, before);
    is_orphaned(&bench).await;
}
