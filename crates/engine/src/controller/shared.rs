//! What the tasks and handles of one controller share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use concert_store::{Clock, Fence, Store};
use tokio::sync::Notify;

use crate::breaker::Breakers;
use crate::budget::Budgets;
use crate::members::Authority;
use crate::metrics::{Counters, Probe, Sample};
use crate::reconciler::Reconciler;
use crate::watched::Watched;
use crate::workers::Demand;

use super::core::{Core, Policy, Rings};
use super::{Controller, Durability, Surroundings, Versions};

pub(crate) struct Shared {
    pub name: Arc<str>,
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn Store>,
    pub reconciler: Arc<dyn Reconciler>,
    pub versions: Option<Arc<dyn Versions>>,
    pub demand: Option<Demand>,
    pub budgets: Budgets,
    pub breakers: Breakers,
    pub counters: Arc<Counters>,
    pub concurrency: usize,
    /// How often sources list again although nothing says so.
    pub relist: Option<Duration>,
    pub timeout: Duration,
    /// On which keys it works.
    pub authority: Authority,
    /// The claim that it made when it started, where it works alone.
    pub claim: OnceLock<Fence>,
    /// How often the main source is to begin anew, because keys have come.
    pub relists: Watched<u64>,
    /// Sources whose first list is not complete.
    pub unlisted: Watched<usize>,
    /// Workers that have not ended: what they settle must still be saved.
    pub workers: Watched<usize>,
    pub bells: Bells,
    is_stopped: AtomicBool,
    core: Mutex<Core>,
}

/// One bell for each kind of task, rung after the lock is given back.
#[derive(Default)]
pub(crate) struct Bells {
    pub workers: Arc<Notify>,
    pub timer: Notify,
    pub parking: Notify,
    pub saving: Notify,
    pub room: Notify,
}

impl Shared {
    /// What the tasks of `controller` share, before any of them runs.
    pub(super) fn new(controller: &Controller, surroundings: &Surroundings) -> Self {
        let policy = Policy {
            capacity: controller.capacity,
            backoff: controller.backoff,
            poll: controller.poll,
            keeps_unknown: controller.objects.is_none(),
            has_related: !controller.sources.is_empty(),
            is_durable: matches!(controller.durability, Durability::Outcomes(_)),
        };
        let counters: Arc<Counters> = Arc::default();
        let core = Core::new(policy, surroundings.chance.fork(), counters.adds.clone());
        let bells = Bells::default();
        if let Some(demand) = &controller.demand {
            demand.attach(&bells.workers);
        }
        let sources = controller.sources.len() + usize::from(controller.objects.is_some());
        Self {
            name: controller.name.clone(),
            clock: surroundings.clock.clone(),
            store: surroundings.store.clone(),
            reconciler: controller.reconciler.clone(),
            versions: controller.versions.clone(),
            demand: controller.demand.clone(),
            budgets: controller.budgets.clone(),
            breakers: controller.breakers.clone(),
            counters,
            concurrency: controller.concurrency,
            relist: controller.relist,
            timeout: controller.timeout,
            authority: controller.authority.clone(),
            claim: OnceLock::new(),
            relists: Watched::new(0),
            unlisted: Watched::new(sources),
            workers: Watched::new(0),
            bells,
            is_stopped: AtomicBool::new(false),
            core: Mutex::new(core),
        }
    }

    /// Changes the state, then wakes whom that concerns.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.lock();
        let answer = change(&mut core);
        let rings = std::mem::take(&mut core.rings);
        drop(core);
        self.ring(rings);
        answer
    }

    pub fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Drops all state: handles that outlive the controller hold nothing.
    pub(super) fn clear(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.lock().clear();
    }

    fn ring(&self, rings: Rings) {
        if rings.workers {
            self.bells.workers.notify_one();
        }
        if rings.timer {
            self.bells.timer.notify_one();
        }
        if rings.parking {
            self.bells.parking.notify_one();
        }
        if rings.saving {
            self.bells.saving.notify_one();
        }
        if rings.room {
            self.bells.room.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Probe for Shared {
    fn sample(&self) -> Sample {
        let now = self.now();
        let core = self.lock();
        let depth = core.queue.depth();
        let lengths = || core.queue.running_since().map(|since| now.saturating_sub(since));
        Sample {
            depth: depth.ready.iter().sum(),
            running: depth.running,
            concurrency: self.concurrency,
            unfinished: lengths().sum(),
            longest: lengths().max().unwrap_or_default(),
        }
    }
}
