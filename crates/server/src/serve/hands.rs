//! All that reconciles, as one thing that begins and ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concert_controllers::managed::registry::Parts;
use concert_controllers::{gc, plugins};
use concert_engine::leader::Duty as _;
use concert_store::Local;

use super::error::Error;
use super::workers::Workers;
use crate::managed::Reconciling;

/// How long what runs may take to end when asked to.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Managed resources, what is lent to remote workers, and garbage.
pub(super) struct Hands {
    store: Local,
    parts: Parts,
    pub duty: Arc<Reconciling>,
    lending: plugins::Parts,
    at_work: Mutex<Option<AtWork>>,
}

struct AtWork {
    collector: gc::Running,
    lender: plugins::Running,
}

impl Hands {
    pub fn new(store: &Local, parts: &Parts, duty: Arc<Reconciling>, workers: &Workers) -> Self {
        let lending = workers.controllers.clone();
        Self { store: store.clone(), parts: parts.clone(), duty, lending, at_work: Mutex::default() }
    }

    /// Starts to work on what the store holds.
    ///
    /// # Assumptions
    /// It is not at work.
    pub fn begin(&self) -> Result<(), Error> {
        self.duty.begin(None);
        let kinds = self.store.clone();
        let collector = gc::start(gc::Parts {
            engine: self.parts.engine.clone(),
            store: self.parts.store.clone(),
            clock: self.parts.clock.clone(),
            chance: self.parts.chance.fork(),
            tasks: self.parts.tasks.clone(),
            kinds: Arc::new(move || kinds.kinds()),
            settings: gc::Settings::default(),
            fence: None,
        });
        let collector = collector.map_err(Error::store)?;
        let lender = plugins::start(self.lending.clone()).map_err(Error::store)?;
        *self.at_work.lock().unwrap_or_else(PoisonError::into_inner) = Some(AtWork { collector, lender });
        Ok(())
    }

    /// Lets what is under way end, and starts nothing more.
    pub async fn end(&self) {
        let at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(AtWork { collector, lender }) = at_work {
            lender.stop().await;
            collector.stop(PATIENCE).await;
        }
        self.duty.end(false).await;
    }
}
