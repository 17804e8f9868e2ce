//! A create of ours whose outcome nobody knows.

use concert_controllers::managed::vocabulary::annotation::{CREATE_FAILED, CREATE_SUCCEEDED, EXTERNAL_NAME};
use concert_controllers::managed::vocabulary::message;
use concert_engine::Outcome;
use concert_provider::{Class, Error, Lookup};
use serde_json::json;

use crate::bench::{Bench, all_well, boom, polled, retry};
use crate::line::At;
use crate::stores::Subject;

fn reset() -> Error {
    Error::new(Class::Unreachable, "connection reset")
}

/// An object whose create ended in doubt, after it did happen or did not.
async fn in_doubt(subject: &Subject, has_happened: bool) -> Bench {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.can_look_up = true;
    bench.provider.script(|script| match has_happened {
        true => script.create_then = Some(reset().in_doubt()),
        false => script.create.push_back(Err(reset().in_doubt())),
    });
    bench.declare(json!({})).await;
    assert_eq!(bench.reconcile().await, retry("create failed: connection reset"));
    let said = ["Ready=False/Creating@1", "Synced=False/ReconcileError@1: create failed: connection reset"];
    assert_eq!(bench.conditions().await, said);
    assert_eq!(bench.events(), ["CannotCreateExternalResource: create failed: connection reset"]);
    assert!(bench.has_token().await && bench.annotation(CREATE_FAILED).await.is_none());
    bench.forget();
    bench.restart();
    bench
}

pub async fn finds_by_its_token_what_was_made(subject: &Subject) {
    let bench = in_doubt(subject, true).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.calls(), ["lookup", "observe"]);
    assert_eq!(bench.conditions().await, all_well(1));
    assert_eq!(bench.annotation(EXTERNAL_NAME).await.as_deref(), Some("thing-1"));
    assert!(bench.annotation(CREATE_SUCCEEDED).await.is_some() && !bench.has_token().await);
    assert_eq!((bench.provider.tokens().len(), bench.provider.things().len()), (1, 1));
}

pub async fn makes_again_what_was_certainly_not_made(subject: &Subject) {
    let bench = in_doubt(subject, false).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.calls(), ["lookup", "observe", "create", "observe"]);
    assert_eq!(bench.conditions().await, all_well(1));
    assert!(bench.annotation(CREATE_FAILED).await.is_some());
    let tokens = bench.provider.tokens();
    assert_eq!((tokens.len(), bench.provider.things().len()), (2, 1));
    assert_ne!(tokens[0], tokens[1]);
}

pub async fn waits_for_a_person_where_nobody_can_tell(subject: &Subject) {
    let bench = in_doubt(subject, true).await;
    bench.provider.script(|script| script.lookup.push_back(Ok(Lookup::Unknown)));
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.calls(), ["lookup", "observe"]);
    let said = bench.conditions().await;
    assert!(
        said[1].starts_with(&format!("Synced=False/ReconcileError@1: {}", message::CREATE_IN_DOUBT)),
        "{said:?}"
    );
    assert!(bench.has_token().await);
    // The person finds it, and says where.
    bench.annotate(EXTERNAL_NAME, Some("thing-1")).await;
    bench.provider.script(|script| script.lookup.push_back(Ok(Lookup::Unknown)));
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
    assert_eq!(bench.provider.tokens().len(), 1);
}

pub async fn asks_again_when_the_answer_does_not_come(subject: &Subject) {
    let bench = in_doubt(subject, true).await;
    bench.provider.script(|script| script.lookup.push_back(Err(boom())));
    let text = "observe failed: cannot look up what became of the last create: boom";
    assert_eq!(bench.reconcile().await, retry(text));
    assert_eq!(bench.events(), [format!("CannotInitializeManagedResource: {text}")]);
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!((bench.conditions().await, bench.provider.tokens().len()), (all_well(1), 1));
}

pub async fn removes_what_was_made_when_the_object_goes(subject: &Subject) {
    let bench = in_doubt(subject, true).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert_eq!(bench.calls(), ["lookup", "observe", "delete", "observe"]);
    assert!(bench.is_gone().await && bench.provider.things().is_empty());
}

pub async fn lets_an_object_go_that_certainly_made_nothing(subject: &Subject) {
    let bench = in_doubt(subject, false).await;
    bench.delete().await;
    assert_eq!(bench.reconcile().await, Outcome::Done);
    assert_eq!(bench.calls(), ["lookup", "observe"]);
    assert!(bench.is_gone().await);
}

pub async fn a_provider_that_restarts_before_the_create_gets_it_later(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    bench.line.breaks(At::Create, reset());
    assert_eq!(bench.reconcile().await, retry("create failed: connection reset"));
    assert_eq!(bench.calls(), ["observe"]);
    assert!(bench.annotation(CREATE_FAILED).await.is_some() && !bench.has_token().await);
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!((bench.conditions().await, bench.provider.tokens().len()), (all_well(1), 1));
}

pub async fn a_provider_that_restarts_in_the_midst_of_the_create_is_asked(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.can_look_up = true;
    bench.declare(json!({})).await;
    bench.line.breaks(At::Create, reset().in_doubt());
    assert_eq!(bench.reconcile().await, retry("create failed: connection reset"));
    assert!(bench.has_token().await);
    bench.forget();
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.calls(), ["lookup", "observe", "create", "observe"]);
    assert_eq!((bench.conditions().await, bench.provider.things().len()), (all_well(1), 1));
}
