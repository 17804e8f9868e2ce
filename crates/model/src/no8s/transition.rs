//! What a report makes of the status.

use serde_json::{Map, Value, json};

use crate::condition::{self, Condition};
use crate::object::Object;
use crate::time::{self, Timestamp};

use super::conditions::{self, BadStatus, Row, STANDARD};
use super::moment::Moment;
use super::phase::Phase;
use super::resource::Resource;

/// What a worker says about a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How far it is.
    pub phase: Phase,
    /// In words; none clears what was said before.
    pub message: Option<String>,
    /// The generation that was dealt with.
    pub observed_generation: Option<i64>,
}

/// The status once a worker has begun.
pub fn started(object: &Object, moment: &Moment) -> Value {
    reported(object, &Report { phase: Phase::Reconciling, message: None, observed_generation: None }, moment)
}

/// The status after a worker said how far it is.
///
/// What is being deleted stays so, whatever is reported: a failure counts, anything else is words.
/// The observed generation never goes back, nor beyond what there is.
pub fn reported(object: &Object, report: &Report, moment: &Moment) -> Value {
    let mut status = with_words(object, report);
    match (report.phase, Resource(object).is_deleting()) {
        (Phase::Failed, _) => {
            fail(object, &mut status, report.message.as_deref().unwrap_or_default(), moment);
        }
        (_, true) => go(object, &mut status, moment),
        (Phase::Ready, false) => succeed(&mut status, moment),
        (Phase::Reconciling, false) => {
            keep_retries(object, &mut status);
            // Due at once should this run be lost with us.
            status.remove("nextReconcileTime");
            conditions::set_row(&mut status, Row::Start, moment.claimed, moment.now);
            set_phase(&mut status, Phase::Reconciling);
        }
        // Only deletion makes something deleting.
        (Phase::Pending | Phase::Deleting, false) => set_phase(&mut status, Phase::Pending),
    }
    Value::Object(status)
}

fn with_words(object: &Object, report: &Report) -> Map<String, Value> {
    let mut status = Resource(object).status_map();
    put_text(&mut status, "message", report.message.as_deref());
    if let Some(observed) = report.observed_generation {
        let newest = Resource(object).observed_generation().max(observed.min(object.generation()));
        status.insert("observedGeneration".into(), json!(newest));
    }
    status
}

/// The status with one condition set.
///
/// The generation of a standard condition is that of the last report, whoever sets the condition: phase,
/// back-off and the next run follow from it. Any other is for a generation that there has been.
///
/// # Errors
/// `status` is not one a condition can have; nothing changes.
pub fn conditioned(
    object: &Object,
    kind: &str,
    status: &str,
    (reason, message): (&str, &str),
    observed_generation: Option<i64>,
    now: Timestamp,
) -> Result<Value, BadStatus> {
    let is = conditions::parse_status(status)?;
    let observed = if STANDARD.contains(&kind) {
        condition::find(object.status(), kind).and_then(|it| it.observed_generation).unwrap_or_default()
    } else {
        observed_generation.unwrap_or_default().clamp(0, object.generation().max(0))
    };
    let condition = Condition::new(kind, is, reason, message).observed(observed);
    let mut status = Resource(object).status_map();
    conditions::set(&mut status, condition, now);
    Ok(Value::Object(status))
}

/// The status with other outputs.
pub fn with_outputs(object: &Object, outputs: Value) -> Value {
    let mut status = Resource(object).status_map();
    status.insert("outputs".into(), outputs);
    Value::Object(status)
}

/// The status once deletion was asked for. The back-off of what went before is over.
pub fn deleting(object: &Object, now: Timestamp) -> Value {
    let mut status = Resource(object).status_map();
    status.remove("nextReconcileTime");
    status.remove("retryCount");
    conditions::set_row(&mut status, Row::Deleting, object.generation(), now);
    set_phase(&mut status, Phase::Deleting);
    Value::Object(status)
}

pub(super) fn succeed(status: &mut Map<String, Value>, moment: &Moment) {
    status.remove("retryCount");
    status.insert("lastReconcileTime".into(), json!(time::micros(moment.now)));
    status.insert("nextReconcileTime".into(), json!(time::micros(moment.after(moment.rules.drift))));
    conditions::set_row(status, Row::Success, moment.claimed, moment.now);
    set_phase(status, Phase::Ready);
}

/// Counts a failure and says when the next try is. One that is counted already only gets other words.
pub(super) fn fail(object: &Object, status: &mut Map<String, Value>, why: &str, moment: &Moment) {
    if is_overtaken(object, moment) {
        return;
    }
    if is_counted(object, moment) {
        conditions::set_row(status, Row::Failure(why), moment.claimed, moment.now);
        return;
    }
    let retries = retries_of_claimed(object, moment).min(moment.retries);
    let wait = moment.rules.backoff(retries, moment.draw);
    status.insert("retryCount".into(), json!(retries.saturating_add(1)));
    status.insert("nextReconcileTime".into(), json!(time::micros(moment.after(wait))));
    conditions::set_row(status, Row::Failure(why), moment.claimed, moment.now);
    set_phase(status, if Resource(object).is_deleting() { Phase::Deleting } else { Phase::Failed });
}

/// The deleting row. When the next try is does not change.
pub(super) fn go(object: &Object, status: &mut Map<String, Value>, moment: &Moment) {
    if is_overtaken(object, moment) {
        return;
    }
    conditions::set_row(status, Row::Deleting, moment.claimed, moment.now);
    set_phase(status, Phase::Deleting);
}

/// Whether deletion was noted in the status since the worker claimed: what it says about the time
/// before that must neither hold the deletion back nor hide it.
fn is_overtaken(object: &Object, moment: &Moment) -> bool {
    Resource(object).is_deleting() && moment.claimed < Resource(object).reported_generation()
}

/// Whether this failure is in the status already. It is said again when the answer to the first time was
/// lost, and by two at one instant when its lease ends while it is reported.
fn is_counted(object: &Object, moment: &Moment) -> bool {
    let is_over = match Resource(object).phase() {
        Phase::Failed => true,
        // It stays deleting, so the wait tells.
        Phase::Deleting => !object.status()["nextReconcileTime"].is_null(),
        Phase::Pending | Phase::Reconciling | Phase::Ready => false,
    };
    is_over && retries_of_claimed(object, moment) > moment.retries
}

pub(super) fn set_phase(status: &mut Map<String, Value>, phase: Phase) {
    status.insert("phase".into(), json!(phase.as_str()));
}

pub(super) fn put_text(status: &mut Map<String, Value>, field: &str, text: Option<&str>) {
    match text.filter(|it| !it.is_empty()) {
        Some(text) => drop(status.insert(field.into(), json!(text))),
        None => drop(status.remove(field)),
    }
}

/// Failures before this one on the generation that was claimed. Compared with that one and not with
/// what there is now: a change of the spec while a worker runs does not undo its failures.
fn retries_of_claimed(object: &Object, moment: &Moment) -> u64 {
    let resource = Resource(object);
    if moment.claimed > resource.reported_generation() { 0 } else { resource.stored_retry_count() }
}

/// The start of work on another generation forgets the failures on the one before: once its conditions
/// are set, nothing tells any more whose they were.
fn keep_retries(object: &Object, status: &mut Map<String, Value>) {
    if Resource(object).is_changed() {
        status.remove("retryCount");
    }
}
