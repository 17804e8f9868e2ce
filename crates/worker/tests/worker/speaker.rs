//! A small server that speaks the worker protocol and can be made to misbehave.
//!
//! It is for what a real server does not do on demand: lose an answer, take a lease away in the middle,
//! move a section. What outcomes mean is not here; `examples/fleet` has the real server for that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::Notify;

#[derive(Clone, Default)]
pub struct Speaker(Arc<Inner>);

#[derive(Default)]
struct Inner {
    known: Mutex<Known>,
    changed: Notify,
}

#[derive(Default)]
pub struct Known {
    pub url: String,
    pub due: VecDeque<Value>,
    pub registered: Vec<Value>,
    pub claims: Vec<Value>,
    pub results: Vec<Value>,
    pub releases: Vec<Value>,
    pub leases: BTreeMap<String, u64>,
    pub sections: BTreeMap<String, (u64, Value)>,
    pub tokens: Vec<String>,
    pub fence: u64,
    pub revision: u64,
    /// Answers to results that are to get lost.
    pub results_to_lose: usize,
    /// Items whose next result is answered with this code.
    pub busy_with: BTreeMap<String, u16>,
    /// Longest batch of results that is taken.
    pub results_bytes_max: Option<usize>,
    /// The only one who is let in.
    pub accepts: Option<String>,
    pub is_forgetful: bool,
    pub conflict: Option<&'static str>,
    claimed: BTreeMap<String, Value>,
}

impl Speaker {
    pub async fn start() -> Self {
        let speaker = Self::default();
        let entry = "/inventory/v1/entries/{id}";
        let section = "/inventory/v1/entries/{id}/sections/{section}";
        let app = Router::new()
            .route("/api/v1/workers", post(register))
            .route("/api/v1/workers/{name}/claim", post(claim))
            .route("/api/v1/workers/{name}/heartbeat", post(heartbeat))
            .route("/api/v1/workers/{name}/results", post(results))
            .route("/api/v1/workers/{name}/writes", post(writes))
            .route(entry, get(read))
            .route(section, get(read_section).put(write_section).delete(remove_section))
            .with_state(speaker.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        speaker.known().url = format!("http://{}", listener.local_addr().unwrap());
        #[expect(clippy::disallowed_methods, reason = "it ends with the runtime of its test")]
        tokio::spawn(async move { axum::serve(listener, app).await });
        speaker
    }

    pub fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap()
    }

    pub fn url(&self) -> String {
        self.known().url.clone()
    }

    pub fn offer(&self, entry: &str) {
        self.known()
            .due
            .push_back(json!({"entry": entry, "kind": "runtime", "labels": {}, "deleting": false}));
        self.0.changed.notify_waiters();
    }

    /// Waits until something is so, and is woken by whatever happens.
    pub async fn until(&self, is_so: impl Fn(&Known) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            if is_so(&self.known()) {
                return;
            }
            changed.await;
        }
    }
}

type Answer = Result<Json<Value>, Response>;

fn refuse(status: StatusCode, detail: &str) -> Response {
    (status, Json(json!({ "detail": detail }))).into_response()
}

async fn register(State(it): State<Speaker>, headers: HeaderMap, Json(body): Json<Value>) -> Answer {
    let mut known = it.known();
    if known.accepts.as_ref().is_some_and(|it| headers["authorization"] != **it) {
        return Err(refuse(StatusCode::UNAUTHORIZED, "Token has expired"));
    }
    if let Some(conflict) = known.conflict {
        return Err(refuse(StatusCode::CONFLICT, conflict));
    }
    known.is_forgetful = false;
    known.registered.push(body);
    it.0.changed.notify_waiters();
    Ok(Json(json!({})))
}

async fn claim(State(it): State<Speaker>, Json(body): Json<Value>) -> Answer {
    let id = body["claim_id"].as_str().unwrap().to_owned();
    it.known().claims.push(body.clone());
    it.0.changed.notify_waiters();
    it.until(|known| !known.due.is_empty() || known.is_forgetful || known.claimed.contains_key(&id)).await;
    let mut known = it.known();
    if known.is_forgetful {
        return Err(refuse(StatusCode::NOT_FOUND, "Worker not found"));
    }
    if let Some(answer) = known.claimed.get(&id) {
        return Ok(Json(answer.clone()));
    }
    let mut items = Vec::new();
    while items.len() < body["limit"].as_u64().unwrap() as usize
        && let Some(object) = known.due.pop_front()
    {
        known.fence += 1;
        let (entry, fence) = (object["entry"].as_str().unwrap().to_owned(), known.fence);
        known.leases.insert(format!("{entry}/test"), fence);
        items.push(json!({"item": format!("{entry}/test"), "object": object, "attempt": 2,
            "lease": {"token": "t", "fence": fence, "expires_at": "2026-11-17T12:00:00Z"},
            "reasons": ["section:network"],
            "inventory": {"url": format!("{}/inventory/v1/entries/{entry}", known.url), "revision": 5,
                "token": format!("token-of-{entry}")}}));
    }
    let answer = json!({ "items": items });
    known.claimed.insert(id, answer.clone());
    it.0.changed.notify_waiters();
    Ok(Json(answer))
}

async fn heartbeat(State(it): State<Speaker>, Json(body): Json<Value>) -> Answer {
    let known = it.known();
    let is_lost =
        |beat: &&Value| known.leases.get(beat["item"].as_str().unwrap()) != beat["fence"].as_u64().as_ref();
    let lost: Vec<Value> = body["items"].as_array().unwrap().iter().filter(is_lost).cloned().collect();
    Ok(Json(json!({ "items": [], "lost": lost })))
}

async fn results(State(it): State<Speaker>, Json(body): Json<Value>) -> Answer {
    let mut known = it.known();
    if known.results_bytes_max.is_some_and(|most| body.to_string().len() > most) {
        return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "too much"));
    }
    let mut answers = Vec::new();
    for result in body["results"].as_array().unwrap() {
        let item = result["item"].as_str().unwrap();
        if let Some(status) = known.busy_with.remove(item) {
            answers.push(json!({"status": status, "detail": "later"}));
            known.results.push(result.clone());
            continue;
        }
        let is_held = known.leases.get(item) == result["fence"].as_u64().as_ref();
        if is_held {
            known.leases.remove(item);
        }
        answers.push(json!({"status": if is_held { 200 } else { 409 }, "detail": "stale fence"}));
        known.results.push(result.clone());
    }
    it.0.changed.notify_waiters();
    if known.results_to_lose > 0 {
        known.results_to_lose -= 1;
        return Err(refuse(StatusCode::GATEWAY_TIMEOUT, "lost"));
    }
    Ok(Json(json!({ "results": answers })))
}

async fn writes(State(it): State<Speaker>, Json(body): Json<Value>) -> Answer {
    it.known().releases.extend(body["writes"].as_array().unwrap().iter().cloned());
    it.0.changed.notify_waiters();
    Ok(Json(json!({ "results": [] })))
}

async fn read(State(it): State<Speaker>, headers: HeaderMap) -> Answer {
    let mut known = it.known();
    known.tokens.push(headers["authorization"].to_str().unwrap().to_owned());
    let shown = |(name, (version, data)): (&String, &(u64, Value))| {
        (name.clone(), json!({ "version": version, "data": data }))
    };
    let sections: serde_json::Map<String, Value> = known.sections.iter().map(shown).collect();
    Ok(Json(json!({ "revision": known.revision, "sections": sections })))
}

async fn read_section(State(it): State<Speaker>, Path((_, section)): Path<(String, String)>) -> Answer {
    match it.known().sections.get(&section) {
        Some((version, data)) => Ok(Json(json!({ "version": version, "data": data }))),
        None => Err(refuse(StatusCode::NOT_FOUND, "Section not found")),
    }
}

async fn write_section(
    State(it): State<Speaker>,
    Path((_, section)): Path<(String, String)>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Answer {
    let mut known = it.known();
    let (version, old) = known.sections.get(&section).cloned().unwrap_or_default();
    let wanted = headers.get("if-match").map(|it| it.to_str().unwrap().to_owned());
    if wanted.is_some_and(|it| it != format!("\"{version}\"")) {
        return Err(refuse(StatusCode::PRECONDITION_FAILED, "the section has moved"));
    }
    let is_same = old == body["data"];
    let version = if is_same { version } else { version + 1 };
    known.revision += u64::from(!is_same);
    known.sections.insert(section, (version, body["data"].clone()));
    Ok(Json(json!({ "version": version, "revision": known.revision, "unchanged": is_same })))
}

async fn remove_section(State(it): State<Speaker>, Path((_, section)): Path<(String, String)>) -> Answer {
    match it.known().sections.remove(&section) {
        Some(_) => Ok(Json(Value::Null)),
        None => Err(refuse(StatusCode::NOT_FOUND, "Section not found")),
    }
}
