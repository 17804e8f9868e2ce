//! Which request is for whom.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Buf;
use concert_store::{Clock, Local};
use http::request::Parts as Head;
use http::{HeaderMap, Method, Response, StatusCode, Uri};
use tokio::sync::Semaphore;

use super::admit::{Admit, Webhooks};
use super::call::{Call, answer};
use super::cluster::{self, Company, Node};
use super::error::{Error, NO_TOKEN};
use super::ids::Ids;
use super::index::Index;
use super::types::Kept;
use super::{events, openapi, plugins, resources, routes, types};
use crate::auth::{Gate, Refusal, User, is_impersonating};
use crate::kube::answer::whole;
use crate::kube::content::{self, BoxError};
use crate::kube::params::Params;
use crate::kube::{Body, path};
use crate::write::{Admissions, All, Writer};

/// The first segments behind `/api/v1` that this door answers.
const SEGMENTS: [&str; 9] = [
    "resources",
    "resource-types",
    "users",
    "auth",
    "custom-roles",
    "admission-webhooks",
    "plugins",
    "cluster",
    "workers",
];

/// What the paths of this door stand behind, and those of annexes that are services of their own.
const BASES: [&str; 3] = [API, "/inventory/v1/", "/mothership/v1/"];
const API: &str = "/api/v1/";

/// Paths that need no token.
const PUBLIC: [&[&str]; 2] = [&["cluster", "health"], &["auth", "login"]];

/// Most segments of a path.
const DEPTH_MAX: usize = 8;

/// What the door is made of, besides what all doors share.
pub struct Parts {
    /// Where numbers come from.
    pub ids: Ids,
    /// The process that answers.
    pub node: Node,
    /// The others that serve the same objects; none where there can be none.
    pub company: Option<Arc<dyn Company>>,
    /// Who else is asked before a resource is written.
    pub webhooks: Arc<dyn Webhooks>,
    /// Routes that live elsewhere.
    pub annexes: Vec<Arc<dyn Annex>>,
    /// What else every door asks before it writes.
    pub admissions: Vec<Admissions>,
}

/// Routes of this door that live elsewhere.
#[async_trait]
pub trait Annex: Send + Sync + 'static {
    /// What its paths stand behind.
    fn base(&self) -> &'static str {
        API
    }

    /// Whether it answers this method and path (the segments behind [`Annex::base`]).
    fn takes(&self, method: &Method, path: &[&str]) -> bool;

    /// Who sent these headers, if they carry something that only this annex knows: it counts for the paths
    /// behind its base and nowhere else. None if they do not.
    fn identify(&self, _headers: &HeaderMap) -> Option<Result<User, Error>> {
        None
    }

    /// Answers.
    async fn answer(&self, call: &Call<'_>) -> Result<Response<Body>, Error>;
}

/// What all doors share.
pub(crate) struct Shared {
    pub(crate) store: Local,
    pub(crate) gate: Gate,
    pub(crate) clock: Arc<dyn Clock>,
    /// One permit for each stream.
    pub(crate) watches: Arc<Semaphore>,
    pub(crate) closing: tokio::sync::watch::Sender<bool>,
    pub(crate) body_bytes_max: usize,
    pub(crate) query_bytes_max: usize,
}

/// The REST door. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Door(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Local,
    pub(crate) gate: Gate,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) writer: Writer,
    pub(crate) ids: Ids,
    pub(crate) index: Arc<Index>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) node: Node,
    pub(crate) company: Option<Arc<dyn Company>>,
    pub(crate) watches: Arc<Semaphore>,
    pub(crate) closing: tokio::sync::watch::Sender<bool>,
    admission: Admissions,
    annexes: Vec<Arc<dyn Annex>>,
    body_bytes_max: usize,
    query_bytes_max: usize,
}

impl Door {
    pub(crate) fn new(parts: Parts, shared: Shared) -> Self {
        let Parts { ids, node, company, webhooks, annexes, admissions } = parts;
        let Shared { store, gate, clock, watches, closing, body_bytes_max, query_bytes_max } = shared;
        let (index, kept) = (Arc::<Index>::default(), Arc::<Kept>::default());
        let known = (index.clone(), kept.clone());
        let own: Admissions =
            Arc::new(Admit::new(store.clone(), clock.clone(), ids.clone(), known, webhooks));
        let admission: Admissions = Arc::new(All([own].into_iter().chain(admissions).collect()));
        let writer = Writer::new(store.clone(), gate.clone()).with_admission(admission.clone());
        Self(Arc::new(Inner {
            store,
            gate,
            clock,
            writer,
            ids,
            index,
            kept,
            node,
            company,
            watches,
            closing,
            admission,
            annexes,
            body_bytes_max,
            query_bytes_max,
        }))
    }

    /// What every door asks before it writes.
    pub(crate) fn admission(&self) -> Admissions {
        self.0.admission.clone()
    }

    /// Whether a request is for this door.
    pub(crate) fn takes(&self, head: &Head) -> bool {
        is_for_us(&head.method, &head.uri, &head.headers)
    }

    /// The answer to a request that comes while the store cannot be asked what is new.
    pub(crate) async fn refuse(&self, head: &Head, error: concert_store::Error) -> Response<Body> {
        match head.uri.path() {
            "/health" | "/api/v1/cluster/health" => cluster::health(&self.0.store).await,
            _ => Error::from(error).response(),
        }
    }

    /// Answers one request. Whatever is wrong with it is said in the answer.
    pub(crate) async fn handle<B>(&self, head: &Head, body: B, caller: &mut Option<User>) -> Response<Body>
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Into<BoxError>,
    {
        self.answer(head, body, caller).await.unwrap_or_else(|error| error.response())
    }

    async fn answer<B>(
        &self,
        head: &Head,
        body: B,
        caller: &mut Option<User>,
    ) -> Result<Response<Body>, Error>
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Into<BoxError>,
    {
        let Some(base) = base(head.uri.path()) else {
            return self.outside(head).await;
        };
        let segments = segments(base, head.uri.path()).ok_or_else(Error::unknown_path)?;
        let path: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
        let is_public = base == API && PUBLIC.contains(&&*path);
        let user = match self.0.identify(base, &head.headers).await {
            Ok(user) => user,
            Err(_) if is_public => User::anonymous(),
            Err(refusal) => return Err(refusal),
        };
        let user = &*caller.insert(user);
        if user.is_anonymous() && !is_public {
            return Err(Error::unauthorized(NO_TOKEN));
        }
        let params = Params::read(head.uri.query(), self.0.query_bytes_max)?;
        let bytes = match head.method {
            Method::GET | Method::HEAD => bytes::Bytes::new(),
            _ => content::collect(body, self.0.body_bytes_max).await?,
        };
        let call = Call { door: &self.0, user, head, path: &path, params: &params, bytes: &bytes };
        let takes = |annex: &&Arc<dyn Annex>| annex.base() == base && annex.takes(&head.method, &path);
        match self.0.annexes.iter().find(takes) {
            Some(annex) => annex.answer(&call).await,
            None if base == API => route(&call).await,
            None => Err(Error::unknown_path()),
        }
    }

    /// What is behind no base.
    async fn outside(&self, head: &Head) -> Result<Response<Body>, Error> {
        if head.method != Method::GET {
            return Err(Error::method_not_allowed("GET"));
        }
        match head.uri.path() {
            "/health" => Ok(cluster::health(&self.0.store).await),
            "/openapi.json" => Ok(answer(StatusCode::OK, openapi::document())),
            "/docs" => Ok(whole(StatusCode::OK, "text/html; charset=utf-8", openapi::PAGE)),
            _ => Err(Error::unknown_path()),
        }
    }
}

impl Inner {
    /// Who calls: whom an annex knows behind its base, or else whom everybody knows.
    pub(super) async fn identify(&self, base: &str, headers: &HeaderMap) -> Result<User, Error> {
        let mut annexes = self.annexes.iter().filter(|annex| annex.base() == base);
        if let Some(known) = annexes.find_map(|annex| annex.identify(headers)) {
            return match known {
                Ok(_) if is_impersonating(headers) => {
                    Err(Error::forbidden("cannot impersonate: the token is for one reconciler"))
                }
                known => known,
            };
        }
        self.gate.authenticate(headers).await.map_err(|refusal| match refusal {
            // In its own words: it is not this route that is refused, but to be somebody else.
            Refusal::Forbidden(why) => Error::forbidden(why),
            other => Error::refused(other, ""),
        })
    }
}

/// What the path of a request for this door stands behind; none for the few that stand alone.
pub(super) fn base(path: &str) -> Option<&'static str> {
    BASES.into_iter().find(|base| path.starts_with(base))
}

/// Whether a request is for this door.
pub(crate) fn is_for_us(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let path = uri.path();
    if matches!(path, "/health" | "/openapi.json" | "/docs") {
        return true;
    }
    let Some(rest) = path.strip_prefix(API) else {
        return base(path).is_some();
    };
    let first = rest.split('/').next().unwrap_or_default();
    SEGMENTS.contains(&first)
        || matches!(rest, "events" | "events/") && events::is_asked_for(method, uri.query(), headers)
}

async fn route(call: &Call<'_>) -> Result<Response<Body>, Error> {
    match (call.method().as_str(), call.path) {
        ("POST", ["resource-types"]) => types::create(call).await,
        ("GET", ["resource-types"]) => types::all(call).await,
        ("GET", ["resource-types", id]) => types::get(call, id).await,
        ("GET", ["resource-types", name, version]) => types::get_by_name(call, name, version).await,
        ("PUT", ["resource-types", id]) => types::update(call, id).await,
        ("DELETE", ["resource-types", id]) => types::delete(call, id).await,
        ("POST", ["resources"]) => resources::create(call).await,
        ("GET", ["resources"]) => resources::list(call).await,
        ("GET", ["resources", "by-name", kind, version, name]) => {
            resources::get_by_name(call, (kind, version), name).await
        }
        ("GET", ["resources", id]) => resources::get(call, id).await,
        ("PUT", ["resources", id]) => resources::update(call, id).await,
        ("DELETE", ["resources", id]) => resources::delete(call, id).await,
        ("PUT", ["resources", id, "finalizers"]) => resources::finalizers(call, id).await,
        ("POST", ["resources", id, "reconcile"]) => resources::reconcile(call, id).await,
        ("GET", ["resources", id, "history"]) => resources::history(call, id).await,
        ("GET", ["resources", id, "outputs"]) => resources::outputs(call, id).await,
        ("GET", ["resources", id, "events"]) => events::of_resource(call, id).await,
        ("GET", ["events"]) => events::of_all(call).await,
        ("GET", ["plugins", "actions"]) => plugins::actions(call).await,
        ("GET", ["plugins", "inputs"]) => plugins::inputs(call).await,
        ("GET", ["plugins", "reconcilers"]) => plugins::reconcilers(call).await,
        ("GET", ["cluster", "health"]) => Ok(cluster::health(call.store()).await),
        ("GET", ["cluster", "nodes"]) => cluster::nodes(call).await,
        (method, path) => Err(match routes::methods(path) {
            Some(allow) if !allow.split(", ").any(|it| it == method) => Error::method_not_allowed(allow),
            _ => Error::unknown_path(),
        }),
    }
}

/// The segments behind `base`, decoded.
fn segments(base: &str, path: &str) -> Option<Vec<String>> {
    let rest = path.strip_prefix(base)?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let decoded: Option<Vec<String>> =
        rest.split('/').map(|segment| path::percent_decode(segment.bytes())).collect();
    decoded.filter(|segments| segments.len() <= DEPTH_MAX)
}
