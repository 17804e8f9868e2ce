//! Starts and stops all collectors.

use std::sync::Arc;
use std::time::Duration;

use concert_engine::{Engine, Handle, Lane, OnExit, StartError, Tasks};
use concert_store::{Chance, Clock, Fence, Store};
use tracing::debug;

use super::owners::Owners;
use super::{Kinds, definitions, events, names, namespaces};

/// What the collectors need.
#[derive(Clone)]
pub struct Parts {
    /// Runs controllers.
    pub engine: Engine,
    /// Where objects live.
    pub store: Arc<dyn Store>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes jitter.
    pub chance: Chance,
    /// Owns the watches.
    pub tasks: Tasks,
    /// Tells which kinds there are; asked again whenever a definition changes.
    pub kinds: Kinds,
    /// What people have set.
    pub settings: Settings,
    /// The claim of this process, if it leads.
    pub fence: Option<Fence>,
}

/// What people may set.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long an event stays after it was last seen.
    pub event_lifetime: Duration,
    /// How often events are looked at: so much longer they may stay.
    pub event_interval: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            // Kubernetes' habit.
            event_lifetime: Duration::from_secs(60 * 60),
            event_interval: Duration::from_secs(5 * 60),
        }
    }
}

/// The collectors of a process.
#[derive(Debug)]
pub struct Running {
    engine: Engine,
    owners: Arc<Owners>,
    /// Those beside the owners.
    handles: Vec<Handle>,
}

/// Starts all collectors.
///
/// # Errors
/// [`StartError::Taken`] if they run already; what had started is stopped then.
pub fn start(parts: Parts) -> Result<Running, StartError> {
    let owners = Owners::start(&parts)?;
    let controllers = [
        namespaces::controller(&parts),
        definitions::controller(&parts, owners.clone()),
        names::controller(&parts),
        events::controller(&parts),
    ];
    let mut running = Running { engine: parts.engine, owners, handles: Vec::new() };
    for controller in controllers {
        match running.engine.start(controller) {
            Ok(handle) => running.handles.push(handle),
            Err(error) => {
                // Their names are free afterwards: whoever tries again needs them.
                let stop = async move { running.stop(Duration::ZERO).await };
                parts.tasks.spawn("collectors/stop", OnExit::Log, stop);
                return Err(error);
            }
        }
    }
    if let Some(events) = running.handles.last()
        && let Err(error) = events.enqueue(&events::item(), Lane::Poll, "start")
    {
        debug!(%error, "cannot look at events");
    }
    Ok(running)
}

impl Running {
    /// Whether everything there was at the start has been seen.
    pub fn is_ready(&self) -> bool {
        self.owners.is_ready() && self.handles.iter().all(Handle::is_ready)
    }

    /// Completes when everything there was at the start has been seen.
    pub async fn ready(&self) {
        self.owners.ready().await;
        for handle in &self.handles {
            handle.ready().await;
        }
    }

    /// How many objects with owners and how many owners are known.
    pub fn known(&self) -> (usize, usize) {
        self.owners.known()
    }

    /// Stops all collectors; what runs may end within `patience`.
    pub async fn stop(&self, patience: Duration) {
        for handle in &self.handles {
            self.engine.stop(handle.name(), patience).await;
        }
        self.owners.stop(&self.engine, patience).await;
    }
}
