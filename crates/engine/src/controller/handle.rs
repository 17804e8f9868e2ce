//! What others may ask of a controller while it runs.

use std::sync::Arc;
use std::time::Duration;

use concert_model::ObjectKey;

use crate::queue::{Depth, Full, Lane, Reason};
use crate::shutdown::Shutdown;

use super::shared::Shared;
use super::state::ItemState;

/// A controller that runs. Cheap to clone; outlives the controller without harm.
#[derive(Clone)]
pub struct Handle {
    pub(super) shared: Arc<Shared>,
    pub(super) shutdown: Shutdown,
}

/// Why a key was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnqueueError {
    /// The key is new and there is no room: ask again later.
    #[error(transparent)]
    Full(#[from] Full),
    /// The controller runs no more.
    #[error("controller {name} has stopped")]
    Stopped {
        /// Which.
        name: Arc<str>,
    },
}

/// A controller in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its name.
    pub name: Arc<str>,
    /// Whether all its sources have told what there is.
    pub is_ready: bool,
    /// Whether it is held back as a whole.
    pub is_paused: bool,
    /// How many items are where.
    pub depth: Depth,
    /// How long the item has waited for a worker that has waited longest.
    pub longest_wait: Duration,
    /// Runs so far.
    pub runs: u64,
    /// Runs that failed.
    pub failures: u64,
    /// Runs that panicked.
    pub panics: u64,
}

impl Handle {
    /// The controller's name.
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// Asks for a run of `key` now.
    ///
    /// # Errors
    /// [`EnqueueError::Full`], never for a key that is known; [`EnqueueError::Stopped`].
    pub fn enqueue(&self, key: &ObjectKey, lane: Lane, reason: Reason) -> Result<(), EnqueueError> {
        self.enqueue_after(key, lane, reason, Duration::ZERO)
    }

    /// Asks for a run of `key` after some time. One that another member has is left to it.
    ///
    /// # Errors
    /// As [`Handle::enqueue`].
    pub fn enqueue_after(
        &self,
        key: &ObjectKey,
        lane: Lane,
        reason: Reason,
        delay: Duration,
    ) -> Result<(), EnqueueError> {
        if self.shared.is_stopped() {
            return Err(EnqueueError::Stopped { name: self.shared.name.clone() });
        }
        // Whoever has it hears of the same.
        if !self.shared.authority.has(key) {
            return Ok(());
        }
        let now = self.shared.now();
        let due = now.saturating_add(delay);
        Ok(self.shared.with(|core| core.enqueue(key, lane, reason, due, now))?)
    }

    /// Asks for a run of `key` after some time, if it is an item. One that is not says `false`: when it
    /// becomes one it is run anyway, unless it is listed as settled or as it was before a restart. Until
    /// [`Handle::is_ready`] says so, `false` may mean that it was not listed yet.
    pub fn wake(&self, key: &ObjectKey, lane: Lane, reason: Reason, delay: Duration) -> bool {
        let now = self.shared.now();
        self.shared.with(|core| core.wake_known(key, lane, reason, now.saturating_add(delay), now))
    }

    /// Says that what is called `label` has this version now: wakes who waits for another one.
    pub fn signal(&self, label: &str, version: Option<&str>) {
        let now = self.shared.now();
        self.shared.with(|core| core.signal(label, version, now));
    }

    /// Everything known about one item.
    pub fn state(&self, key: &ObjectKey) -> Option<ItemState> {
        self.shared.with(|core| core.state(key))
    }

    /// Everything known about all items.
    pub fn states(&self) -> Vec<ItemState> {
        self.shared.with(|core| core.states())
    }

    /// The controller in numbers.
    pub fn summary(&self) -> Summary {
        let now = self.shared.now();
        let (depth, is_paused, oldest) = self.shared.with(|core| {
            let queue = &core.queue;
            (queue.depth(), queue.is_paused(), queue.oldest_due())
        });
        let counters = &self.shared.counters;
        Summary {
            name: self.shared.name.clone(),
            is_ready: self.is_ready(),
            is_paused,
            depth,
            longest_wait: oldest.map_or(Duration::ZERO, |due| now.saturating_sub(due)),
            runs: counters.runs(),
            failures: counters.failures(),
            panics: counters.panics.get(),
        }
    }

    /// Whether all sources have told what there is.
    pub fn is_ready(&self) -> bool {
        self.shared.unlisted.get() == 0
    }

    /// Completes when all sources have told what there is.
    pub async fn ready(&self) {
        self.shared.unlisted.wait_for(|count| *count == 0).await;
    }

    /// Starts no more runs; those that run go on.
    pub fn pause(&self) {
        self.shared.with(|core| core.queue.pause());
    }

    /// Starts runs again.
    pub fn resume(&self) {
        self.shared.with(|core| {
            core.queue.resume();
            (core.rings.workers, core.rings.timer) = (true, true);
        });
    }

    /// Starts no more runs of one key.
    ///
    /// # Errors
    /// [`EnqueueError::Full`] for a key that is not known.
    pub fn pause_key(&self, key: &ObjectKey) -> Result<(), EnqueueError> {
        Ok(self.shared.with(|core| core.queue.pause_key(key))?)
    }

    /// Starts runs of one key again.
    pub fn resume_key(&self, key: &ObjectKey) {
        let now = self.shared.now();
        self.shared.with(|core| core.resume_key(key, now));
    }

    /// Asks the controller to stop: it starts no more runs and ends when those that run have. To wait
    /// for that and to free the name, use `Engine::stop`.
    pub fn stop(&self) {
        self.shutdown.request();
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Handle").field(&self.shared.name).finish()
    }
}
