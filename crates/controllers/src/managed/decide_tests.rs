//! The algorithm, one line per rule.

use std::time::Duration;

use concert_engine::Wait;
use concert_model::condition::Status;
use concert_model::{GroupKind, Object, Timestamp};
use concert_provider::{Change, Class, Delta, Error, Lookup, Observation, Served, Token};
use serde_json::json;

use super::*;
use crate::managed::verdict::Next;
use crate::managed::vocabulary::{condition, event, reason};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn rules() -> Rules {
    Rules {
        served: Served::new(GroupKind::new("example.com", "Thing").at_version("v1")),
        can_look_up: true,
        names_by_object: false,
        has_policies: true,
        creation_grace: Duration::from_secs(30),
        timeout: Duration::from_secs(60),
    }
}

fn deterministic() -> Rules {
    let mut rules = Rules { can_look_up: false, ..rules() };
    rules.served.has_deterministic_names = true;
    rules
}

fn thing() -> Object {
    Object::from_value(json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "a", "uid": "u", "generation": 1}, "spec": {"forProvider": {}}}))
    .unwrap()
}

fn ours() -> Object {
    let mut object = thing();
    object.add_finalizer(FINALIZER);
    object
}

fn policies(mut object: Object, policies: &[&str]) -> Object {
    object.get_mut("spec")["managementPolicies"] = json!(policies);
    object
}

fn deleted(mut object: Object) -> Object {
    object.set_metadata("deletionTimestamp", json!("2026-11-16T00:00:00Z"));
    object
}

fn annotated(mut object: Object, name: &str, value: &str) -> Object {
    object.set_annotation(name, value);
    object
}

fn pending(object: Object) -> Object {
    let mut object = object;
    journal::begin(&mut object, &Token("t".into()), at(0));
    object
}

fn seen(observation: Observation) -> Seen {
    Seen { has_references: true, observation: Some(Ok(observation)), ..Seen::default() }
}

fn absent() -> Observation {
    Observation::default()
}

fn there(is_up_to_date: bool) -> Observation {
    let change = Change {
        path: "spec.forProvider.size".into(),
        from: Some(json!(1)),
        to: Some(json!(2)),
        replaces: false,
        is_sensitive: false,
    };
    let diff = if is_up_to_date { Vec::new() } else { vec![change] };
    Observation { exists: true, is_up_to_date, diff, ..Observation::default() }
}

fn stored(observation: Observation) -> Seen {
    Seen { is_saved: true, is_published: true, ..seen(observation) }
}

fn next(object: &Object, seen: &Seen) -> Step {
    decide(object, seen, &rules(), at(100))
}

fn rest(step: Step) -> Verdict {
    match step {
        Step::Rest(verdict) => verdict,
        other => panic!("not at rest but {other:?}"),
    }
}

/// `Synced=False/ReconcileError: text` and so on, in one line.
fn told(verdict: &Verdict, kind: &str) -> String {
    let found = verdict.conditions.iter().find(|it| it.kind == kind);
    found.map_or("-".into(), |it| format!("{:?}/{}: {}", it.status, it.reason, it.message))
}

#[test]
fn paused_by_annotation_or_by_an_empty_list_nothing_is_done() {
    for object in [annotated(ours(), annotation::PAUSED, "true"), policies(ours(), &[])] {
        let verdict = rest(next(&object, &Seen::default()));
        assert_eq!(told(&verdict, condition::SYNCED), "False/ReconcilePaused: ");
        assert_eq!(told(&verdict, condition::UP_TO_DATE), "Unknown/ReconcilePaused: ");
        assert_eq!((verdict.next, verdict.is_answer), (Next::OnChange, false));
    }
    for value in ["True", "yes", ""] {
        let object = annotated(ours(), annotation::PAUSED, value);
        assert_eq!(next(&object, &Seen::default()), Step::ResolveReferences);
    }
}

#[test]
fn a_paused_object_is_deleted_only_on_request_and_says_so() {
    let object = deleted(annotated(ours(), annotation::PAUSED, "true"));
    let verdict = rest(next(&object, &Seen::default()));
    assert!(told(&verdict, condition::SYNCED).contains(annotation::DELETE_WHILE_PAUSED));
    let object = annotated(object, annotation::DELETE_WHILE_PAUSED, "true");
    assert_eq!(next(&object, &Seen::default()), Step::Observe);
    let object = annotated(policies(deleted(ours()), &[]), annotation::DELETE_WHILE_PAUSED, "true");
    assert_eq!(next(&object, &Seen::default()), Step::Observe);
}

#[test]
fn policies_that_make_no_sense_wait_for_a_change() {
    let verdict = rest(next(&policies(ours(), &["Create"]), &Seen::default()));
    assert!(told(&verdict, condition::SYNCED).contains("not supported"));
    assert_eq!((verdict.next, verdict.event.unwrap().reason), (Next::OnChange, event::INVALID_POLICY));
    let off = Rules { has_policies: false, ..rules() };
    let verdict = rest(decide(&policies(ours(), &["Observe"]), &Seen::default(), &off, at(0)));
    assert!(told(&verdict, condition::SYNCED).contains("not enabled"));
}

#[test]
fn an_orphan_is_let_go_without_a_look() {
    let object = deleted(policies(ours(), &["Observe", "Create", "Update", "LateInitialize"]));
    assert_eq!(next(&object, &Seen::default()), Step::RemoveFinalizer);
    let mut object = deleted(ours());
    object.get_mut("spec")["deletionPolicy"] = json!("Orphan");
    assert_eq!(next(&object, &Seen::default()), Step::RemoveFinalizer);
}

#[test]
fn what_is_not_ours_is_nobodys_to_delete() {
    let verdict = rest(next(&deleted(thing()), &Seen::default()));
    assert_eq!(verdict, Verdict::nothing());
}

#[test]
fn an_open_create_is_looked_up_and_closed_by_what_is_found() {
    let object = pending(ours());
    assert_eq!(next(&object, &Seen::default()), Step::Lookup(Token("t".into())));
    let with = |lookup| Seen { lookup: Some(Ok(lookup)), ..Seen::default() };
    assert_eq!(next(&object, &with(Lookup::Found(Delta::default()))), Step::Close(Ending::Succeeded));
    assert_eq!(next(&object, &with(Lookup::CertainlyNone)), Step::Close(Ending::Failed));
    // Also when the object is to go: what was made must be found before it can be removed.
    assert_eq!(next(&deleted(object), &Seen::default()), Step::Lookup(Token("t".into())));
}

#[test]
fn a_lookup_that_fails_is_tried_again() {
    let error = Error::new(Class::Unreachable, "refused");
    let verdict = rest(next(&pending(ours()), &Seen { lookup: Some(Err(error)), ..Seen::default() }));
    assert!(matches!(verdict.next, Next::Retry(_)));
    assert!(told(&verdict, condition::SYNCED).contains("refused"));
}

#[test]
fn a_create_that_was_never_sent_needs_neither_lookup_nor_person() {
    let unsent = |token: &str| Seen { unsent: Some(Token(token.into())), ..Seen::default() };
    for can_look_up in [true, false] {
        let rules = Rules { can_look_up, ..rules() };
        let step = decide(&pending(ours()), &unsent("t"), &rules, at(100));
        assert_eq!(step, Step::Close(Ending::Failed));
    }
    assert_eq!(next(&pending(ours()), &unsent("another")), Step::Lookup(Token("t".into())));
}

#[test]
fn an_open_create_that_nobody_can_tell_about_waits_for_a_person() {
    let blind = Rules { can_look_up: false, ..rules() };
    for object in [pending(ours()), deleted(pending(ours()))] {
        // It is looked for under the name it has first.
        let first = decide(&object, &Seen { has_references: true, ..Seen::default() }, &blind, at(100));
        assert_eq!(first, Step::Observe);
        let verdict = rest(decide(&object, &seen(absent()), &blind, at(100)));
        assert_eq!(told(&verdict, condition::READY), "False/Creating: ");
        assert!(told(&verdict, condition::SYNCED).starts_with("False/ReconcileError: cannot determine creation result - remove the crossplane.io/external-create-pending annotation if it is safe to proceed"));
        assert!(told(&verdict, condition::SYNCED).contains(annotation::EXTERNAL_NAME));
        assert_eq!(verdict.event.unwrap().reason, event::CANNOT_INITIALIZE);
        assert_eq!(decide(&object, &seen(there(true)), &blind, at(100)), Step::Close(Ending::Succeeded));
    }
}

#[test]
fn a_person_decides_by_taking_the_annotation_away() {
    let mut object = pending(ours());
    object.remove_annotation(annotation::CREATE_PENDING);
    let blind = Rules { can_look_up: false, ..rules() };
    assert_eq!(decide(&object, &seen(absent()), &blind, at(100)), Step::Create);
}

#[test]
fn names_that_are_known_beforehand_make_an_open_create_harmless() {
    assert_eq!(decide(&pending(ours()), &seen(absent()), &deterministic(), at(100)), Step::Create);
    // But who is to go waits until the call of a dead process can no longer arrive.
    let object = deleted(pending(ours()));
    let verdict = rest(decide(&object, &seen(absent()), &deterministic(), at(100)));
    assert!(matches!(verdict.next, Next::Requeue(_)));
    assert_eq!(decide(&object, &seen(absent()), &deterministic(), at(121)), Step::RemoveFinalizer);
}

#[test]
fn references_come_before_the_look_but_not_for_what_is_to_go() {
    assert_eq!(next(&ours(), &Seen::default()), Step::ResolveReferences);
    assert_eq!(next(&ours(), &Seen { has_references: true, ..Seen::default() }), Step::Observe);
    assert_eq!(next(&deleted(ours()), &Seen::default()), Step::Observe);
}

#[test]
fn a_failed_look_is_told_and_tried_again() {
    let failed = |class| Seen {
        has_references: true,
        observation: Some(Err(Error::new(class, "boom"))),
        ..Seen::default()
    };
    let verdict = rest(next(&ours(), &failed(Class::Transient)));
    assert_eq!(told(&verdict, condition::SYNCED), "False/ReconcileError: observe failed: boom");
    assert_eq!(verdict.next, Next::Retry("observe failed: boom".into()));
    assert_eq!(verdict.event.unwrap().reason, event::CANNOT_OBSERVE);
    let verdict = rest(next(&ours(), &failed(Class::Denied)));
    assert_eq!(told(&verdict, condition::SYNCED), "False/ReconcileError: connect failed: boom");
    assert_eq!(verdict.event.unwrap().reason, event::CANNOT_CONNECT);
    let verdict = rest(next(&ours(), &failed(Class::Terminal)));
    assert_eq!(verdict.next, Next::SlowPoll("observe failed: boom".into()));
    assert_eq!(rest(next(&ours(), &failed(Class::Conflict))), Verdict::conflict());
}

#[test]
fn an_absent_thing_is_made_if_that_is_allowed() {
    assert_eq!(next(&ours(), &seen(absent())), Step::Create);
    assert_eq!(next(&policies(ours(), &["Observe", "Create"]), &seen(absent())), Step::Create);
    let verdict = rest(next(&policies(ours(), &["Observe"]), &seen(absent())));
    assert_eq!(
        told(&verdict, condition::SYNCED),
        "False/ReconcileError: observe failed: external resource does not exist"
    );
    assert_eq!(verdict.next, Next::Poll);
    for odd in [["Observe", "Delete"], ["Observe", "LateInitialize"], ["Observe", "Update"]] {
        let verdict = rest(next(&policies(ours(), &odd), &seen(absent())));
        assert!(told(&verdict, condition::SYNCED).contains("does not allow Create"), "{odd:?}");
    }
}

#[test]
fn waits_out_the_grace_period_before_creating_again() {
    let mut object = ours();
    journal::close(&mut object, Ending::Succeeded, at(80));
    let verdict = rest(next(&object, &seen(absent())));
    assert!(matches!(verdict.next, Next::Requeue(_)));
    assert!(told(&verdict, condition::READY).contains("Waiting for external resource existence"));
    assert_eq!(verdict.event.unwrap().reason, event::PENDING);
    assert!(matches!(rest(next(&deleted(object.clone()), &seen(absent()))).next, Next::Requeue(_)));
    assert_eq!(decide(&object, &seen(absent()), &rules(), at(110)), Step::Create);
    assert_eq!(decide(&deleted(object), &seen(absent()), &rules(), at(110)), Step::RemoveFinalizer);
}

#[test]
fn grace_counts_to_the_question_and_not_to_its_answer() {
    // Simulation, seed 775: the look was taken at once, and its answer took longer than the grace.
    let mut object = ours();
    journal::close(&mut object, Ending::Succeeded, at(80));
    let late = Seen { asked_at: Some(at(81)), ..seen(absent()) };
    assert!(matches!(rest(decide(&object, &late, &rules(), at(125))).next, Next::Requeue(_)));
}

#[test]
fn deletion_waits_for_others_and_says_for_whom() {
    let mut object = ours();
    object.add_finalizer("other.dev/x");
    let verdict = rest(next(&deleted(object), &seen(there(true))));
    assert_eq!(told(&verdict, condition::READY), "False/Deleting: waiting for other finalizers: other.dev/x");
}

#[test]
fn what_is_to_go_is_removed_and_then_let_go() {
    let object = deleted(ours());
    assert_eq!(next(&object, &seen(there(true))), Step::Delete);
    let done = |done, observation| Seen { done: Some(done), ..seen(observation) };
    let gone = Done::Delete(Ok(Progress::default()));
    assert_eq!(next(&object, &done(gone.clone(), absent())), Step::RemoveFinalizer);
    let verdict = rest(next(&object, &done(gone, there(true))));
    assert_eq!(told(&verdict, condition::READY), "False/Deleting: ");
    assert_eq!(told(&verdict, condition::SYNCED), "True/ReconcileSuccess: ");
    assert!(matches!(verdict.next, Next::Requeue(_)));
    let failed = Done::Delete(Err(Error::new(Class::Transient, "in use")));
    let verdict = rest(next(&object, &done(failed, there(true))));
    assert_eq!(told(&verdict, condition::SYNCED), "False/ReconcileError: delete failed: in use");
    assert_eq!(told(&verdict, condition::READY), "False/Deleting: ");
}

#[test]
fn what_was_made_while_its_object_was_deleted_is_not_left_behind() {
    // Simulation, seed 163: the user deletes while the create is under way.
    let mut object = deleted(ours());
    journal::close(&mut object, Ending::Succeeded, at(99));
    let made = Seen { done: Some(Done::Create(Ok(Progress::default()))), ..seen(absent()) };
    assert!(matches!(rest(next(&object, &made)).next, Next::Requeue(_)));
}

#[test]
fn what_is_there_is_saved_then_published_then_compared() {
    let mut known = seen(there(true));
    assert_eq!(next(&thing(), &known), Step::Save);
    known.is_saved = true;
    assert_eq!(next(&ours(), &known), Step::Publish);
    known.is_published = true;
    let verdict = rest(next(&ours(), &known));
    assert_eq!(told(&verdict, condition::SYNCED), "True/ReconcileSuccess: ");
    assert_eq!(told(&verdict, condition::UP_TO_DATE), "True/ObserveMatched: ");
    assert_eq!((verdict.next, verdict.event), (Next::Poll, None));
}

#[test]
fn drift_is_mended_if_that_is_allowed_and_shown_if_not() {
    assert_eq!(next(&ours(), &stored(there(false))), Step::Update);
    let verdict = rest(next(&policies(ours(), &["Observe", "Create", "Delete"]), &stored(there(false))));
    assert_eq!(told(&verdict, condition::SYNCED), "True/ReconcileSuccess: ");
    assert_eq!(
        told(&verdict, condition::UP_TO_DATE),
        "False/UpdateRestricted: spec.forProvider.size: 1 -> 2"
    );
    assert_eq!(verdict.next, Next::Poll);
}

#[test]
fn an_update_is_looked_at_once_more_in_the_same_pass() {
    let done = |done, observation| Seen { done: Some(done), ..stored(observation) };
    let updated = Done::Update(Ok(Progress::default()));
    let verdict = rest(next(&ours(), &done(updated.clone(), there(true))));
    assert_eq!(told(&verdict, condition::UP_TO_DATE), "True/ObserveMatched: ");
    let verdict = rest(next(&ours(), &done(updated, there(false))));
    assert!(told(&verdict, condition::UP_TO_DATE).starts_with("False/UpdateRequested"));
    assert_eq!(verdict.next, Next::Poll);
    let failed = Done::Update(Err(Error::new(Class::Transient, "busy")));
    let verdict = rest(next(&ours(), &done(failed, there(false))));
    assert_eq!(told(&verdict, condition::SYNCED), "False/ReconcileError: update failed: busy");
    assert!(told(&verdict, condition::UP_TO_DATE).starts_with("False/UpdateFailed"));
}

#[test]
fn what_was_just_made_is_not_made_again() {
    let made = Done::Create(Ok(Progress { text: Some("half way".into()), again_after: None }));
    let verdict = rest(next(&ours(), &Seen { done: Some(made.clone()), ..seen(absent()) }));
    assert_eq!(told(&verdict, condition::READY), "False/Creating: half way");
    assert_eq!(told(&verdict, condition::SYNCED), "True/ReconcileSuccess: ");
    assert!(matches!(verdict.next, Next::Requeue(_)));
    // Nor changed: one thing is done in one pass.
    let verdict = rest(next(&ours(), &Seen { done: Some(made), ..stored(there(false)) }));
    assert!(matches!(verdict.next, Next::Requeue(_)));
}

#[test]
fn a_create_that_failed_is_told_and_one_in_doubt_stays_open() {
    let failed = |error: Error| Seen { done: Some(Done::Create(Err(error))), ..seen(absent()) };
    let error = Error::new(Class::Transient, "no room");
    let verdict = rest(next(&ours(), &failed(error.clone())));
    assert_eq!(told(&verdict, condition::SYNCED), "False/ReconcileError: create failed: no room");
    assert_eq!(told(&verdict, condition::READY), "False/Creating: ");
    let verdict = rest(next(&pending(ours()), &failed(error.in_doubt())));
    assert!(matches!(verdict.next, Next::Retry(_)));
}

#[test]
fn every_rest_that_waits_says_what_for() {
    let wait = Wait::label("x", None);
    let verdict = Verdict::references_failed("no resources matched selector", vec![wait.clone()]);
    assert_eq!(verdict.next, Next::WaitFor("no resources matched selector".into(), vec![wait]));
    let synced = verdict.conditions.iter().find(|it| it.kind == condition::SYNCED).unwrap();
    assert_eq!((synced.status, synced.reason.as_str()), (Status::False, reason::RECONCILE_ERROR));
}
