//! Controllers: a reconciler, its sources, and the queue and workers between them.

mod core;
mod handle;
mod note;
mod park;
mod parking;
mod restore;
mod running;
mod saving;
mod shared;
mod sharing;
mod sight;
mod sources;
mod state;
mod timekeeper;
mod waits;
mod worker;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_store::{Error, Work};

use crate::backoff::Backoff;
use crate::breaker::{self, Breakers};
use crate::budget::Budgets;
use crate::members::Authority;
use crate::reconciler::Reconciler;
use crate::source::{Objects, Source};
use crate::workers::Demand;

pub use handle::{EnqueueError, Handle, Summary};
pub use restore::stored;
pub(crate) use running::{Running, Surroundings};
pub use state::{ItemState, Phase};

/// A controller that can be started.
#[derive(Clone)]
pub struct Controller {
    pub(crate) name: Arc<str>,
    reconciler: Arc<dyn Reconciler>,
    concurrency: usize,
    parallelism: usize,
    capacity: usize,
    timeout: Duration,
    poll: Option<Duration>,
    relist: Option<Duration>,
    backoff: Backoff,
    budgets: Budgets,
    breakers: Breakers,
    objects: Option<Objects>,
    sources: Vec<Source>,
    durability: Durability,
    authority: Authority,
    versions: Option<Arc<dyn Versions>>,
    demand: Option<Demand>,
}

/// What is kept of items over a restart.
#[derive(Clone, Default)]
pub enum Durability {
    /// Nothing: a restart lists and goes on.
    #[default]
    Volatile,
    /// Outcomes that are not done: attempts, due times, waits and errors.
    Outcomes(Arc<dyn Work>),
}

/// The versions of what items wait for by label.
#[async_trait]
pub trait Versions: Send + Sync + 'static {
    /// The version that `label` has now; none if there is nothing.
    ///
    /// # Assumptions
    /// A later version is told to [`Handle::signal`] of every controller whose items wait for it.
    ///
    /// # Errors
    /// Any: it is asked again.
    async fn version(&self, label: &str) -> Result<Option<Arc<str>>, Error>;
}

impl Controller {
    /// A controller called `name`, with defaults for everything else.
    pub fn builder(name: impl Into<Arc<str>>, reconciler: Arc<dyn Reconciler>) -> Builder {
        Builder(Self {
            name: name.into(),
            reconciler,
            concurrency: 16,
            parallelism: 2,
            // A million objects and some: beyond that a process needs more thought than a default.
            capacity: 2_000_000,
            timeout: Duration::from_secs(600),
            poll: None,
            // What informers do by default: a guard against a watch that broke its promise.
            relist: Some(Duration::from_secs(10 * 60 * 60)),
            backoff: Backoff::default(),
            budgets: Budgets::new(),
            breakers: Breakers::new(breaker::Config::default()),
            objects: None,
            sources: Vec::new(),
            durability: Durability::Volatile,
            authority: Authority::Alone,
            versions: None,
            demand: None,
        })
    }
}

/// Puts a [`Controller`] together.
#[must_use]
pub struct Builder(Controller);

impl Builder {
    /// Most runs at a time. At least one.
    pub fn concurrency(mut self, runs: usize) -> Self {
        self.0.concurrency = runs.max(1);
        self
    }

    /// Tasks that share these runs, and so most threads that work at a time. At least one.
    pub fn parallelism(mut self, tasks: usize) -> Self {
        self.0.parallelism = tasks.max(1);
        self
    }

    /// Most items that are known. A full queue refuses new keys, never known ones.
    pub fn capacity(mut self, items: usize) -> Self {
        self.0.capacity = items;
        self
    }

    /// How long a run may take before it is dropped.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.0.timeout = timeout;
        self
    }

    /// How often an item is looked at when nothing changes.
    pub fn poll(mut self, interval: Duration) -> Self {
        self.0.poll = Some(interval);
        self
    }

    /// How often sources list again although their watches go on: whatever a watch may have missed is
    /// found then.
    pub fn relist(mut self, interval: Option<Duration>) -> Self {
        self.0.relist = interval;
        self
    }

    /// How long items wait that failed.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.0.backoff = backoff;
        self
    }

    /// Budgets for the labels that the reconciler names.
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.0.budgets = budgets;
        self
    }

    /// Breakers for the targets that the reconciler names.
    pub fn breakers(mut self, breakers: Breakers) -> Self {
        self.0.breakers = breakers;
        self
    }

    /// The objects that are reconciled. Without them every key that is asked for is an item for good.
    pub fn objects(mut self, objects: Objects) -> Self {
        self.0.objects = Some(objects);
        self
    }

    /// One more source of keys.
    pub fn source(mut self, source: Source) -> Self {
        self.0.sources.push(source);
        self
    }

    /// What is kept over a restart.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.0.durability = durability;
        self
    }

    /// On which keys it works, and the claim that runs carry.
    pub fn authority(mut self, authority: Authority) -> Self {
        self.0.authority = authority;
        self
    }

    /// Where the versions of labels are found that items wait for.
    pub fn versions(mut self, versions: Arc<dyn Versions>) -> Self {
        self.0.versions = Some(versions);
        self
    }

    /// Starts runs only while somebody waits for them. What is due stays in the queue until then.
    pub fn demand(mut self, demand: Demand) -> Self {
        self.0.demand = Some(demand);
        self
    }

    /// The controller, to be started by an engine.
    pub fn build(self) -> Controller {
        self.0
    }
}
