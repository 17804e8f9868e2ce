//! The usual duty of a leader: to run controllers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use tracing::warn;

use crate::controller::Controller;
use crate::engine::Engine;
use crate::members::Authority;

use super::Duty;

/// Controllers that run while their process leads.
pub struct Controllers {
    engine: Engine,
    patience: Duration,
    build: Build,
    started: Mutex<Vec<Arc<str>>>,
}

type Build = Box<dyn Fn(Authority) -> Vec<Controller> + Send + Sync>;

impl Controllers {
    /// The controllers that `build` makes for an authority. A leader that is asked to stop gives them
    /// `patience` to end; one that has lost gives them none.
    pub fn new(
        engine: Engine,
        patience: Duration,
        build: impl Fn(Authority) -> Vec<Controller> + Send + Sync + 'static,
    ) -> Self {
        Self { engine, patience, build: Box::new(build), started: Mutex::default() }
    }

    fn started(&self) -> std::sync::MutexGuard<'_, Vec<Arc<str>>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Duty for Controllers {
    fn begin(&self, under: Authority) {
        for controller in (self.build)(under) {
            match self.engine.start(controller) {
                Ok(handle) => self.started().push(handle.name().clone()),
                Err(error) => warn!(%error, "cannot start a controller"),
            }
        }
    }

    async fn end(&self, is_lost: bool) {
        // Taken off the list only afterwards: a lead that is lost while it ends is ended again, at once.
        let names = self.started().clone();
        let patience = if is_lost { Duration::ZERO } else { self.patience };
        join_all(names.iter().map(|name| self.engine.stop(name, patience))).await;
        self.started().clear();
    }
}
