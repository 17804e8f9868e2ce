//! What the end of a lease makes of the status.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::object::Object;
use crate::time;

use super::moment::Moment;
use super::names::RECONCILE_AT;
use super::phase::Phase;
use super::resource::Resource;
use super::transition::{fail, go, put_text, set_phase, started, succeed};

/// What a failure says when a worker answered nothing.
pub const RETURNED_NONE: &str = "reconcile returned None";
/// What a failure says when a worker was not heard of any more.
pub const LEASE_EXPIRED: &str = "lease expired";
/// Where a report says, among its details, at which phase it leaves what is not done yet.
pub const LEFT_AT: &str = "left_at";

/// How a worker says that a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// None if it did not say.
    pub success: Option<bool>,
    /// In words.
    pub message: String,
    /// When it wants to look again.
    pub requeue_after: Option<Duration>,
    /// That it is not done yet, and the phase to leave it at: reconciling or pending. If none, that follows
    /// from what was reported and observed.
    pub left: Option<Phase>,
}

/// What comes after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is as it should be: another look after this time.
    Ready(Duration),
    /// It is not there yet: another look after this time.
    After(Duration),
    /// It failed, for this reason: another try after this time.
    Retry(String, Duration),
    /// Only the owner's finalizer is left and its work is done: take it away.
    Purge,
    /// Others must take their finalizers away first.
    Wait,
}

/// What was known when the worker claimed the resource, and what it has said since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// The phase that it reported under this lease, if any.
    pub reported: Option<Phase>,
    /// Whether deletion was asked for when it was claimed.
    pub was_deleting: bool,
    /// The request for a run that was there when it was claimed.
    pub asked: Option<String>,
    /// The finalizer that was added for the owner.
    pub owner: String,
}

impl Lease {
    /// A lease that begins with `object` as it is.
    pub fn of(object: &Object, owner: &str) -> Self {
        Self {
            reported: None,
            was_deleting: Resource(object).is_deleting(),
            asked: object.annotation(RECONCILE_AT).map(str::to_owned),
            owner: owner.to_owned(),
        }
    }
}

/// The status after a worker said how its run ended.
///
/// A run that never reported a phase counts as one that left it at reconciling.
pub fn recorded(object: &Object, verdict: &Verdict, lease: &Lease, moment: &Moment) -> (Value, Next) {
    let mut status = Resource(object).status_map();
    // Which request for a run this was, so that it is not taken for a new one after a restart.
    put_text(&mut status, "handledReconcileAt", lease.asked.as_deref());
    let why = match verdict.success {
        Some(true) => None,
        Some(false) => Some(verdict.message.as_str()),
        None => Some(RETURNED_NONE),
    };
    let next = match (why, Resource(object).is_deleting()) {
        (Some(why), _) => failed(object, &mut status, why, verdict, lease, moment),
        (None, true) => released(object, &mut status, verdict, lease, moment),
        (None, false) => succeeded(object, &mut status, verdict, lease, moment),
    };
    (Value::Object(status), next)
}

/// The status after a lease ended without a word: a failure.
pub fn expired(object: &Object, lease: &Lease, moment: &Moment) -> (Value, Next) {
    let verdict = Verdict { success: Some(false), message: LEASE_EXPIRED.into(), ..Verdict::default() };
    recorded(object, &verdict, lease, moment)
}

fn failed(
    object: &Object,
    status: &mut Map<String, Value>,
    why: &str,
    verdict: &Verdict,
    lease: &Lease,
    moment: &Moment,
) -> Next {
    // A worker that reported the failure before it returned it has failed once, not twice.
    if lease.reported != Some(Phase::Failed) {
        fail(object, status, why, moment);
        put_text(status, "message", Some(why));
    }
    let wait = requeue(status, verdict, moment).unwrap_or_else(|| stored_wait(status, moment));
    Next::Retry(why.to_owned(), wait)
}

fn released(
    object: &Object,
    status: &mut Map<String, Value>,
    verdict: &Verdict,
    lease: &Lease,
    moment: &Moment,
) -> Next {
    status.remove("retryCount");
    status.remove("nextReconcileTime");
    go(object, status, moment);
    // It was made, not unmade, by a worker that did not know yet.
    if !lease.was_deleting {
        return Next::After(Duration::ZERO);
    }
    // Who wants to look again is not done yet, whatever finalizers are left.
    if let Some(wait) = requeue(status, verdict, moment) {
        return Next::After(wait);
    }
    if object.finalizers() == [lease.owner.as_str()] { Next::Purge } else { Next::Wait }
}

fn succeeded(
    object: &Object,
    status: &mut Map<String, Value>,
    verdict: &Verdict,
    lease: &Lease,
    moment: &Moment,
) -> Next {
    if let Some(phase @ (Phase::Reconciling | Phase::Pending)) = verdict.left {
        return unfinished(object, status, phase, verdict, moment);
    }
    match lease.reported {
        Some(Phase::Failed) => {
            let wait = requeue(status, verdict, moment).unwrap_or_else(|| stored_wait(status, moment));
            let why = Resource(object).message().unwrap_or_default().to_owned();
            return Next::Retry(why, wait);
        }
        Some(Phase::Ready) => {}
        Some(Phase::Pending | Phase::Reconciling | Phase::Deleting) | None => {
            if Resource(object).observed_generation() < object.generation() {
                return unfinished(object, status, Phase::Reconciling, verdict, moment);
            }
            succeed(status, moment);
            put_text(status, "message", Some(&verdict.message));
        }
    }
    Next::Ready(requeue(status, verdict, moment).unwrap_or_else(|| stored_wait(status, moment)))
}

/// Nothing failed, but nobody said that the spec is dealt with: it is waited for something outside.
fn unfinished(
    object: &Object,
    status: &mut Map<String, Value>,
    phase: Phase,
    verdict: &Verdict,
    moment: &Moment,
) -> Next {
    let started = started(object, moment);
    for field in ["phase", "conditions", "retryCount"] {
        match started.get(field) {
            Some(value) => drop(status.insert(field.into(), value.clone())),
            None => drop(status.remove(field)),
        }
    }
    // The conditions are for the claimed generation all the same: by them the next look keeps its time.
    set_phase(status, phase);
    if !verdict.message.is_empty() {
        put_text(status, "message", Some(&verdict.message));
    }
    let wait = verdict.requeue_after.unwrap_or(moment.rules.interval);
    set_next(status, wait, moment);
    Next::After(wait)
}

/// Puts the time that the worker asked for in the place of any other.
fn requeue(status: &mut Map<String, Value>, verdict: &Verdict, moment: &Moment) -> Option<Duration> {
    let wait = verdict.requeue_after?;
    set_next(status, wait, moment);
    Some(wait)
}

fn set_next(status: &mut Map<String, Value>, wait: Duration, moment: &Moment) {
    status.insert("nextReconcileTime".into(), json!(time::micros(moment.after(wait))));
}

/// What is left of the wait that the status tells of.
fn stored_wait(status: &Map<String, Value>, moment: &Moment) -> Duration {
    let next = status.get("nextReconcileTime").and_then(Value::as_str).and_then(time::parse);
    next.and_then(|it| Duration::try_from(it.duration_since(moment.now)).ok()).unwrap_or_default()
}
