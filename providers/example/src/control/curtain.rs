//! What really is, and changes behind the provider's back.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::cloud::{Refusal, shown};
use crate::cloud::{Api, Fault, Settings, Summary, ThingKey};

#[derive(Deserialize)]
pub(super) struct Since {
    #[serde(default)]
    since: u64,
}

#[derive(Deserialize)]
pub(super) struct OfKind {
    kind: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Known {
    known: BTreeSet<String>,
}

/// A change made by hand. Null takes a property away.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Drift {
    #[serde(default)]
    properties: Map<String, Value>,
    is_broken: Option<bool>,
}

pub(super) async fn truth(State(api): State<Arc<Api>>, Query(since): Query<Since>) -> Json<Value> {
    let cloud = api.cloud();
    let truth = cloud.truth();
    Json(json!({
        "entries": truth.since(since.since),
        "live": truth.live(),
        "doubles": truth.doubles(),
        "summary": truth.summary(),
        "calls": cloud.calls(),
    }))
}

pub(super) async fn summary(State(api): State<Arc<Api>>) -> Json<Summary> {
    Json(api.cloud().truth().summary())
}

pub(super) async fn leaks(State(api): State<Arc<Api>>, Json(known): Json<Known>) -> Json<Value> {
    Json(json!(api.cloud().truth().leaks(&known.known)))
}

pub(super) async fn settings(State(api): State<Arc<Api>>) -> Json<Settings> {
    Json(api.settings())
}

pub(super) async fn set_settings(
    State(api): State<Arc<Api>>,
    Json(fields): Json<Map<String, Value>>,
) -> Result<Json<Settings>, (StatusCode, Json<Value>)> {
    let mut cloud = api.cloud();
    let refuse = |message| (StatusCode::BAD_REQUEST, Json(json!({ "message": message })));
    let settings = cloud.settings().with(&fields).map_err(refuse)?;
    cloud.set_settings(settings.clone());
    Ok(Json(settings))
}

pub(super) async fn things(State(api): State<Arc<Api>>) -> Json<Value> {
    Json(json!(api.cloud().truth().live()))
}

pub(super) async fn thing(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    Query(of): Query<OfKind>,
) -> Result<Json<Value>, Refusal> {
    let key = find(&api, &of, &id)?;
    let cloud = api.cloud();
    let thing = cloud.find(Some(&key.kind), &key.id).ok_or(Fault::Missing { id })?;
    Ok(Json(shown(thing, api.now())))
}

pub(super) async fn drift(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    Query(of): Query<OfKind>,
    Json(drift): Json<Drift>,
) -> Result<Json<Value>, Refusal> {
    let key = find(&api, &of, &id)?;
    let thing = api.drift(&key, drift.properties, drift.is_broken)?;
    Ok(Json(shown(&thing, api.now())))
}

pub(super) async fn vanish(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    Query(of): Query<OfKind>,
) -> Result<Json<Value>, Refusal> {
    let key = find(&api, &of, &id)?;
    let thing = api.vanish(&key)?;
    Ok(Json(shown(&thing, api.now())))
}

fn find(api: &Api, of: &OfKind, id: &str) -> Result<ThingKey, Fault> {
    let cloud = api.cloud();
    let thing = cloud.find(of.kind.as_deref(), id);
    thing.map(|thing| thing.key.clone()).ok_or_else(|| Fault::Missing { id: id.to_owned() })
}
