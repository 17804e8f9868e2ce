//! What somebody must do for a store of our own: a Kubernetes cluster has programs for it.
//!
//! What is owned goes with its owner, the contents of namespaces and definitions with those, old events go,
//! and the past is compacted.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concert_controllers::gc;
use concert_controllers::managed::registry::Parts;
use concert_engine::{Authority, OnExit, StartError, Tasks};
use concert_store::{Clock, Fence, Local};
use tracing::{error, warn};

/// How often the past is tidied up.
const TIDY_EVERY: Duration = Duration::from_secs(30);

/// Starts the collectors, under the claim of whoever leads.
pub(crate) fn collect(store: &Local, parts: &Parts, fence: Option<Fence>) -> Result<gc::Running, StartError> {
    let kinds = store.clone();
    gc::start(gc::Parts {
        engine: parts.engine.clone(),
        store: parts.store.clone(),
        clock: parts.clock.clone(),
        chance: parts.chance.fork(),
        tasks: parts.tasks.clone(),
        kinds: Arc::new(move || kinds.kinds()),
        settings: gc::Settings::default(),
        fence,
    })
}

/// Compacts and forgets, again and again, and does what else is to be done as often.
pub(crate) fn tidy<F, Besides>(store: &Local, clock: &Arc<dyn Clock>, tasks: &Tasks, besides: F)
where
    F: Fn() -> Besides + Send + 'static,
    Besides: Future<Output = ()> + Send + 'static,
{
    let (store, clock, shutdown) = (store.clone(), clock.clone(), tasks.shutdown().clone());
    tasks.spawn("tidy", OnExit::Stop, async move {
        loop {
            tokio::select! {
                biased;
                () = shutdown.requested() => return,
                () = clock.sleep(TIDY_EVERY) => {}
            }
            if let Err(error) = store.maintain(&Default::default()).await {
                warn!(%error, "cannot tidy up the store");
            }
            besides().await;
        }
    });
}

/// All of it, for as long as a process leads.
pub(crate) struct Upkeep {
    store: Local,
    live: Mutex<Option<Arc<gc::Running>>>,
}

impl Upkeep {
    /// Of a store that nobody else looks after.
    pub fn new(store: Local) -> Self {
        Self { store, live: Mutex::default() }
    }

    /// Starts, among the tasks of `parts`.
    pub fn begin(&self, parts: &Parts) {
        let fence = match &parts.authority {
            Authority::Seat(fence) => Some(fence.clone()),
            Authority::Alone | Authority::Term(_) | Authority::Shared(_) | Authority::Everywhere(_) => None,
        };
        tidy(&self.store, &parts.clock, &parts.tasks, || std::future::ready(()));
        match collect(&self.store, parts, fence) {
            Ok(running) => {
                *self.live.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(running));
            }
            Err(error) => error!(%error, "cannot collect what nobody owns any more"),
        }
    }

    /// Lets what is collected right now be collected. What tidies up ends with the tasks.
    pub async fn end(&self, patience: Duration) {
        // Taken away only afterwards: whoever is interrupted here ends it again.
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(running) = live {
            running.stop(patience).await;
        }
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
