//! Which request of a worker is answered where.

use std::sync::Arc;

use async_trait::async_trait;
use concert_engine::workers::{Board, Stale};
use concert_model::Object;
use concert_model::no8s::Rules;
use concert_store::{Chance, Clock, Local, Store};
use http::{Method, Response, StatusCode};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::auth::{Access, Gate, User};
use crate::inventory::Minting;
use crate::kube::Body;
use crate::kube::answer::{text, whole};
use crate::rest::call::IfMatch;
use crate::rest::error::NOT_PERMITTED;
use crate::rest::index::Index;
use crate::rest::{Annex, Call, Error, Ids};

/// How a resource is shown.
pub type Show = Arc<dyn Fn(&Object) -> Value + Send + Sync>;

/// How many items of a worker are due and with no host yet.
pub type Waiting = Arc<dyn Fn(&str) -> usize + Send + Sync>;

/// What the door is made of.
#[derive(Clone)]
pub struct Parts {
    /// Where the objects are.
    pub store: Local,
    /// Who may do what.
    pub gate: Gate,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes jitter.
    pub chance: Chance,
    /// Where items are lent.
    pub board: Board,
    /// How long waits are.
    pub rules: Rules,
    /// How a resource is shown to hosts.
    pub show: Show,
    /// What waits for hosts.
    pub waiting: Waiting,
    /// Which numbers there are.
    pub ids: Ids,
    /// The inventory that component reconcilers work with.
    pub fleet: Fleet,
}

/// The inventory, here or elsewhere.
#[derive(Clone)]
pub struct Fleet {
    /// Where grants are.
    pub inventory: Arc<dyn Store>,
    /// Makes the tokens that come with items.
    pub minting: Arc<dyn Minting>,
}

/// The routes of workers. Cheap to clone.
#[derive(Clone)]
pub struct Door(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub parts: Parts,
    /// One registration at a time, so that no two can claim the same type.
    pub registering: Mutex<()>,
    /// Where resources are that were written or waited for by number.
    pub index: Index,
}

impl Door {
    /// The routes over `parts`.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner { parts, registering: Mutex::new(()), index: Index::default() }))
    }

    /// Whether a method and path, by segments behind `/api/v1`, are answered here.
    pub fn takes(method: &Method, path: &[&str]) -> bool {
        match path {
            ["workers", ..] => true,
            ["resources", _, "status" | "outputs"] | ["resources", _, "conditions", _] => {
                *method == Method::PUT
            }
            _ => false,
        }
    }

    /// Answers one request of somebody who is known. `path` is what is behind `/api/v1`, `only` which states
    /// of a resource may be written without a lease.
    ///
    /// # Errors
    /// What is wrong with the request.
    pub async fn handle(
        &self,
        method: &Method,
        path: &[&str],
        body: &Value,
        user: &User,
        only: IfMatch<'_>,
    ) -> Result<Response<Body>, Error> {
        let it = &*self.0;
        match (method.as_str(), path) {
            ("GET", ["workers"]) => it.list(user).await,
            ("POST", ["workers"]) => it.register(user, body).await,
            ("GET", ["workers", name]) => it.get(user, name).await,
            ("DELETE", ["workers", name]) => it.deregister(user, name).await,
            ("POST", ["workers", name, "claim"]) => it.claim(user, name, body).await,
            ("POST", ["workers", name, "heartbeat"]) => it.heartbeat(user, name, body).await,
            ("POST", ["workers", name, "writes"]) => it.writes(user, name, body).await,
            ("POST", ["workers", name, "results"]) => it.results(user, name, body).await,
            ("PUT", ["resources", id, part @ ("status" | "outputs")]) => {
                it.single(user, id, part, "", body, only).await
            }
            ("PUT", ["resources", id, "conditions", kind]) => {
                it.single(user, id, "conditions", kind, body, only).await
            }
            (_, ["workers"]) => Err(Error::method_not_allowed("GET, POST")),
            (_, ["workers", _]) => Err(Error::method_not_allowed("GET, DELETE")),
            (_, ["workers", _, "claim" | "heartbeat" | "writes" | "results"]) => {
                Err(Error::method_not_allowed("POST"))
            }
            _ => Err(Error::unknown_path()),
        }
    }
}

#[async_trait]
impl Annex for Door {
    fn takes(&self, method: &Method, path: &[&str]) -> bool {
        Self::takes(method, path)
    }

    async fn answer(&self, call: &Call<'_>) -> Result<Response<Body>, Error> {
        call.query(&[]).check()?;
        let only = IfMatch::of(&call.head.headers);
        self.handle(call.method(), call.path, &call.body()?, call.user, only).await
    }
}

impl Inner {
    /// Whether `user` may do this to a worker; to all if it has no name.
    pub async fn permit(&self, user: &User, verb: &str, name: &str) -> Result<(), Error> {
        let access = Access::Resource {
            verb,
            group: "concert.dev",
            resource: "workers",
            subresource: "",
            namespace: "",
            name,
        };
        let answer = self.parts.gate.authorise(user, &access).await;
        answer.map_err(|refusal| Error::refused(refusal, NOT_PERMITTED))
    }
}

pub(super) fn answer(code: StatusCode, value: &Value) -> Response<Body> {
    whole(code, "application/json", text(value))
}

pub(super) fn stale(stale: &Stale) -> Error {
    Error::conflict(stale.to_string())
}
