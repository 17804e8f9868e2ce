//! `GET /resources/{id}/history`: what was tried, also of resources that are gone.

use concert_model::no8s::{GROUP, names};
use concert_model::{GroupKind, Timestamp};
use concert_store::ItemKey;
use concert_store::local::AttemptRecord;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::kube::Body;
use crate::rest::call::{Call, answer};
use crate::rest::error::Error;
use crate::rest::types;
use crate::rest::view::naive;

/// Whose attempts they are.
const CONTROLLER: &str = "no8s";

/// `GET /resources/{id}/history`.
pub(crate) async fn history(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    let mut query = call.query(&["limit"]);
    let limit = query.limit(10);
    query.check()?;
    let number = call.id("resource_id", id)?;
    let item = ItemKey { controller: CONTROLLER.into(), item: number.to_string().into() };
    let found = call.door.index.find(call.store(), call.ids(), number).await?;
    match &found {
        Some(object) => super::permit(call, "get", object).await?,
        None => permit_gone(call, &item).await?,
    }
    let attempts = call.store().attempts(&item, limit).await?;
    let rows = attempts.iter().map(|(at, record)| row(number, *at, record)).collect();
    Ok(answer(StatusCode::OK, &Value::Array(rows)))
}

/// Who may read resources of its type may read of one that is gone: its history says which that was.
async fn permit_gone(call: &Call<'_>, item: &ItemKey) -> Result<(), Error> {
    let newest = call.store().attempts(item, 1).await?;
    let Some((_, record)) = newest.first() else { return Err(Error::not_found(super::NOT_FOUND)) };
    let text = |name: &str| record.details[name].as_str().unwrap_or_default();
    let (type_name, version) = (text("resource_type_name"), text("resource_type_version"));
    let (kind, plural) = match types::find_any(call.store(), type_name, version).await? {
        Some(found) => (found.kind, found.plural),
        None => (GroupKind::new(GROUP, type_name), names::plural(type_name)),
    };
    call.permit("get", &kind, &plural, text("name")).await
}

fn row(resource_id: u64, at: Timestamp, record: &AttemptRecord) -> Value {
    let detail = |name: &str| record.details.get(name).cloned().unwrap_or_default();
    let count = |name: &str| record.details[name].as_u64().unwrap_or_default();
    let success = record.details["success"].as_bool();
    let phase = record.details["phase"].as_str();
    json!({
        "id": at.as_microsecond(), "resource_id": resource_id, "generation": record.generation,
        "success": success.unwrap_or_default(),
        "phase": phase.unwrap_or(if success == Some(true) { "completed" } else { "failed" }),
        "error_message": detail("error_message"),
        "resources_created": count("resources_created"), "resources_updated": count("resources_updated"),
        "resources_deleted": count("resources_deleted"), "reconcile_time": naive(at),
        "trigger_reason": detail("trigger_reason"), "drift_detected": record.details["drift_detected"] == true,
        "duration_seconds": record.details["duration_seconds"].as_f64().unwrap_or(record.duration.as_secs_f64()),
        "plan_output": detail("plan_output"), "apply_output": detail("apply_output"),
        "message": record.message,
    })
}
