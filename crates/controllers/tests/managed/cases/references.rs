//! Fields that are filled from other objects.

use concert_controllers::managed::vocabulary::FINALIZER;
use concert_controllers::managed::vocabulary::annotation::EXTERNAL_NAME;
use concert_engine::{Outcome, Wait};
use concert_model::ObjectKey;
use concert_provider::Reference;
use serde_json::{Value, json};

use crate::bench::{Bench, all_well, annotated, conflict, polled, retry};
use crate::faulty::{Trouble, Verb, unavailable};
use crate::stores::Subject;

async fn bench(subject: &Subject) -> Bench {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.served.references = vec![Reference {
        field: "spec.forProvider.network".into(),
        reference_field: "spec.forProvider.networkRef".into(),
        selector_field: "spec.forProvider.networkSelector".into(),
        to: bench.managed.rules.served.kind.clone(),
        extract: String::new(),
        is_many: false,
    }];
    bench
}

fn referring() -> Value {
    json!({"spec": {"forProvider": {"networkRef": {"name": "network"}}}})
}

fn network(bench: &Bench) -> ObjectKey {
    ObjectKey { name: "network".into(), ..bench.key.clone() }
}

pub async fn that_point_nowhere_wait_until_they_do(subject: &Subject) {
    let bench = bench(subject).await;
    bench.declare(referring()).await;
    let outcome = bench.reconcile().await;
    assert_eq!(outcome, Outcome::WaitFor(vec![Wait::existence_of(network(&bench))]));
    let text = format!(
        "cannot resolve references: spec.forProvider.network: cannot get referenced resource: {} does not exist",
        network(&bench)
    );
    assert_eq!(bench.conditions().await, [format!("Synced=False/ReconcileError@1: {text}")]);
    assert_eq!(bench.events(), [format!("CannotResolveResourceReferences: {text}")]);
    assert_eq!((bench.calls(), bench.writes()), (vec![], vec![Verb::Status]));
    bench.declare_as("network", annotated(&[(EXTERNAL_NAME, "net-7")])).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.get().await.pointer("/spec/forProvider/network"), Some(&json!("net-7")));
    assert_eq!(bench.provider.things()["thing-1"]["network"], "net-7");
    assert_eq!(bench.conditions().await, all_well(2));
    assert_eq!(bench.writes(), [Verb::Update, Verb::Update, Verb::Patch, Verb::Status]);
}

pub async fn that_are_resolved_are_not_written_again(subject: &Subject) {
    let bench = bench(subject).await;
    bench.declare_as("network", annotated(&[(EXTERNAL_NAME, "net-7")])).await;
    bench.declare_ready(referring()).await;
    assert_eq!(bench.reconcile().await, polled());
    assert!(bench.writes().is_empty());
}

pub async fn to_what_has_no_name_yet_wait_for_its_change(subject: &Subject) {
    let bench = bench(subject).await;
    bench.declare_as("network", json!({})).await;
    bench.declare(referring()).await;
    let target = bench.direct.get(&network(&bench)).await.unwrap();
    assert_eq!(bench.reconcile().await, Outcome::WaitFor(vec![Wait::change_of(&target)]));
    assert!(bench.conditions().await[0].contains("referenced field was empty"));
}

pub async fn that_cannot_be_read_are_tried_again(subject: &Subject) {
    let bench = bench(subject).await;
    bench.declare(referring()).await;
    // The first read is that of the object itself.
    bench.store.trouble(Verb::Get, bench.kind(), 2, Trouble::Fails(unavailable));
    let text = "cannot resolve references: the store is unavailable";
    assert_eq!(bench.reconcile().await, retry(text));
    assert_eq!(bench.events(), [format!("CannotResolveResourceReferences: {text}")]);
    assert_eq!(bench.calls(), [""; 0]);
}

pub async fn that_meet_a_conflict_are_resolved_again_silently(subject: &Subject) {
    let bench = bench(subject).await;
    bench.declare_as("network", annotated(&[(EXTERNAL_NAME, "net-7")])).await;
    bench.declare(referring()).await;
    let label = json!({"metadata": {"labels": {"by": "somebody"}}});
    bench.store.trouble(Verb::Update, bench.kind(), 1, Trouble::Meanwhile(label));
    assert_eq!(bench.reconcile().await, conflict());
    assert_eq!((bench.events(), bench.calls()), (vec![], vec![]));
    assert_eq!(bench.reconcile().await, polled());
}

pub async fn do_not_hold_up_a_deletion(subject: &Subject) {
    let bench = bench(subject).await;
    let mut rest = referring();
    rest["metadata"] = json!({"finalizers": [FINALIZER]});
    bench.declare(rest).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await);
}
