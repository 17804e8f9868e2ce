//! The cloud's own API. A client without the provider, such as a benchmark's contender, uses this.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use concert_model::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cloud::{Account, Api, Create, Fault, Lookup, Owner, Thing, ThingKey};

/// The type of things where a client names none.
const KIND: &str = "thing";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    kind: Option<String>,
    name: Option<String>,
    token: Option<String>,
    #[serde(default)]
    account: Account,
    #[serde(default)]
    owner: Owner,
    #[serde(default)]
    properties: Map<String, Value>,
}

#[derive(Deserialize)]
pub(super) struct Changed {
    #[serde(default)]
    properties: Map<String, Value>,
}

/// `?kind=bucket&account=default&prefix=bkt-`
#[derive(Deserialize)]
pub(super) struct Which {
    kind: Option<String>,
    #[serde(default)]
    account: Account,
    #[serde(default)]
    prefix: String,
}

impl Which {
    fn key(&self, id: &str) -> ThingKey {
        ThingKey::new(self.kind.as_deref().unwrap_or(KIND), id)
    }
}

/// A fault as an HTTP answer.
pub(super) struct Refusal(Fault);

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self(fault)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self.0 {
            Fault::OutOfOrder => StatusCode::SERVICE_UNAVAILABLE,
            Fault::Throttled { .. } => StatusCode::TOO_MANY_REQUESTS,
            Fault::AnswerLost => StatusCode::GATEWAY_TIMEOUT,
            Fault::Taken { .. } | Fault::TokenSpent { .. } => StatusCode::CONFLICT,
            Fault::Missing { .. } => StatusCode::NOT_FOUND,
            Fault::Immutable { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Fault::Unwritten { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut body = json!({ "message": self.0.to_string() });
        let mut response = if let Fault::Throttled { retry_after, .. } = self.0 {
            body["retryAfterMs"] = json!(retry_after.as_millis());
            // The header knows only whole seconds.
            let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
            let mut response = Json(body).into_response();
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            response
        } else {
            Json(body).into_response()
        };
        *response.status_mut() = status;
        response
    }
}

/// A thing with what follows from it.
pub(super) fn shown(thing: &Thing, now: Timestamp) -> Value {
    let mut whole = json!(thing);
    whole["state"] = json!(thing.state(now));
    whole["endpoint"] = json!(thing.endpoint());
    whole
}

pub(super) async fn create(
    State(api): State<Arc<Api>>,
    Json(wanted): Json<Wanted>,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    let create = Create {
        kind: wanted.kind.unwrap_or_else(|| KIND.to_owned()),
        name: wanted.name,
        token: wanted.token,
        account: wanted.account,
        owner: wanted.owner,
        properties: wanted.properties,
        fence: None,
    };
    let thing = api.create(create).await?;
    Ok((StatusCode::CREATED, Json(shown(&thing, api.now()))))
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Query(which): Query<Which>,
) -> Result<Json<Value>, Refusal> {
    let kind = which.kind.as_deref().unwrap_or(KIND);
    let things = api.list(kind, &which.prefix, &which.account).await?;
    let now = api.now();
    Ok(Json(things.iter().map(|thing| shown(thing, now)).collect()))
}

pub(super) async fn read(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    Query(which): Query<Which>,
) -> Result<Json<Value>, Refusal> {
    let thing = api.read(&which.key(&id), &which.account).await?;
    let thing = thing.ok_or(Fault::Missing { id })?;
    Ok(Json(shown(&thing, api.now())))
}

pub(super) async fn update(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    Query(which): Query<Which>,
    Json(changed): Json<Changed>,
) -> Result<Json<Value>, Refusal> {
    let thing = api.update(&which.key(&id), changed.properties, &which.account, None).await?;
    Ok(Json(shown(&thing, api.now())))
}

pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    Query(which): Query<Which>,
) -> Result<StatusCode, Refusal> {
    api.delete(&which.key(&id), &which.account, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What became of a token; one that made nothing is burnt by the question.
pub(super) async fn lookup(
    State(api): State<Arc<Api>>,
    Path(token): Path<String>,
    Query(which): Query<Which>,
) -> Result<Json<Value>, Refusal> {
    let found = match api.lookup(&token, &which.account).await? {
        Lookup::Found(thing) => shown(&thing, api.now()),
        Lookup::CertainlyNone => Value::Null,
    };
    Ok(Json(json!({ "found": found })))
}
