//! Every row of the table of standard conditions, and every rule for the end of a lease.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::Object;
use crate::time::{self, Timestamp};

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

pub(super) fn moment(second: i64, claimed: i64) -> Moment {
    // Each failure is another one, unless a test says how many there were.
    Moment { now: at(second), claimed, retries: u64::MAX, rules: Rules::default(), draw: 0.5 }
}

/// A resource of generation 2 with this status.
fn resource(status: Value) -> Object {
    Object::from_value(json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord", "status": status,
        "metadata": {"name": "a", "generation": 2, "finalizers": ["dns_record"],
            "labels": {"no8s.concert.dev/id": "7"}}}))
    .unwrap()
}

/// The same, of generation 3, since deletion was asked for.
fn going(status: Value, finalizers: Value) -> Object {
    let mut object = resource(status);
    object.set_metadata("deletionTimestamp", json!(time::seconds(at(0))));
    object.set_metadata("generation", json!(3));
    object.set_metadata("finalizers", finalizers);
    object
}

fn with(mut object: Object, status: Value) -> Object {
    object.set("status", status);
    object
}

fn report(phase: Phase, message: &str, observed: Option<i64>) -> Report {
    Report { phase, message: Some(message.into()), observed_generation: observed }
}

fn verdict(success: Option<bool>, message: &str, requeue_after: Option<u64>) -> Verdict {
    let requeue_after = requeue_after.map(Duration::from_secs);
    Verdict { success, message: message.into(), requeue_after, left: None }
}

fn said(phase: Option<Phase>) -> Lease {
    Lease { reported: phase, owner: "dns_record".into(), ..Lease::default() }
}

/// Each condition as `type/status/reason/message/generation`.
fn lines(status: &Value) -> Vec<String> {
    let all = crate::condition::all(status);
    let line = |it: &crate::Condition| {
        let generation = it.observed_generation.unwrap_or(-1);
        format!("{}/{:?}/{}/{}/{generation}", it.kind, it.status, it.reason, it.message)
    };
    all.iter().map(line).collect()
}

fn wait(status: &Value, second: i64) -> i64 {
    let next = time::parse(status["nextReconcileTime"].as_str().unwrap()).unwrap();
    next.duration_since(at(second)).as_secs()
}

const START: [&str; 2] = [
    "Ready/Unknown/ReconcileStarted/Reconciliation in progress/2",
    "Reconciling/True/ReconcileStarted/Reconciliation has started/2",
];
const SUCCESS: [&str; 3] = [
    "Ready/True/ReconcileSuccess/Resource reconciled successfully/2",
    "Reconciling/False/ReconcileComplete/Reconciliation completed/2",
    "Degraded/False/NoErrors//2",
];
const FAILURE: [&str; 3] = [
    "Ready/False/ReconcileFailed/boom/2",
    "Reconciling/False/ReconcileFailed//2",
    "Degraded/True/ReconcileFailed/boom/2",
];

#[test]
fn the_start_leaves_degraded_as_it_is() {
    assert_eq!(lines(&started(&resource(Value::Null), &moment(0, 2))), START);
    let failed = reported(&resource(Value::Null), &report(Phase::Failed, "boom", None), &moment(0, 2));
    let again = started(&resource(failed), &moment(1, 2));
    assert_eq!(lines(&again), [START[0], START[1], FAILURE[2]]);
    assert_eq!((&again["phase"], &again["nextReconcileTime"]), (&json!("reconciling"), &Value::Null));
    assert_eq!(again["retryCount"], 1, "the failures before are not forgotten by another try");
}

#[test]
fn success_is_for_the_claimed_generation_and_opens_the_drift_window() {
    let status =
        reported(&resource(json!({"retryCount": 4})), &report(Phase::Ready, "ok", Some(2)), &moment(0, 2));
    assert_eq!(lines(&status), SUCCESS);
    assert_eq!((&status["phase"], &status["message"]), (&json!("ready"), &json!("ok")));
    assert_eq!((&status["observedGeneration"], &status["retryCount"]), (&json!(2), &Value::Null));
    assert_eq!(wait(&status, 0), 300);
    assert_eq!(Resource(&resource(status)).last(), Some(at(0)));
}

#[test]
fn failures_back_off_and_a_change_of_the_spec_ends_that() {
    let mut object = resource(Value::Null);
    for (turn, expected) in [60, 120, 240].into_iter().enumerate() {
        let status = reported(&object, &report(Phase::Failed, "boom", None), &moment(0, 2));
        assert_eq!(lines(&status), FAILURE);
        assert_eq!((wait(&status, 0), status["retryCount"].as_u64()), (expected, Some(turn as u64 + 1)));
        object = with(object, status);
    }
    assert_eq!(Resource(&object).shown_phase(), Phase::Failed);
    assert_eq!(due_in(&object, at(0)), Some(Duration::from_secs(240)));
    assert_eq!(due_in(&object, at(240)), None);
    object.set_metadata("generation", json!(3));
    assert_eq!(Resource(&object).shown_phase(), Phase::Pending);
    assert_eq!((Resource(&object).retry_count(), due_in(&object, at(0))), (0, None));
    let started = started(&object, &moment(0, 3));
    let failed = reported(&with(object, started), &report(Phase::Failed, "boom", None), &moment(0, 3));
    assert_eq!((wait(&failed, 0), &failed["retryCount"]), (60, &json!(1)));
}

#[test]
fn deletion_shows_whatever_is_reported_and_only_failures_count() {
    let object = going(json!({"phase": "ready", "retryCount": 3}), json!(["dns_record"]));
    let gone = deleting(&object, at(0));
    let row = [
        "Ready/Unknown/Deleting/Resource is being deleted/3",
        "Reconciling/False/Deleting/Resource is being deleted/3",
    ];
    assert_eq!(
        (lines(&gone), &gone["phase"], &gone["retryCount"]),
        (row.map(String::from).to_vec(), &json!("deleting"), &Value::Null)
    );
    let object = with(object, gone);
    for phase in [Phase::Pending, Phase::Reconciling, Phase::Ready, Phase::Deleting] {
        let status = reported(&object, &report(phase, "x", Some(3)), &moment(1, 3));
        assert_eq!((lines(&status), &status["phase"]), (row.map(String::from).to_vec(), &json!("deleting")));
        assert_eq!(due_in(&with(object.clone(), status), at(1)), None);
    }
    let failed = reported(&object, &report(Phase::Failed, "boom", None), &moment(1, 3));
    assert_eq!(
        (&failed["phase"], &failed["retryCount"], wait(&failed, 1)),
        (&json!("deleting"), &json!(1), 60)
    );
    assert_eq!(lines(&failed)[2], "Degraded/True/ReconcileFailed/boom/3");
}

#[test]
fn what_was_claimed_before_the_deletion_does_not_hold_it_back() {
    let object = going(json!({"phase": "reconciling"}), json!(["dns_record"]));
    let object = with(object.clone(), deleting(&object, at(0)));
    for phase in Phase::ALL {
        let status = reported(&object, &report(phase, "boom", Some(2)), &moment(1, 2));
        assert_eq!(lines(&status), lines(object.status()), "{phase}");
        assert_eq!(due_in(&with(object.clone(), status), at(1)), None, "{phase}");
    }
    let (_, next) =
        recorded(&object, &verdict(Some(true), "made", None), &said(Some(Phase::Ready)), &moment(1, 2));
    assert_eq!(next, Next::After(Duration::ZERO), "it was made, so it must be unmade");
}

#[test]
fn the_observed_generation_goes_neither_back_nor_beyond() {
    let object = resource(json!({"observedGeneration": 2}));
    for (said, kept) in [(Some(1), 2), (None, 2), (Some(2), 2), (Some(9), 2), (Some(-1), 2)] {
        let status = reported(&object, &report(Phase::Ready, "", said), &moment(0, 2));
        assert_eq!(status["observedGeneration"], kept, "{said:?}");
    }
}

#[test]
fn only_deletion_makes_something_deleting() {
    let status = reported(&resource(Value::Null), &report(Phase::Deleting, "", None), &moment(0, 2));
    assert_eq!(status["phase"], "pending");
    assert_eq!(Resource(&resource(json!({"phase": "deleting"}))).shown_phase(), Phase::Pending);
}

#[test]
fn own_conditions_come_after_the_standard_ones_in_the_order_they_were_set() {
    let set = |object: &Object, kind| conditioned(object, kind, "True", ("R", "m"), None, at(0)).unwrap();
    let mut object = resource(Value::Null);
    for kind in ["Zeta", "Alpha", "Zeta"] {
        object = with(object.clone(), set(&object, kind));
    }
    object = with(object.clone(), reported(&object, &report(Phase::Ready, "", Some(2)), &moment(0, 2)));
    let kinds: Vec<String> = Resource(&object).conditions().into_iter().map(|it| it.kind).collect();
    assert_eq!(kinds, ["Ready", "Reconciling", "Degraded", "Zeta", "Alpha"]);
    assert_eq!(lines(object.status())[3], "Zeta/True/R/m/0");
    for bad in ["true", "", "Maybe"] {
        let error = conditioned(&object, "X", bad, ("R", ""), None, at(0)).unwrap_err();
        assert_eq!(error, BadStatus(bad.into()));
    }
}

#[test]
fn a_standard_condition_that_a_worker_sets_moves_neither_generation_nor_back_off_nor_phase() {
    let set = |object: &Object, kind, observed| {
        conditioned(object, kind, "True", ("Mine", "m"), observed, at(1)).unwrap()
    };
    let failed = reported(&resource(Value::Null), &report(Phase::Failed, "boom", None), &moment(0, 2));
    for (kind, observed) in [
        ("Ready", None),
        ("Ready", Some(0)),
        ("Ready", Some(9)),
        ("Degraded", Some(9)),
        ("Reconciling", None),
    ] {
        let object = resource(failed.clone());
        let after = with(object.clone(), set(&object, kind, observed));
        let (was, is) = (Resource(&object), Resource(&after));
        let facts = |it: Resource<'_>| {
            (it.reported_generation(), it.retry_count(), it.next(), it.shown_phase(), it.is_changed())
        };
        assert_eq!(facts(is), facts(was), "{kind} {observed:?}");
        let set = is.conditions().into_iter().find(|it| it.kind == kind).unwrap();
        assert_eq!((set.reason.as_str(), set.observed_generation), ("Mine", Some(2)), "{kind} {observed:?}");
    }
    let early = with(resource(Value::Null), set(&resource(Value::Null), "Ready", Some(2)));
    assert!(Resource(&early).is_changed(), "nobody has reported yet");
}

#[test]
fn an_own_condition_is_for_a_generation_that_there_has_been() {
    for (said, kept) in [(None, 0), (Some(-1), 0), (Some(1), 1), (Some(2), 2), (Some(9), 2)] {
        let status = conditioned(&resource(Value::Null), "X", "True", ("R", "m"), said, at(0)).unwrap();
        assert_eq!(status["conditions"][0]["observedGeneration"], kept, "{said:?}");
    }
}

#[test]
fn times_of_conditions_change_only_with_their_status() {
    let first = conditioned(&resource(Value::Null), "X", "True", ("R", "m"), None, at(0)).unwrap();
    let time = |status: &Value| status["conditions"][0]["lastTransitionTime"].clone();
    let same = conditioned(&resource(first.clone()), "X", "True", ("R2", "m2"), Some(2), at(9)).unwrap();
    assert_eq!((time(&first), &same["conditions"][0]["reason"]), (time(&same), &json!("R2")));
    let other = conditioned(&resource(same), "X", "False", ("R", "m"), None, at(9)).unwrap();
    assert_ne!(time(&first), time(&other));
}

/// Phase as stored, observed generation, phase reported under the lease, what the worker returned →
/// phase afterwards, and what comes next.
#[test]
fn the_end_of_a_lease_resolves_the_phase() {
    use Phase::{Failed, Pending, Ready, Reconciling};
    let minute = Duration::from_secs(60);
    let retry = |why: &str, seconds| Next::Retry(why.into(), Duration::from_secs(seconds));
    let good = |after| verdict(Some(true), "ok", after);
    let bad = |after| verdict(Some(false), "boom", after);
    let none = verdict(None, "", None);
    for (stored, observed, lease, verdict, phase, next) in [
        // Left at reconciling.
        (Reconciling, 2, Some(Reconciling), good(None), Ready, Next::Ready(minute * 5)),
        (Reconciling, 2, Some(Reconciling), good(Some(30)), Ready, Next::Ready(minute / 2)),
        (Reconciling, 1, Some(Reconciling), good(Some(30)), Reconciling, Next::After(minute / 2)),
        (Reconciling, 1, Some(Reconciling), good(Some(0)), Reconciling, Next::After(Duration::ZERO)),
        (Reconciling, 1, Some(Reconciling), good(None), Reconciling, Next::After(minute)),
        (Reconciling, 2, Some(Reconciling), bad(None), Failed, retry("boom", 60)),
        (Reconciling, 2, Some(Reconciling), bad(Some(5)), Failed, retry("boom", 5)),
        (Reconciling, 2, Some(Reconciling), none.clone(), Failed, retry("reconcile returned None", 60)),
        // Pending, and never reported at all, count as reconciling.
        (Pending, 2, Some(Pending), good(None), Ready, Next::Ready(minute * 5)),
        (Pending, 0, None, good(None), Reconciling, Next::After(minute)),
        (Pending, 0, None, bad(None), Failed, retry("boom", 60)),
        (Pending, 0, None, none.clone(), Failed, retry("reconcile returned None", 60)),
        // What an earlier lease left behind.
        (Ready, 2, None, good(None), Ready, Next::Ready(minute * 5)),
        (Ready, 2, None, bad(None), Failed, retry("boom", 60)),
        (Ready, 1, None, good(None), Reconciling, Next::After(minute)),
        (Failed, 2, None, good(None), Ready, Next::Ready(minute * 5)),
        (Failed, 2, None, bad(None), Failed, retry("boom", 60)),
        // A failure after all.
        (Ready, 2, Some(Ready), bad(None), Failed, retry("boom", 60)),
        (Ready, 2, Some(Ready), none, Failed, retry("reconcile returned None", 60)),
    ] {
        let object = resource(json!({"phase": stored.as_str(), "observedGeneration": observed}));
        let (status, then) = recorded(&object, &verdict, &said(lease), &moment(0, 2));
        let case = format!("{stored} {observed} {lease:?} {verdict:?}");
        assert_eq!((status["phase"].as_str().unwrap(), &then), (phase.as_str(), &next), "{case}");
        let (Next::Ready(due) | Next::After(due) | Next::Retry(_, due)) = then else { panic!("{case}") };
        assert_eq!(wait(&status, 0).unsigned_abs(), due.as_secs(), "REST tells the truth: {case}");
        let row = match phase {
            Ready => SUCCESS[0],
            Failed => "Ready/False/ReconcileFailed/",
            _ => START[0],
        };
        assert!(lines(&status)[0].starts_with(row), "{case}");
    }
}

#[test]
fn a_change_is_pending_until_a_worker_has_begun_with_it() {
    let mut object = resource(Value::Null);
    object = with(object.clone(), started(&object, &moment(0, 2)));
    assert_eq!(Resource(&object).shown_phase(), Phase::Reconciling);
    object.set_metadata("generation", json!(3));
    assert_eq!(Resource(&object).shown_phase(), Phase::Pending);
    object = with(object.clone(), reported(&object, &report(Phase::Reconciling, "on", None), &moment(1, 2)));
    assert_eq!(Resource(&object).shown_phase(), Phase::Pending, "it is about the one before");
    object = with(object.clone(), started(&object, &moment(2, 3)));
    assert_eq!(Resource(&object).shown_phase(), Phase::Reconciling);
}

#[test]
fn what_was_reported_before_it_was_returned_counts_once() {
    let failed = reported(&resource(Value::Null), &report(Phase::Failed, "boom", None), &moment(0, 2));
    let object = resource(failed.clone());
    let lease = said(Some(Phase::Failed));
    let (status, next) = recorded(&object, &verdict(Some(false), "boom!", None), &lease, &moment(10, 2));
    assert_eq!((&status, next), (&failed, Next::Retry("boom!".into(), Duration::from_secs(50))));
    let (status, next) = recorded(&object, &verdict(Some(true), "", None), &lease, &moment(10, 2));
    assert_eq!((&status, next), (&failed, Next::Retry("boom".into(), Duration::from_secs(50))));
    let ready = reported(&resource(Value::Null), &report(Phase::Ready, "ok", Some(2)), &moment(0, 2));
    let lease = said(Some(Phase::Ready));
    let (status, next) =
        recorded(&resource(ready.clone()), &verdict(Some(true), "", None), &lease, &moment(10, 2));
    assert_eq!((&status, next), (&ready, Next::Ready(Duration::from_secs(290))));
}

#[test]
fn a_failure_that_is_said_twice_under_a_lease_is_one() {
    let said = |message| report(Phase::Failed, message, None);
    let first = |second, claimed| Moment { retries: 0, ..moment(second, claimed) };
    let once = reported(&resource(Value::Null), &said("boom"), &first(0, 2));
    let twice = reported(&resource(once.clone()), &said("boom"), &first(5, 2));
    assert_eq!(twice, once);
    let other = reported(&resource(once.clone()), &said("bang"), &first(5, 2));
    assert_eq!((&other["message"], wait(&other, 0)), (&json!("bang"), 60));
    assert_eq!(
        (other["retryCount"].as_u64(), &*lines(&other)[0]),
        (Some(1), "Ready/False/ReconcileFailed/bang/2")
    );
    let object = going(once, json!(["dns_record"]));
    let object = with(object.clone(), deleting(&object, at(0)));
    let late = reported(&object, &said("boom"), &first(5, 2));
    assert_eq!(lines(&late), lines(object.status()), "what came before the deletion does not hide it");
}

/// Whoever loses the write to somebody who says the same decides again on what that one has written.
#[test]
fn a_failure_that_two_say_at_one_instant_is_one_and_the_next_is_another() {
    let mut read = resource(Value::Null);
    for _ in 0..2 {
        read = with(read.clone(), reported(&read, &report(Phase::Failed, "boom", None), &moment(0, 2)));
    }
    let known = Resource(&read).retry_count();
    let both = |second| Moment { retries: known, ..moment(second, 2) };
    let first = reported(&read, &report(Phase::Failed, "boom", None), &both(0));
    let object = resource(first.clone());
    assert_eq!((Resource(&object).retry_count(), wait(&first, 0)), (3, 240));
    let second = reported(&object, &report(Phase::Failed, "boom", None), &both(1));
    assert_eq!(second, first);
    // The end of the lease says it, too, before what was reported is noted.
    let (ended, next) =
        recorded(&object, &verdict(Some(false), "boom", None), &said(Some(Phase::Reconciling)), &both(2));
    assert_eq!(
        (ended["retryCount"].as_u64(), next),
        (Some(3), Next::Retry("boom".into(), Duration::from_secs(238)))
    );
    let later = Moment { retries: Resource(&object).retry_count(), ..moment(3, 2) };
    let another = reported(&object, &report(Phase::Failed, "boom", None), &later);
    assert_eq!((another["retryCount"].as_u64(), wait(&another, 3)), (Some(4), 480));
}

#[test]
fn one_lease_adds_one_failure_at_most_and_each_says_when_the_next_try_is() {
    let one = |second| Moment { retries: 0, ..moment(second, 2) };
    let failed = report(Phase::Failed, "boom", None);
    let mut object = resource(Value::Null);
    for (second, phase) in [(0, Phase::Reconciling), (20, Phase::Pending), (40, Phase::Ready)] {
        object = with(object.clone(), reported(&object, &report(phase, "on", None), &one(second)));
        object = with(object.clone(), reported(&object, &failed, &one(second + 10)));
        let it = Resource(&object);
        assert_eq!((it.phase(), it.retry_count()), (Phase::Failed, 1), "{phase}");
        assert_eq!(wait(object.status(), second + 10), 60, "{phase}");
    }
    // What is to go stays deleting.
    let mut object = going(Value::Null, json!(["dns_record"]));
    object = with(object.clone(), deleting(&object, at(0)));
    for second in [1, 2] {
        let moment = Moment { retries: 0, ..moment(second, 3) };
        object = with(object.clone(), reported(&object, &failed, &moment));
        assert_eq!((object.status()["retryCount"].as_u64(), wait(object.status(), 1)), (Some(1), 60));
    }
}

#[test]
fn what_is_not_done_yet_is_left_where_its_worker_says() {
    let minute = Duration::from_secs(60);
    for (left, observed, after, then) in [
        (Phase::Pending, 0, Some(30), minute / 2),
        (Phase::Pending, 2, None, minute),
        (Phase::Reconciling, 2, Some(30), minute / 2),
    ] {
        let object = resource(json!({"phase": left.as_str(), "observedGeneration": observed}));
        let verdict = Verdict { left: Some(left), ..verdict(Some(true), "on", after) };
        let (status, next) = recorded(&object, &verdict, &said(Some(left)), &moment(0, 2));
        assert_eq!((status["phase"].as_str(), next), (Some(left.as_str()), Next::After(then)));
        let object = resource(status);
        assert_eq!(due_in(&object, at(0)), Some(then), "also after a restart");
        assert_eq!(Resource(&object).shown_phase(), left);
    }
    let ready = reported(&resource(Value::Null), &report(Phase::Ready, "ok", Some(2)), &moment(0, 2));
    let lease = said(Some(Phase::Ready));
    let (status, next) =
        recorded(&resource(ready), &verdict(Some(true), "ok", Some(30)), &lease, &moment(0, 2));
    assert_eq!((status["phase"].as_str(), next), (Some("ready"), Next::Ready(minute / 2)));
}

#[test]
fn a_lost_lease_is_a_failure() {
    let object = resource(json!({"phase": "reconciling", "observedGeneration": 1}));
    let (status, next) = expired(&object, &said(Some(Phase::Reconciling)), &moment(0, 2));
    assert_eq!((&status["phase"], &status["message"]), (&json!("failed"), &json!("lease expired")));
    assert_eq!(next, Next::Retry("lease expired".into(), Duration::from_secs(60)));
}

#[test]
fn deletion_ends_when_only_the_owner_is_left_and_is_retried_when_it_fails() {
    let lease = Lease { was_deleting: true, ..said(None) };
    let good = verdict(Some(true), "Deleted", None);
    for (finalizers, verdict, next) in [
        (json!(["dns_record"]), good.clone(), Next::Purge),
        (json!(["ext"]), good.clone(), Next::Wait),
        (json!(["dns_record", "ext"]), good, Next::Wait),
        (json!(["dns_record"]), verdict(Some(true), "", Some(30)), Next::After(Duration::from_secs(30))),
        (
            json!(["dns_record"]),
            verdict(Some(false), "no", None),
            Next::Retry("no".into(), Duration::from_secs(60)),
        ),
        (
            json!(["dns_record"]),
            verdict(None, "", None),
            Next::Retry("reconcile returned None".into(), Duration::from_secs(60)),
        ),
    ] {
        let object = going(json!({"phase": "deleting"}), finalizers);
        let (status, then) = recorded(&object, &verdict, &lease, &moment(0, 3));
        assert_eq!((status["phase"].as_str(), &then), (Some("deleting"), &next), "{verdict:?}");
    }
    // A failed destroy as some workers report it.
    let object = going(json!({"phase": "deleting"}), json!(["dns_record"]));
    let status = reported(&object, &report(Phase::Failed, "no", None), &moment(0, 3));
    let lease = Lease { reported: Some(Phase::Failed), ..lease };
    let (status, next) =
        recorded(&with(object, status), &verdict(Some(false), "no", None), &lease, &moment(0, 3));
    assert_eq!(
        (status["retryCount"].as_u64(), next),
        (Some(1), Next::Retry("no".into(), Duration::from_secs(60)))
    );
}

#[test]
fn a_request_for_a_run_holds_until_a_run_that_knew_of_it_has_ended() {
    let mut object = resource(json!({"observedGeneration": 2}));
    object = with(object.clone(), reported(&object, &report(Phase::Ready, "", Some(2)), &moment(0, 2)));
    assert!(due_in(&object, at(0)).is_some());
    object.set_annotation(names::RECONCILE_AT, "first");
    assert_eq!(due_in(&object, at(0)), None);
    let lease = Lease::of(&object, "dns_record");
    object.set_annotation(names::RECONCILE_AT, "second");
    let good = verdict(Some(true), "", None);
    object = with(object.clone(), recorded(&object, &good, &lease, &moment(0, 2)).0);
    assert_eq!(due_in(&object, at(0)), None, "the second one came while the first was dealt with");
    let lease = Lease::of(&object, "dns_record");
    object = with(object.clone(), recorded(&object, &good, &lease, &moment(0, 2)).0);
    assert!(due_in(&object, at(0)).is_some());
}

#[test]
fn a_run_that_is_asked_for_at_a_time_comes_then_and_may_be_later_than_the_next_one() {
    let mut object = resource(json!({"observedGeneration": 2}));
    object = with(object.clone(), reported(&object, &report(Phase::Ready, "", Some(2)), &moment(0, 2)));
    for (seconds, due) in [(0, None), (7, Some(7)), (100_000, Some(100_000))] {
        object.set_annotation(names::RECONCILE_AT, &crate::time::micros(at(seconds)));
        assert_eq!(due_in(&object, at(0)), due.map(Duration::from_secs));
        assert_eq!(Resource(&object).next(), Some(at(seconds)));
    }
    assert_eq!(due_in(&object, at(100_000)), None);
    let lease = Lease::of(&object, "dns_record");
    let (status, _) = recorded(&object, &verdict(Some(true), "", None), &lease, &moment(100_000, 2));
    assert!(due_in(&with(object, status), at(100_000)).is_some());
}

#[test]
fn a_run_that_is_asked_for_later_does_not_hold_a_deletion_back() {
    let mut object = going(json!({"phase": "ready"}), json!(["dns_record"]));
    object.set_annotation(names::RECONCILE_AT, &time::micros(at(86_400)));
    let object = with(object.clone(), deleting(&object, at(0)));
    assert_eq!(due_in(&object, at(0)), None);
    let failed = reported(&object, &report(Phase::Failed, "no", None), &moment(0, 3));
    let mut object = with(object, failed);
    assert_eq!(due_in(&object, at(0)), Some(Duration::from_secs(60)));
    object.set_annotation(names::RECONCILE_AT, &time::micros(at(5)));
    assert_eq!(due_in(&object, at(0)), Some(Duration::from_secs(5)), "a sooner one still helps");
}

#[test]
fn what_failed_for_good_is_given_up_until_it_changes_or_somebody_asks() {
    let failed = reported(&resource(Value::Null), &report(Phase::Failed, "boom", None), &moment(0, 2));
    assert!(!Resource(&resource(failed.clone())).is_given_up(), "there is a next try");
    let mut status = failed;
    status["nextReconcileTime"] = Value::Null;
    let object = resource(status.clone());
    assert!(Resource(&object).is_given_up());
    let mut changed = object.clone();
    changed.set_metadata("generation", json!(3));
    assert!(!Resource(&changed).is_given_up());
    let mut asked = object;
    asked.set_annotation(names::RECONCILE_AT, "now");
    assert!(!Resource(&asked).is_given_up());
    assert!(!Resource(&going(status, json!(["dns_record"]))).is_given_up());
    assert!(!Resource(&resource(json!({"phase": "reconciling"}))).is_given_up());
}

#[test]
fn parts_are_where_the_table_says() {
    let mut object = resource(json!({"outputs": {"ip": "1"}, "message": "m"}));
    object.set("plugin", json!({"action": "exec", "config": {"a": 1}, "metadata": {"b": 2}}));
    let it = Resource(&object);
    assert_eq!((it.id(), it.type_name(), it.type_version()), (Some(7), "DnsRecord", "v1"));
    assert_eq!((it.action(), it.config(), it.details()), ("exec", &json!({"a": 1}), &json!({"b": 2})));
    assert_eq!((it.outputs(), it.message(), it.observed_generation()), (&json!({"ip": "1"}), Some("m"), 0));
    assert_eq!(
        (it.phase(), it.shown_phase(), it.next(), it.last()),
        (Phase::Pending, Phase::Pending, None, None)
    );
}
