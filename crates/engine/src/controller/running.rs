//! The life of a controller: start, drain, stop.

use std::sync::Arc;
use std::time::Duration;

use concert_store::{Chance, Clock, Error, Fence, ItemKey, Store, Work};
use tracing::warn;

use crate::backoff::Backoff;
use crate::members::Authority;
use crate::metrics::Metrics;
use crate::tasks::{OnExit, Tasks};

use super::handle::Handle;
use super::shared::Shared;
use super::{Controller, Durability, parking, saving, sharing, sources, timekeeper, worker};

/// Between tries to start while the store does not answer.
const RETRY: Backoff = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(10) };

/// What an engine hands to its controllers.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub chance: Chance,
    pub metrics: Metrics,
}

/// A controller that was started.
pub(crate) struct Running {
    pub handle: Handle,
    tasks: Tasks,
    metrics: Metrics,
}

impl Running {
    /// Starts the tasks of `controller` in a group of their own.
    pub fn start(controller: Controller, surroundings: &Surroundings, tasks: Tasks) -> Self {
        let shared = Arc::new(Shared::new(&controller, surroundings));
        let metrics = surroundings.metrics.clone();
        let probe = Arc::downgrade(&shared);
        metrics.insert(shared.name.clone(), shared.counters.clone(), probe);
        let handle = Handle { shared: shared.clone(), shutdown: tasks.shutdown().clone() };
        let cast = Cast { shared, chance: surroundings.chance.fork(), tasks: tasks.clone(), controller };
        match cast.controller.durability.clone() {
            Durability::Volatile => cast.spawn_all(None),
            Durability::Outcomes(work) => {
                let name = cast.name("start");
                tasks.spawn(name, OnExit::Log, async move {
                    if cast.prepare(&*work).await {
                        cast.spawn_all(Some(work));
                    }
                });
            }
        }
        Self { handle, tasks, metrics }
    }

    /// Lets what runs come to its end for up to `patience`, then forgets everything. Says which tasks
    /// had to be ended.
    pub async fn stop(&self, patience: Duration) -> Vec<Arc<str>> {
        let late = self.tasks.stop(patience).await;
        self.metrics.remove(self.handle.name());
        self.handle.shared.clear();
        late
    }
}

/// All that play in one controller.
struct Cast {
    shared: Arc<Shared>,
    chance: Chance,
    tasks: Tasks,
    controller: Controller,
}

impl Cast {
    /// Claims the controller and reads what was saved. False if asked to stop before that worked.
    async fn prepare(&self, work: &dyn Work) -> bool {
        let mut failures = 0;
        loop {
            let result = tokio::select! {
                biased;
                () = self.tasks.shutdown().requested() => return false,
                result = self.claim_and_scan(work) => result,
            };
            let Err(error) = result else { return true };
            warn!(controller = %self.shared.name, %error, "cannot start yet");
            failures += 1;
            tokio::select! {
                biased;
                () = self.tasks.shutdown().requested() => return false,
                () = self.shared.clock.sleep(RETRY.delay(failures, &self.chance)) => {}
            }
        }
    }

    async fn claim_and_scan(&self, work: &dyn Work) -> Result<(), Error> {
        let has_no_fence = matches!(self.shared.authority, Authority::Alone | Authority::Term(_));
        if has_no_fence && self.shared.claim.get().is_none() {
            let fence = claim(work, &self.shared.name).await?;
            // Only this task sets it.
            self.shared.claim.set(fence).ok();
        }
        let shares = match &self.shared.authority {
            Authority::Shared(shares) => Some(shares),
            _ => None,
        };
        saving::scan(&self.shared, work, |item| shares.is_none_or(|it| it.holds(item))).await
    }

    fn spawn_all(self, work: Option<Arc<dyn Work>>) {
        let shutdown = || self.tasks.shutdown().clone();
        let shared = || self.shared.clone();
        let tasks = self.controller.parallelism.min(self.controller.concurrency);
        for index in 0..tasks {
            // The first few take what does not divide evenly.
            let extra = usize::from(index < self.controller.concurrency % tasks);
            let slots = self.controller.concurrency / tasks + extra;
            self.spawn("worker", worker::run(worker::Presence::new(shared()), slots, shutdown()));
        }
        self.spawn("timekeeper", timekeeper::run(shared(), shutdown()));
        self.spawn("parking", parking::run(shared(), self.chance.fork(), shutdown()));
        if let Some(work) = work.clone() {
            self.spawn("saving", saving::run(shared(), work, self.chance.fork(), shutdown()));
        }
        if let Some(shares) = self.shared.authority.shares().cloned() {
            let sharing = sharing::Sharing::new(shared(), shares, work.clone(), self.chance.fork());
            self.spawn("sharing", sharing.run(shutdown()));
        }
        if let Some(objects) = self.controller.objects.clone() {
            self.spawn("objects", sources::run_objects(shared(), objects, self.chance.fork(), shutdown()));
        }
        for source in self.controller.sources.clone() {
            self.spawn("source", sources::run_related(shared(), source, self.chance.fork(), shutdown()));
        }
    }

    fn spawn(&self, part: &str, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.name(part), OnExit::Stop, task);
    }

    fn name(&self, part: &str) -> String {
        format!("{}/{part}", self.shared.name)
    }
}

/// One more claim on the controller as a whole.
async fn claim(work: &dyn Work, name: &str) -> Result<Fence, Error> {
    // Beside the row of an election, so that a start never fences off an elected leader.
    let item = ItemKey { controller: format!("leader/{name}").into(), item: "start".into() };
    let seen = work.read(&item).await?.map_or(0, |row| row.fence);
    work.claim(&item, seen, b"{}".to_vec().into()).await
}
