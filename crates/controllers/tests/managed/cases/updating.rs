//! The external thing is made as declared.

use std::time::Duration;

use concert_engine::Outcome;
use concert_provider::{Class, Error, Updated};
use serde_json::{Value, json};

use crate::bench::{Bench, all_well, allowing, boom, conflict, much_later, polled, retry};
use crate::faulty::Verb;
use crate::stores::Subject;

const DIFF: &str = "spec.forProvider.size: 1 -> 2";

async fn drifted(subject: &Subject, rest: Value) -> Bench {
    let bench = Bench::new(subject).await;
    bench.declare_ready(rest).await;
    bench.edit(json!({"spec": {"forProvider": {"size": 2}}})).await;
    bench
}

pub async fn takes_one_pass_and_one_write(subject: &Subject) {
    let bench = drifted(subject, json!({})).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.calls(), ["observe", "update", "observe"]);
    assert_eq!(bench.events(), ["UpdatedExternalResource"]);
    assert_eq!(bench.writes(), [Verb::Status]);
    assert_eq!(bench.conditions().await, all_well(2));
    assert_eq!(bench.provider.things()["thing-1"], json!({"size": 2}));
}

pub async fn is_left_to_people_where_policies_say_so(subject: &Subject) {
    let bench = drifted(subject, allowing(&["Observe", "Create", "Delete"])).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!((bench.calls(), bench.events()), (vec!["observe"], vec![]));
    let said = [
        "Ready=True/Available@2".to_owned(),
        "Synced=True/ReconcileSuccess@2".to_owned(),
        format!("UpToDate=False/UpdateRestricted@2: {DIFF}"),
    ];
    assert_eq!(bench.conditions().await, said);
}

pub async fn that_fails_is_said_and_tried_again(subject: &Subject) {
    let bench = drifted(subject, json!({})).await;
    bench.provider.script(|script| script.update.push_back(Err(boom())));
    assert_eq!(bench.reconcile().await, retry("update failed: boom"));
    let said = [
        "Ready=True/Available@2".to_owned(),
        "Synced=False/ReconcileError@2: update failed: boom".to_owned(),
        format!("UpToDate=False/UpdateFailed@2: {DIFF}"),
    ];
    assert_eq!(bench.conditions().await, said);
    assert_eq!(bench.events(), ["CannotUpdateExternalResource: update failed: boom"]);
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(2));
}

pub async fn that_will_never_succeed_is_tried_much_later(subject: &Subject) {
    let bench = drifted(subject, json!({})).await;
    let error = Error::new(Class::Terminal, "size cannot change");
    bench.provider.script(|script| script.update.push_back(Err(error)));
    assert_eq!(bench.reconcile().await, much_later("update failed: size cannot change"));
    assert_eq!(
        bench.conditions().await[1],
        "Synced=False/ReconcileError@2: update failed: size cannot change"
    );
}

pub async fn that_meets_a_conflict_is_tried_again_silently(subject: &Subject) {
    let bench = drifted(subject, json!({})).await;
    let error = Error::new(Class::Conflict, "somebody else");
    bench.provider.script(|script| script.update.push_back(Err(error)));
    assert_eq!(bench.reconcile().await, conflict());
    assert_eq!(bench.events(), [""; 0]);
}

pub async fn that_takes_its_time_is_looked_at_when_it_says(subject: &Subject) {
    let bench = drifted(subject, json!({})).await;
    let wait = Duration::from_secs(5);
    let begun = Updated { again_after: Some(wait), ..Updated::default() };
    bench.provider.script(|script| script.update.push_back(Ok(begun)));
    let why = "waiting until the update is visible";
    assert_eq!(bench.reconcile().await, Outcome::Requeue(why.into(), Some(wait)));
    assert_eq!(bench.conditions().await[2], format!("UpToDate=False/UpdateRequested@2: {DIFF}"));
    assert_eq!(bench.calls(), ["observe", "update", "observe"]);
}

pub async fn does_not_begin_with_what_the_provider_refuses(subject: &Subject) {
    let bench = drifted(subject, json!({})).await;
    let refusal = Error::new(Class::Terminal, "spec.forProvider.size: must be odd");
    bench.provider.script(|script| script.validate.push_back(Err(refusal)));
    let text = "update failed: spec.forProvider.size: must be odd";
    assert_eq!(bench.reconcile().await, much_later(text));
    assert_eq!(bench.calls(), ["observe"]);
    assert_eq!(bench.conditions().await[1], format!("Synced=False/ReconcileError@2: {text}"));
    assert_eq!(bench.provider.things()["thing-1"], json!({"size": 1}));
}
