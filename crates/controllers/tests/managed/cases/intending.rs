//! What is written before a create, and what is made of it when it is found.

use concert_controllers::managed::vocabulary::annotation::{
    CREATE_PENDING, CREATE_SUCCEEDED, CREATE_TOKEN, EXTERNAL_NAME,
};
use concert_controllers::managed::vocabulary::{FINALIZER, message};
use concert_engine::Outcome;
use serde_json::json;

use crate::bench::{Bench, all_well, annotated, polled, requeue};
use crate::faulty::Verb;
use crate::stores::Subject;

/// When the clock of a bench starts.
const START: &str = "2026-01-01T00:00:00Z";

fn in_doubt() -> String {
    format!("{}; if it was made, first set {EXTERNAL_NAME} to its identity", message::CREATE_IN_DOUBT)
}

pub async fn external_name_finalizer_and_intent_are_one_write(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.names_by_object = true;
    bench.declare(json!({})).await;
    assert_eq!(bench.reconcile().await, polled());
    let writes = bench.store.take_writes();
    let first = writes[0].stored.as_ref().unwrap();
    assert_eq!(first.annotation(EXTERNAL_NAME), Some(&*bench.key.name));
    assert_eq!(first.annotation(CREATE_PENDING), Some(START));
    assert!(first.annotation(CREATE_TOKEN).is_some());
    assert_eq!(first.finalizers(), [FINALIZER]);
    let verbs: Vec<Verb> = writes.iter().filter(|it| it.kind == *bench.kind()).map(|it| it.verb).collect();
    assert_eq!(verbs, [Verb::Update, Verb::Patch, Verb::Status]);
    assert_eq!(bench.provider.things().into_keys().collect::<Vec<_>>(), [bench.key.name.to_string()]);
    let (_, observed) = bench.provider.take_asked().remove(0);
    assert_eq!(observed.annotation(EXTERNAL_NAME), Some(&*bench.key.name));
}

pub async fn a_name_that_is_set_stays(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.names_by_object = true;
    bench.declare(annotated(&[(EXTERNAL_NAME, "chosen")])).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.provider.things().into_keys().collect::<Vec<_>>(), ["chosen"]);
}

pub async fn an_open_create_of_another_program_waits_for_a_person(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(annotated(&[(CREATE_PENDING, START)])).await;
    assert_eq!(bench.reconcile().await, polled());
    let said =
        ["Ready=False/Creating@1".to_owned(), format!("Synced=False/ReconcileError@1: {}", in_doubt())];
    assert_eq!(bench.conditions().await, said);
    assert_eq!(bench.events(), [format!("CannotInitializeManagedResource: {}", in_doubt())]);
    assert_eq!((bench.calls(), bench.writes()), (vec!["observe"], vec![Verb::Status]));
}

pub async fn a_person_closes_an_open_create(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(annotated(&[(CREATE_PENDING, START)])).await;
    assert_eq!(bench.reconcile().await, polled());
    bench.annotate(CREATE_PENDING, None).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
    assert_eq!(bench.provider.things().len(), 1);
}

pub async fn an_open_create_holds_up_the_deletion_too(subject: &Subject) {
    let bench = Bench::new(subject).await;
    let mut rest = annotated(&[(CREATE_PENDING, START)]);
    rest["metadata"]["finalizers"] = json!([FINALIZER]);
    bench.declare(rest).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, polled());
    assert!(bench.conditions().await[1].contains(message::CREATE_IN_DOUBT));
    assert_eq!(bench.get().await.finalizers(), [FINALIZER]);
}

pub async fn an_open_create_that_is_visible_is_closed(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.provider.put("found", json!({"size": 1}));
    bench.declare(annotated(&[(CREATE_PENDING, START), (EXTERNAL_NAME, "found")])).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.annotation(CREATE_SUCCEEDED).await.as_deref(), Some(START));
    assert_eq!(bench.conditions().await, all_well(1));
    assert_eq!(bench.calls(), ["observe"]);
}

pub async fn an_open_create_stops_nobody_where_names_are_deterministic(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.names_by_object = true;
    bench.managed.rules.served.has_deterministic_names = true;
    bench.declare(annotated(&[(CREATE_PENDING, START)])).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.calls(), ["observe", "create", "observe"]);
    assert_eq!(bench.conditions().await, all_well(1));
}

pub async fn a_deletion_waits_until_the_create_of_a_dead_process_cannot_be_under_way(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.names_by_object = true;
    bench.managed.rules.served.has_deterministic_names = true;
    let mut rest = annotated(&[(CREATE_PENDING, START)]);
    rest["metadata"]["finalizers"] = json!([FINALIZER]);
    bench.declare(rest).await;
    bench.delete().await;
    let why = "waiting until an earlier create can no longer be under way";
    assert_eq!(bench.reconcile().await, requeue(why));
    assert_eq!(bench.conditions().await, [format!("Ready=False/Deleting@2: {why}")]);
    bench.clock.advance(121);
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert!(bench.is_gone().await);
}
