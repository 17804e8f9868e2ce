//! Which request is answered where.

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::inventory::names;
use concert_store::Error as StoreError;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::events;
use crate::auth::{Access, Gate};
use crate::kube::Body;
use crate::rest::call::answer;
use crate::rest::error::NOT_PERMITTED;
use crate::rest::{Annex, Call, Error};

/// What the paths stand behind.
const BASE: &str = "/mothership/v1/";
/// What answers who asks too soon after a start.
pub(super) const NOT_YET: &str = "the mothership does not know yet who works on entries";

/// Something that happened in a target cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The entry of the cluster.
    pub entry: String,
    /// The group of the object.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty if it has none.
    pub namespace: String,
}

/// What became of what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is done.
    Done,
    /// There is no such item.
    Unknown,
    /// It is not known yet what there is.
    NotYet,
}

/// What schedules the fleet.
///
/// # Guarantees
/// Nothing here waits for a reconciler.
#[async_trait]
pub trait Control: Send + Sync + 'static {
    /// The fleet at a glance.
    fn overview(&self) -> Value;

    /// One entry and all that work on it; none if there is no such entry.
    ///
    /// # Errors
    /// Of the inventory.
    async fn entry(&self, entry: &str) -> Result<Option<Value>, StoreError>;

    /// Why an entry is not ready, and the chain below it; none if there is no such entry.
    ///
    /// # Errors
    /// Of the inventory.
    async fn explain(&self, entry: &str) -> Result<Option<Value>, StoreError>;

    /// Has an item run now.
    ///
    /// # Errors
    /// Of the store.
    async fn run(&self, entry: &str, reconciler: &str, actor: &str) -> Result<Asked, StoreError>;

    /// Stops an item until it is asked for again.
    ///
    /// # Errors
    /// Of the store.
    async fn stop(&self, entry: &str, reconciler: &str, actor: &str) -> Result<Asked, StoreError>;

    /// Wakes who cares for what happened. Says how many items that woke; none if it is not known yet who
    /// cares, and so nobody was woken for good.
    fn events(&self, events: &[Event]) -> Option<usize>;
}

/// What the door is made of.
#[derive(Clone)]
pub struct Parts {
    /// Who may do what.
    pub gate: Gate,
    /// What schedules the fleet.
    pub control: Arc<dyn Control>,
}

/// The routes of the mothership. Cheap to clone.
#[derive(Clone)]
pub struct Door(pub(super) Parts);

impl Door {
    /// The routes over `parts`.
    pub fn new(parts: Parts) -> Self {
        Self(parts)
    }

    pub(super) async fn permit(
        &self,
        call: &Call<'_>,
        verb: &str,
        resource: &str,
        name: &str,
    ) -> Result<(), Error> {
        let group = names::MOTHERSHIP;
        let access = Access::Resource { verb, group, resource, subresource: "", namespace: "", name };
        let answer = self.0.gate.authorise(call.user, &access).await;
        answer.map_err(|refusal| Error::refused(refusal, NOT_PERMITTED))
    }

    async fn entry(&self, call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
        self.permit(call, "list", "items", "").await?;
        let found = self.0.control.entry(id).await?;
        found.map(|it| answer(StatusCode::OK, &it)).ok_or_else(|| Error::not_found("Entry not found"))
    }

    async fn explain(&self, call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
        self.permit(call, "list", "items", "").await?;
        let found = self.0.control.explain(id).await?;
        found.map(|it| answer(StatusCode::OK, &it)).ok_or_else(|| Error::not_found("Entry not found"))
    }

    async fn act(
        &self,
        call: &Call<'_>,
        entry: &str,
        reconciler: &str,
        is_run: bool,
    ) -> Result<Response<Body>, Error> {
        self.permit(call, "update", "items", &names::item_object(entry, reconciler)).await?;
        let control = &self.0.control;
        let asked = match is_run {
            true => control.run(entry, reconciler, &call.user.name).await?,
            false => control.stop(entry, reconciler, &call.user.name).await?,
        };
        match asked {
            Asked::Done => {
                Ok(answer(StatusCode::ACCEPTED, &json!({"item": format!("{entry}/{reconciler}")})))
            }
            Asked::Unknown => {
                Err(Error::not_found(format!("No reconciler '{reconciler}' works on entry '{entry}'")))
            }
            Asked::NotYet => Err(Error::unavailable(NOT_YET)),
        }
    }
}

#[async_trait]
impl Annex for Door {
    fn base(&self) -> &'static str {
        BASE
    }

    fn takes(&self, _method: &Method, _path: &[&str]) -> bool {
        true
    }

    async fn answer(&self, call: &Call<'_>) -> Result<Response<Body>, Error> {
        match (call.method().as_str(), call.path) {
            ("GET", ["fleet"]) => {
                self.permit(call, "list", "items", "").await?;
                Ok(answer(StatusCode::OK, &self.0.control.overview()))
            }
            ("GET", ["entries", id]) => self.entry(call, id).await,
            ("GET", ["entries", id, "explain"]) => self.explain(call, id).await,
            ("POST", ["entries", id, reconciler, "run"]) => self.act(call, id, reconciler, true).await,
            ("POST", ["entries", id, reconciler, "stop"]) => self.act(call, id, reconciler, false).await,
            ("POST", ["events"]) => events::take(self, call).await,
            (_, ["fleet"] | ["entries", _] | ["entries", _, "explain"]) => {
                Err(Error::method_not_allowed("GET"))
            }
            (_, ["entries", _, _, "run" | "stop"] | ["events"]) => Err(Error::method_not_allowed("POST")),
            _ => Err(Error::unknown_path()),
        }
    }
}
