//! Which request is answered where.

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::inventory::{Entry, names};
use concert_model::{Encoded, Object, ObjectKey};
use concert_store::{By, Clock, Error as StoreError, Local, Store};
use http::{HeaderMap, Method, Response};

use super::admit::Admit;
use super::books::Books;
use super::caller::Caller;
use super::contents::Schemas;
use super::newest::Newest;
use super::tokens::{self, Minter};
use super::write::Turns;
use crate::audit::Audit;
use crate::auth::{Gate, Keys, User};
use crate::kube::Body;
use crate::rest::{Annex, Call, Error};
use crate::write::{Denied, Operation, Refused, Written};

/// What the door is made of.
#[derive(Clone)]
pub struct Parts {
    /// Where the objects are.
    pub store: Local,
    /// Who may do what.
    pub gate: Gate,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// What tokens and the hashes of secrets are made with.
    pub keys: Keys,
    /// Where accesses to secret sections are written down.
    pub audit: Audit,
}

/// The routes of the inventory. Cheap to clone.
#[derive(Clone)]
pub struct Door(Arc<Inner>);

pub(super) struct Inner {
    pub parts: Parts,
    pub books: Books,
    pub schemas: Schemas,
    pub turns: Turns,
    pub newest: Newest,
}

impl Door {
    /// The routes over `parts`.
    pub fn new(parts: Parts) -> Self {
        let books = Books::new(parts.store.clone());
        let (schemas, turns, newest) = (Schemas::default(), Turns::default(), Newest::default());
        Self(Arc::new(Inner { parts, books, schemas, turns, newest }))
    }

    /// Makes tokens for this door; `address` is where it is reached, as in `https://host:port`. What was
    /// written under an earlier claim of an item than the last one that came for a token is refused.
    pub fn minter(&self, address: &str) -> Minter {
        self.0.minter(address)
    }

    /// The rules of this door, for objects that come through another one.
    pub fn admit(&self) -> Admit {
        let Parts { store, clock, keys, .. } = self.0.parts.clone();
        Admit::new(store, clock, keys)
    }

    /// The revision of an entry, by its uid.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn revision(&self, entry: &concert_model::Uid) -> Result<u64, StoreError> {
        Ok(self.0.books.now().await?.revision(entry))
    }
}

#[async_trait]
impl Annex for Door {
    fn base(&self) -> &'static str {
        tokens::BASE
    }

    fn takes(&self, _method: &Method, _path: &[&str]) -> bool {
        true
    }

    fn identify(&self, headers: &HeaderMap) -> Option<Result<User, Error>> {
        let scope = tokens::scope(&self.0.parts.keys, headers, self.0.parts.clock.now())?;
        Some(scope.map(|scope| scope.user()))
    }

    async fn answer(&self, call: &Call<'_>) -> Result<Response<Body>, Error> {
        let it = &self.0;
        let caller = it.caller(call)?;
        match (call.method().as_str(), call.path) {
            ("GET", ["entries"]) => it.list(call, &caller).await,
            ("POST", ["entries"]) => it.create(call, &caller).await,
            ("GET", ["entries", id]) => it.get(call, &caller, id).await,
            ("PATCH", ["entries", id]) => it.patch(call, &caller, id).await,
            ("DELETE", ["entries", id]) => it.delete(call, &caller, id).await,
            ("GET" | "PUT" | "DELETE", ["entries", id, "sections", name]) => {
                it.section(call, &caller, id, name).await
            }
            ("GET", ["entries", id, "sections", name, "history"]) => {
                it.history(call, &caller, id, name).await
            }
            ("GET", ["watch"]) => it.clone().watch(call, caller).await,
            ("POST", ["tokens"]) => it.mint(call, &caller).await,
            ("GET", ["section-types"]) => it.types(call, &caller).await,
            ("GET" | "PUT" | "DELETE", ["section-types", name]) => it.type_(call, &caller, name).await,
            ("GET", ["grants"]) => it.grants(call, &caller).await,
            ("GET" | "PUT" | "DELETE", ["grants", name]) => it.grant(call, &caller, name).await,
            (_, path) => Err(methods(path).map_or_else(Error::unknown_path, Error::method_not_allowed)),
        }
    }
}

/// The methods of a path; none if it is no path of ours.
fn methods(path: &[&str]) -> Option<&'static str> {
    match path {
        ["entries"] => Some("GET, POST"),
        ["entries", _] => Some("GET, PATCH, DELETE"),
        ["entries", _, "sections", _] | ["section-types" | "grants", _] => Some("GET, PUT, DELETE"),
        ["entries", _, "sections", _, "history"] | ["watch" | "section-types" | "grants"] => Some("GET"),
        ["tokens"] => Some("POST"),
        _ => None,
    }
}

impl Inner {
    pub fn minter(&self, address: &str) -> Minter {
        Minter::new(&self.parts, self.newest.clone(), address)
    }

    /// An object; none if there is none.
    pub async fn find(&self, key: &ObjectKey) -> Result<Option<Encoded>, StoreError> {
        find(&self.parts.store, key).await
    }

    /// An entry that the caller may work with.
    pub async fn entry(&self, caller: &Caller<'_>, id: &str) -> Result<Object, Error> {
        let found = self.find(&names::entry_key(id)).await?;
        let object = found.ok_or_else(|| Error::not_found("Entry not found"))?.decode();
        caller.check_incarnation(&Entry(&object).uid())?;
        Ok(object)
    }

    /// How a write by the caller is written down.
    pub fn by(&self, caller: &Caller<'_>, reason: &'static str) -> By {
        By { manager: "inventory".into(), ..By::actor(caller.name()) }.because(reason)
    }
}

/// Writes something for who asks. What an object may not be is 422 at this door.
pub(super) async fn commit(call: &Call<'_>, operation: Operation) -> Result<Written, Error> {
    match call.try_write(operation).await {
        Err(Refused::Denied(Denied::Invalid { detail, .. })) => Err(Error::unprocessable(detail)),
        written => Ok(written?),
    }
}

/// An object; none if there is none.
pub(super) async fn find(store: &Local, key: &ObjectKey) -> Result<Option<Encoded>, StoreError> {
    match store.get(key).await {
        Ok(object) => Ok(Some(object)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
