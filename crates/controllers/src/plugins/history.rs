//! What was tried, kept by the number of the resource, so that it outlives it.

use std::time::Duration;

use async_trait::async_trait;
use concert_engine::workers::{Leased, Report};
use concert_model::no8s::{Phase, Resource, resolve};
use concert_model::{Object, Timestamp, time};
use concert_store::local::AttemptRecord;
use concert_store::{Error, ItemKey, Local};
use serde_json::{Map, Value, json};

/// Takes what was tried.
#[async_trait]
pub trait History: Send + Sync + 'static {
    /// Writes an attempt down.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Full`].
    async fn record(&self, item: &ItemKey, record: &AttemptRecord) -> Result<(), Error>;
}

#[async_trait]
impl History for Local {
    async fn record(&self, item: &ItemKey, record: &AttemptRecord) -> Result<(), Error> {
        self.record_attempt(item, record).await
    }
}

/// Where the attempts at the resource with this number are.
pub fn item_of(id: &str) -> ItemKey {
    ItemKey { controller: "no8s".into(), item: id.into() }
}

/// The attempt that a lease was.
pub(super) fn attempt(lease: &Leased, report: &Report, now: Timestamp) -> AttemptRecord {
    let it = Resource(&lease.object);
    let is_success = report.success == Some(true);
    let why = match report.success {
        Some(true) => None,
        Some(false) => Some(report.message.as_str()),
        None => Some(resolve::RETURNED_NONE),
    };
    let measured = now.duration_since(lease.since_time);
    let took = seconds(report.details.get("duration_seconds"))
        .unwrap_or_else(|| Duration::try_from(measured).unwrap_or_default());
    let mut details = report.details.clone();
    let mut put = |field: &str, value: Value| drop(details.insert(field.to_owned(), value));
    put("success", json!(is_success));
    put("error_message", json!(why));
    put("duration_seconds", json!(took.as_secs_f64()));
    put("reconcile_time", json!(time::micros(now)));
    put("resource_type_name", json!(it.type_name()));
    put("resource_type_version", json!(it.type_version()));
    put("name", json!(lease.object.name()));
    fill(&mut details, "phase", json!(if is_success { "completed" } else { "failed" }));
    fill(&mut details, "trigger_reason", json!(trigger(&lease.object)));
    fill(&mut details, "drift_detected", json!(false));
    for count in ["resources_created", "resources_updated", "resources_deleted"] {
        fill(&mut details, count, json!(0));
    }
    AttemptRecord {
        attempt: u32::try_from(it.retry_count()).unwrap_or(u32::MAX).saturating_add(1),
        generation: lease.object.generation(),
        outcome: if is_success { "completed" } else { "failed" }.into(),
        message: why.unwrap_or(&report.message).to_owned(),
        reasons: vec![lease.reasons.to_string()],
        duration: took,
        details: Value::Object(details),
    }
}

/// Why it ran, where the worker does not say.
fn trigger(object: &Object) -> &'static str {
    let it = Resource(object);
    match it.shown_phase() {
        Phase::Deleting => "deletion",
        _ if it.last().is_none() && it.reported_generation() == 0 => "initial",
        _ if object.generation() > it.observed_generation() && it.is_changed() => "spec_change",
        Phase::Failed => "retry",
        _ => "scheduled",
    }
}

fn fill(details: &mut Map<String, Value>, field: &str, value: Value) {
    if details.get(field).is_none_or(Value::is_null) {
        details.insert(field.to_owned(), value);
    }
}

fn seconds(value: Option<&Value>) -> Option<Duration> {
    Duration::try_from_secs_f64(value?.as_f64()?).ok()
}
