//! The store on a real Kubernetes API server.
//!
//! Objects, versions, schemas and finalizers are the server's; this is the contract in its terms.
//! Requests and answers are bytes. Where somebody watches a whole kind, all who do share one watch of
//! the server, and reads of that kind are answered from what it told (`cache`).
//!
//! What Kubernetes does not have is not here: [`By::fence`] is not looked at, since the server knows of
//! no claims. Who writes under a claim names the resource version that it decided on, as every update
//! does.

mod cache;
mod careful;
mod codec;
mod connect;
mod delete;
mod kinds;
mod prose;
mod read;
mod requests;
mod selectors;
mod server;
mod status;
mod transport;
mod watch;
mod write;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Patch, ResourceVersion};
use futures_util::future::BoxFuture;
use tokio::sync::watch as signal;

pub use careful::careful;
pub use connect::Connect;
pub use requests::{Requests, Verb};
use server::Server;

use crate::clock::Clock;
use crate::contract::{By, Delete, Deleted, Events, Page, PageRequest, Part, Query, Result, Store};
use crate::kind::Kind;

/// Starts a task under a name. A task that was handed in is polled whenever it was woken, until it
/// completes.
pub type Spawn = Arc<dyn Fn(&str, BoxFuture<'static, ()>) + Send + Sync>;

/// How a store on Kubernetes runs.
#[derive(Clone)]
pub struct Config {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// What runs the shared watches.
    pub spawn: Spawn,
    /// Longest that a request may take; watches go on as long as they like.
    pub timeout: Duration,
    /// How long the watch of a kind goes on when nobody wants it any more.
    pub linger: Duration,
}

impl Config {
    /// The usual way to run.
    pub fn new(clock: Arc<dyn Clock>, spawn: Spawn) -> Self {
        Self { clock, spawn, timeout: Duration::from_secs(30), linger: Duration::from_secs(60) }
    }
}

/// A store on a Kubernetes API server. Cheap to clone; the last clone ends its watches.
#[derive(Clone)]
pub struct Kubernetes(Arc<Inner>);

struct Inner {
    server: Arc<Server>,
    /// Dropped with the last clone, which is how the shared watches hear of it.
    _open: signal::Sender<()>,
}

impl Kubernetes {
    /// A store on the cluster that `connect` finds. Nothing is asked of it yet.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when there is no usable configuration.
    pub async fn connect(connect: &Connect, config: Config) -> Result<Self> {
        Ok(Self::new(connect.client().await?, config))
    }

    /// A store that talks through `client`, which should not retry of its own accord.
    pub fn new(client: kube::Client, config: Config) -> Self {
        let (open, closed) = signal::channel(());
        Self(Arc::new(Inner { server: Arc::new(Server::new(client, config, closed)), _open: open }))
    }

    /// What was asked of the server so far.
    pub fn requests(&self) -> &Requests {
        &self.0.server.transport.requests
    }
}

#[async_trait]
impl Store for Kubernetes {
    async fn get(&self, key: &ObjectKey) -> Result<Encoded> {
        self.0.server.get(key).await
    }

    async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page> {
        self.0.server.list(query, page).await
    }

    async fn watch(&self, query: &Query, from: Option<&ResourceVersion>) -> Result<Events> {
        watch::start(&self.0.server, query, from).await
    }

    async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        self.0.server.create(object, by).await
    }

    async fn update(&self, object: Object, by: &By) -> Result<Encoded> {
        self.0.server.update(object, Part::Main, by).await
    }

    async fn update_status(&self, object: Object, by: &By) -> Result<Encoded> {
        self.0.server.update(object, Part::Status, by).await
    }

    async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        self.0.server.patch(key, part, patch, by).await
    }

    async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        self.0.server.delete(key, options, by).await
    }

    async fn kind(&self, kind: &GroupKind) -> Result<Arc<Kind>> {
        let server = &self.0.server;
        Ok(server.kinds.find(&server.transport, kind).await?.kind.clone())
    }
}
