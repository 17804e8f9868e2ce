//! The mothership, as one thing that begins, ends, and can be asked.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_api::audit::Audit;
use concert_api::inventory::{Minting, Wanted};
use concert_api::mothership::{Asked, Control, Event};
use concert_controllers::managed::registry;
use concert_controllers::mothership::{self, Denied, Parts, RELIST, Running, start};
use concert_engine::workers::Board;
use concert_model::inventory::{Lease, names};
use concert_store::{Error as StoreError, Fence, Local};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry as Numbers;
use serde_json::Value;
use tracing::warn;

use super::error::Error;
use super::inventory::Inventory;
use super::targets::Kubeconfigs;
use crate::explain::{Component, Definition, Dependency, Facts, Service, explain};

/// How long a token lasts that nobody uses.
const TOKEN: Duration = Duration::from_secs(1);

/// What schedules the fleet. Cheap to clone.
#[derive(Clone)]
pub(super) struct Mothership(Arc<Inner>);

struct Inner {
    parts: Parts,
    /// Who is told of claims, and so refuses what comes late.
    minting: Arc<dyn Minting>,
    running: Mutex<Option<Running>>,
}

impl Mothership {
    /// Over a store of its own and the inventory, which may be the same.
    pub fn new(
        parts: &registry::Parts,
        store: &Local,
        inventory: &Inventory,
        board: &Board,
        audit: &Audit,
    ) -> Self {
        let minting = inventory.minting.clone();
        let inventory = &inventory.store;
        let parts = Parts {
            engine: parts.engine.clone(),
            fleet: parts.engine.over(inventory.clone()),
            store: parts.store.clone(),
            inventory: inventory.clone(),
            work: Arc::new(store.clone()),
            board: board.clone(),
            clock: parts.clock.clone(),
            chance: parts.chance.fork(),
            tasks: parts.tasks.clone(),
            fence: None,
            reach: Some(Arc::new(Kubeconfigs {
                inventory: inventory.clone(),
                clock: parts.clock.clone(),
                tasks: parts.tasks.clone(),
                audit: audit.clone(),
            })),
            relist: RELIST,
        };
        Self(Arc::new(Inner { parts, minting, running: Mutex::default() }))
    }

    /// Starts to schedule, under the claim of this process if it has one.
    pub fn begin(&self, fence: Option<Fence>) -> Result<(), Error> {
        let running = start(Parts { fence, ..self.0.parts.clone() }).map_err(Error::store)?;
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        Ok(())
    }

    /// Lets what is under way end, at once if it is lost, and starts nothing more.
    pub async fn end(&self, is_lost: bool) {
        // Taken away only afterwards: whoever is interrupted here ends it again.
        if let Some(running) = self.running() {
            running.stop(is_lost).await;
        }
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Adds its metrics to those of the process.
    pub fn register(&self, numbers: &mut Numbers) {
        numbers.register_collector(Box::new(self.clone()));
    }

    /// Who works on an entry, for an explanation.
    pub async fn components(&self, entry: &str) -> Result<Vec<Component>, StoreError> {
        let Some(running) = self.running() else { return Ok(Vec::new()) };
        let writers = running.writers().await?;
        let found = running.entry(entry).await?;
        let items = found.map(|it| it.items).unwrap_or_default();
        Ok(items.into_iter().map(|it| component(it, &writers)).collect())
    }

    /// Has the inventory refuse what is written under a claim before `lease`.
    async fn shut_out(&self, entry: &str, reconciler: &str, lease: Lease) -> Result<(), StoreError> {
        let (entry, reconciler) = (entry.to_owned(), reconciler.to_owned());
        // Nobody gets the token: that one is asked for is what counts.
        let wanted = [Wanted { entry, reconciler, lease: Some(lease) }];
        match self.0.minting.mint(&wanted, TOKEN).await {
            Ok(_) => Ok(()),
            Err(error) => {
                warn!(%error, "an item is stopped, and its host may write until its token ends");
                Err(StoreError::unavailable(error.to_string()))
            }
        }
    }

    fn running(&self) -> Option<Running> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn component(it: mothership::Item, writers: &mothership::Writers) -> Component {
    let seconds = Duration::from_secs_f64;
    let dependency = |wait: &Value| {
        let what = mothership::words_for(wait);
        let writer = wait["section"].as_str().filter(|_| wait["entry"].is_null());
        Dependency { what, writer: writer.and_then(|it| writers.get(it).cloned()) }
    };
    Component {
        name: it.reconciler.to_string(),
        state: it.state.to_owned(),
        message: it.message,
        attempt: it.attempt,
        waits_for: it.waits_for.iter().map(dependency).collect(),
        running: it.host.map(|it| it.to_string()).zip(it.running_seconds.map(seconds)),
        next_run: it.next_run_seconds.map(seconds),
        is_waiting: it.is_waiting,
        is_registered: it.is_registered,
    }
}

/// What became of it, unless the store did not take it.
fn asked(done: Result<(), Denied>) -> Result<Asked, StoreError> {
    match done {
        Ok(()) => Ok(Asked::Done),
        Err(Denied::Unknown { .. }) => Ok(Asked::Unknown),
        Err(Denied::NotYet) => Ok(Asked::NotYet),
        Err(Denied::Store(error)) => Err(error),
    }
}

#[async_trait]
impl Control for Mothership {
    fn overview(&self) -> Value {
        let overview = self.running().map(|it| it.overview());
        serde_json::to_value(overview).unwrap_or_default()
    }

    async fn entry(&self, entry: &str) -> Result<Option<Value>, StoreError> {
        let Some(running) = self.running() else { return Ok(None) };
        Ok(running.entry(entry).await?.map(|it| serde_json::to_value(it).unwrap_or_default()))
    }

    async fn explain(&self, entry: &str) -> Result<Option<Value>, StoreError> {
        let parts = &self.0.parts;
        let object = match parts.inventory.get(&names::entry_key(entry)).await {
            Ok(object) => object.decode(),
            Err(StoreError::NotFound { .. } | StoreError::UnknownKind { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut facts = Facts::new(object, parts.clock.now());
        facts.elapsed = parts.clock.elapsed();
        facts.definition = Definition::Served;
        facts.service = Service::NotNeeded;
        facts.components = self.components(entry).await?;
        Ok(Some(serde_json::to_value(explain(&facts)).unwrap_or_default()))
    }

    async fn run(&self, entry: &str, reconciler: &str, actor: &str) -> Result<Asked, StoreError> {
        let Some(running) = self.running() else { return Ok(Asked::NotYet) };
        asked(running.run(entry, reconciler, actor).await)
    }

    async fn stop(&self, entry: &str, reconciler: &str, actor: &str) -> Result<Asked, StoreError> {
        let Some(running) = self.running() else { return Ok(Asked::NotYet) };
        match running.halt(entry, reconciler, actor).await {
            Ok(Some(lease)) => self.shut_out(entry, reconciler, lease).await.map(|()| Asked::Done),
            done => asked(done.map(drop)),
        }
    }

    fn events(&self, events: &[Event]) -> Option<usize> {
        let event = |it: &Event| mothership::Event {
            entry: it.entry.clone(),
            group: it.group.clone(),
            kind: it.kind.clone(),
            namespace: it.namespace.clone(),
        };
        let events: Vec<mothership::Event> = events.iter().map(event).collect();
        self.running()?.events(&events)
    }
}

impl Collector for Mothership {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.running().map_or(Ok(()), |it| it.encode(encoder))
    }
}

impl fmt::Debug for Mothership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mothership")
    }
}
