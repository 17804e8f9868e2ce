//! All that reconciles, as one thing that begins and ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concert_controllers::gc;
use concert_controllers::managed::registry::Parts;
use concert_engine::leader::Duty as _;
use concert_store::Local;

use super::error::Error;
use crate::managed::Reconciling;

/// How long what runs may take to end when asked to.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Managed resources and garbage.
pub(super) struct Hands {
    store: Local,
    parts: Parts,
    pub duty: Arc<Reconciling>,
    collector: Mutex<Option<gc::Running>>,
}

impl Hands {
    pub fn new(store: &Local, parts: &Parts, duty: Arc<Reconciling>) -> Self {
        Self { store: store.clone(), parts: parts.clone(), duty, collector: Mutex::default() }
    }

    /// Starts to work on what the store holds.
    ///
    /// # Assumptions
    /// It is not at work.
    pub fn begin(&self) -> Result<(), Error> {
        self.duty.begin(None);
        let kinds = self.store.clone();
        let started = gc::start(gc::Parts {
            engine: self.parts.engine.clone(),
            store: self.parts.store.clone(),
            clock: self.parts.clock.clone(),
            chance: self.parts.chance.fork(),
            tasks: self.parts.tasks.clone(),
            kinds: Arc::new(move || kinds.kinds()),
            settings: gc::Settings::default(),
            fence: None,
        });
        *self.collector.lock().unwrap_or_else(PoisonError::into_inner) = Some(started.map_err(Error::store)?);
        Ok(())
    }

    /// Lets what is under way end, and starts nothing more.
    pub async fn end(&self) {
        let collector = self.collector.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(collector) = collector {
            collector.stop(PATIENCE).await;
        }
        self.duty.end(false).await;
    }
}
