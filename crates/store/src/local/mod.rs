//! The object semantics, once, over any backend.
//!
//! A write is prepared on the caller's task (read, compute, default, prune, validate), then handed to
//! the [`driver`](self) as one transaction with its preconditions; watchers are fed from what was
//! committed, in order, before the writer is answered.

mod admit;
mod apply;
mod builtin;
mod changes;
mod copy;
mod create;
mod definition;
mod delete;
mod driver;
mod follow;
mod history;
mod hub;
mod kinds;
mod maintain;
#[cfg(feature = "postgres")]
mod migrate;
mod names;
mod ownership;
mod patch;
mod present;
mod read;
mod recent;
mod rules;
mod selectable;
mod settled;
mod update;
mod watch;
mod work;
mod write;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Patch, ResourceVersion, Revision};

use crate::backend::{Backend, Failure, Owner, Payload, Row, Shelf};
use crate::chance::Chance;
use crate::clock::Clock;
use crate::contract::{By, Delete, Deleted, Events, Page, PageRequest, Part, Query, Result, Store};
use crate::error::Error;
use crate::kind::Kind;
use crate::seal::{Keyring, Seal};

pub use apply::Applied;
pub use changes::{Change, Changes};
pub use definition::{CLEANUP_FINALIZER, DEFINITION_GROUP, DEFINITION_KIND};
pub use history::{AttemptRecord, Past};
pub use maintain::{Retention, RotateError};
#[cfg(feature = "postgres")]
pub use migrate::migrate;

/// How a local store runs.
pub struct Config {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where uids, nonces and made-up names come from.
    pub chance: Chance,
    /// What payloads are sealed with; none leaves them in clear.
    pub keyring: Option<Keyring>,
    /// Who calls the backend.
    pub threading: Threading,
    /// How often a quiet watch says how far it is.
    pub bookmark_every: Duration,
}

/// Who calls the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threading {
    /// A thread that commits whatever has queued up, and Tokio's blocking threads for long reads.
    Writer,
    /// The caller, at once: for simulation, where there is only one thread.
    Inline,
}

impl Config {
    /// The usual way to run.
    pub fn new(clock: Arc<dyn Clock>, chance: Chance) -> Self {
        let bookmark_every = Duration::from_secs(60);
        Self { clock, chance, keyring: None, threading: Threading::Writer, bookmark_every }
    }

    /// The same, sealing with `keyring`.
    pub fn sealed(mut self, keyring: Keyring) -> Self {
        self.keyring = Some(keyring);
        self
    }

    /// The same, on the caller's thread.
    pub fn inline(mut self) -> Self {
        self.threading = Threading::Inline;
        self
    }
}

/// A store over a backend of this process. Cheap to clone; the last clone closes it.
#[derive(Clone)]
pub struct Local(Arc<Inner>);

struct Inner {
    // Declared first: dropped first, so that the threads are joined while the rest still stands.
    driver: driver::Driver,
    _follower: Option<follow::Follower>,
    backend: Arc<dyn Backend>,
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    chance: Chance,
    bookmark_every: Duration,
    samples: maintain::Samples,
    refreshes: follow::Refreshes,
    rotation: tokio::sync::Mutex<()>,
    /// Held while a definition is written: which names it gets depends on all others.
    defining: tokio::sync::Mutex<()>,
}

/// What the writer thread keeps up to date for everybody.
struct Shared {
    hub: hub::Hub,
    /// Held while something is published.
    publishing: std::sync::Mutex<()>,
    cut_off: follow::CutOff,
    recent: recent::Recent,
    kinds: kinds::Kinds,
    seal: Seal,
}

impl Local {
    /// Opens the store in `backend`, which nobody else in this process may use from now on.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the backend cannot be read, holds payloads that the keyring cannot
    /// open, or definitions that make no sense.
    pub fn open(backend: Arc<dyn Backend>, config: Config) -> Result<Self> {
        let Config { clock, chance, keyring, threading, bookmark_every } = config;
        let shared = Arc::new(Shared {
            hub: hub::Hub::new(backend.bounds()?.newest),
            publishing: std::sync::Mutex::new(()),
            cut_off: follow::CutOff::default(),
            recent: recent::Recent::default(),
            kinds: kinds::Kinds::built_in(),
            seal: Seal::new(keyring, chance.clone()),
        });
        shared.prepare(&*backend)?;
        let driver = driver::Driver::start(threading, backend.clone(), shared.clone());
        let store = Self(Arc::new(Inner {
            driver,
            _follower: follow::Follower::start(&backend, &shared, &clock),
            backend,
            shared,
            clock,
            chance,
            bookmark_every,
            samples: maintain::Samples::default(),
            refreshes: follow::Refreshes::default(),
            rotation: tokio::sync::Mutex::new(()),
            defining: tokio::sync::Mutex::new(()),
        }));
        store.make_default_namespace()?;
        Ok(store)
    }

    fn inner(&self) -> &Inner {
        &self.0
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.hub.close();
    }
}

impl Inner {
    /// Opens a row that the backend gave out.
    fn unseal(&self, row: Row) -> Result<Encoded> {
        self.shared.unseal(row).map_err(Error::from)
    }

    /// A read that may take long, on a thread that may wait.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Backend) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        if self.driver.is_inline() {
            return Ok(work(&*self.backend)?);
        }
        let backend = self.backend.clone();
        let task = tokio::task::spawn_blocking(move || work(&*backend));
        Ok(task.await.map_err(|e| Error::Unavailable(e.into()))??)
    }

    /// A read of one row.
    async fn read_one<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Backend) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        if self.backend.is_local() {
            return Ok(work(&*self.backend)?);
        }
        self.read(work).await
    }
}

impl Shared {
    /// Opens one payload, since with the wrong keys nothing can be read and it is better to hear of it now,
    /// and gets to know all kinds.
    fn prepare(&self, backend: &dyn Backend) -> Result<()> {
        for Payload { owner, bytes, .. } in backend.payloads(Shelf::Objects, 0, 1)? {
            self.seal.open(&owner, &bytes)?;
        }
        Ok(self.load_kinds(backend)?)
    }

    fn unseal(&self, row: Row) -> Result<Encoded, Failure> {
        let Row { key, revision, head, payload } = row;
        let damaged = |why: String| Failure::broken(format!("the stored head of {key} is damaged: {why}"));
        let head = serde_json::from_slice(&head).map_err(|e| damaged(e.to_string()))?;
        let payload = self.seal.open(&Owner::Object(key.clone()), &payload)?;
        let body = concert_model::Body::from_payload(key, head, payload);
        let body = body.map_err(|e| Failure::Broken(e.into()))?;
        Ok(Encoded::new(Arc::new(body), revision.into()))
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Compacted => Error::Expired,
            Failure::Full => Error::Full,
            // What is wrong is what the backend says; that it was the backend says nothing.
            Failure::Broken(source) => Error::Unavailable(source),
        }
    }
}

/// The revision a resource version of ours stands for.
fn revision_of(version: &ResourceVersion) -> Option<Revision> {
    // Only what we print ourselves: no sign, no leading zeros, no spaces.
    let number = version.0.parse::<u64>().ok().filter(|n| n.to_string() == *version.0)?;
    Some(Revision(number))
}

#[async_trait]
impl Store for Local {
    async fn get(&self, key: &ObjectKey) -> Result<Encoded> {
        self.0.find_kind(&key.kind).await?;
        self.0.fetch(key).await?.ok_or_else(|| Error::NotFound { key: key.clone() })
    }

    async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page> {
        self.0.list(query, page, None).await
    }

    async fn watch(&self, query: &Query, from: Option<&ResourceVersion>) -> Result<Events> {
        watch::start(&self.0, query, from).await
    }

    async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        self.0.create(object, by).await
    }

    async fn update(&self, object: Object, by: &By) -> Result<Encoded> {
        self.0.update(object, Part::Main, by).await
    }

    async fn update_status(&self, object: Object, by: &By) -> Result<Encoded> {
        self.0.update(object, Part::Status, by).await
    }

    async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        self.0.patch(key, None, part, &|before| patch.apply(before), by).await
    }

    async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        self.0.delete(key, options, by).await
    }

    async fn kind(&self, kind: &GroupKind) -> Result<Arc<Kind>> {
        Ok(self.0.find_kind(kind).await?.kind.clone())
    }
}
