//! Keeping up with other processes that write to the same backend.
//!
//! Where this process is alone, everything it publishes is what it committed itself. Where it is not, what
//! others committed is read from the log, and everything is published in the order of revisions, whoever
//! committed it: by the writer, right after a commit of its own; by a thread that the backend's [`Bell`]
//! wakes; and by whoever must not act on anything older than what others have been answered.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use concert_model::{GroupKind, Revision};

use super::hub::Published;
use super::kinds::Served;
use super::{Inner, Local, Shared};
#[cfg(doc)]
use crate::backend::Bell;
use crate::backend::{Backend, Failure};
use crate::clock::Clock;
use crate::contract::Result;
use crate::error::Error;

/// Log rows read at once.
const STEP_ROWS: usize = 500;
/// The log is looked at this often even if nobody rings: rings get lost with connections.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// What the thread that follows is called.
const THREAD: &str = "store-follower";

impl Shared {
    /// Whoever publishes does so alone, or two would tell the same story twice.
    fn publishing(&self) -> MutexGuard<'_, ()> {
        self.publishing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes what was just committed here, after all that others committed before it.
    pub(super) fn publish_own(&self, backend: &dyn Backend, published: Vec<Published>) {
        let (Some(first), Some(last)) = (published.first(), published.last()) else { return };
        let (first, last) = (first.revision, last.revision);
        let _turn = self.publishing();
        if self.hub.newest().0 + 1 == first.0 {
            self.publish(published);
        } else if let Err(error) = self.follow_to(backend, last) {
            // It is committed, and so it is answered: the log tells everybody else, later.
            tracing::warn!(%error, "cannot read what others wrote; watches wait");
        }
    }

    /// Publishes all that the log has.
    pub(super) fn follow(&self, backend: &dyn Backend) -> Result<(), Failure> {
        let _turn = self.publishing();
        self.follow_to(backend, Revision(u64::MAX))
    }

    /// Publishes what the log has, at least up to `revision`.
    pub(super) fn catch_up(&self, backend: &dyn Backend, revision: Revision) -> Result<(), Failure> {
        if self.hub.newest() >= revision {
            return Ok(());
        }
        let _turn = self.publishing();
        self.follow_to(backend, revision)
    }

    fn follow_to(&self, backend: &dyn Backend, revision: Revision) -> Result<(), Failure> {
        while self.hub.newest() < revision {
            let changes = match backend.tail(self.hub.newest(), STEP_ROWS) {
                Ok(changes) => changes,
                // Cut off for longer than the log is kept.
                Err(Failure::Compacted) => return self.notice(backend),
                Err(failure) => return Err(failure),
            };
            if changes.is_empty() {
                // A server that has forgotten what it once answered: a standby took over that did not have
                // everything, or a copy was put back.
                let has_gone_back = backend.bounds()?.newest < self.hub.newest();
                return if has_gone_back { self.notice(backend) } else { Ok(()) };
            }
            let publish = |change| Published::from_change(self, change);
            self.publish(changes.into_iter().map(publish).collect::<Result<_, _>>()?);
        }
        Ok(())
    }
}

/// Since when the log cannot be read, by the clock of the store.
#[derive(Default)]
pub(super) struct CutOff(Mutex<Option<Duration>>);

impl CutOff {
    /// A look that begins `at` counts as one that fails until it has succeeded: one that hangs is no better.
    fn begin(&self, at: Duration) {
        self.lock().get_or_insert(at);
    }

    fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that follows. Ends with the value.
pub(super) struct Follower {
    backend: Arc<dyn Backend>,
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Starts following, if there is anybody to follow.
    pub(super) fn start(
        backend: &Arc<dyn Backend>,
        shared: &Arc<Shared>,
        clock: &Arc<dyn Clock>,
    ) -> Option<Self> {
        backend.bell()?;
        let (backend, shared, is_ending) =
            (backend.clone(), shared.clone(), Arc::new(AtomicBool::new(false)));
        let run = {
            let (backend, is_ending, clock) = (backend.clone(), is_ending.clone(), clock.clone());
            move || {
                let mut is_behind = false;
                while let Some(bell) = backend.bell() {
                    bell.wait(shared.hub.newest(), POLL_EVERY);
                    if is_ending.load(Ordering::Acquire) {
                        return;
                    }
                    shared.cut_off.begin(clock.elapsed());
                    match shared.follow(&*backend) {
                        Ok(()) => {
                            is_behind = false;
                            shared.cut_off.end();
                        }
                        Err(error) if !is_behind => {
                            is_behind = true;
                            tracing::warn!(%error, "cannot read what others wrote; watches wait");
                        }
                        Err(_) => {}
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name(THREAD.into()).spawn(run);
        let thread = Some(thread.expect("a thread can be started when a store is opened"));
        Some(Self { backend, is_ending, thread })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Release);
        if let Some(bell) = self.backend.bell() {
            bell.alarm();
        }
        if let Some(thread) = self.thread.take() {
            // Its panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// How often it was asked what others did, and what came of it last.
#[derive(Default)]
pub(super) struct Refreshes {
    begun: AtomicU64,
    last: tokio::sync::Mutex<Tried>,
}

#[derive(Default)]
struct Tried {
    number: u64,
    /// Why it failed, if it did.
    failure: Option<String>,
}

impl Tried {
    fn new(number: u64, result: &Result<()>) -> Self {
        let failure = result.as_ref().err().map(|error| match error {
            Error::Unavailable(source) => chain(&**source),
            other => chain(other),
        });
        Self { number, failure }
    }

    fn result(&self) -> Result<()> {
        self.failure.as_ref().map_or(Ok(()), |why| Err(Error::unavailable(why)))
    }
}

/// An error and all that is behind it, in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |it| it.source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl Inner {
    /// True if other processes may write to the same backend.
    pub(super) fn is_shared(&self) -> bool {
        self.backend.bell().is_some()
    }

    /// Hears of everything that anybody has been answered by now. Those who ask at the same time are answered
    /// together, also when that fails: each try may take as long as the backend has patience, and nobody should
    /// wait for more than the one that is under way and the next.
    pub(super) async fn refresh(&self) -> Result<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let asked = self.refreshes.begun.load(Ordering::SeqCst);
        let mut last = self.refreshes.last.lock().await;
        if last.number > asked {
            // That one began after this call.
            return last.result();
        }
        let number = self.refreshes.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let shared = self.shared.clone();
        let result = self.read(move |backend| shared.catch_up(backend, backend.bounds()?.newest)).await;
        *last = Tried::new(number, &result);
        result
    }

    /// How a kind is served: one that is not known may be new from somebody else.
    pub(super) async fn find_kind(&self, kind: &GroupKind) -> Result<Arc<Served>> {
        match self.shared.kinds.find(kind) {
            Err(Error::UnknownKind { .. }) if self.is_shared() => {
                self.refresh().await?;
                self.shared.kinds.find(kind)
            }
            found => found,
        }
    }
}

impl Local {
    /// Hears of everything that anybody has been answered by now, also by other processes: kinds and
    /// [`Local::touched`] are as new as that afterwards. Costs nothing where this process is alone.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn refresh(&self) -> Result<()> {
        self.inner().refresh().await
    }

    /// How long it has not been possible to read what others wrote; none while it is, and where this process is
    /// alone.
    pub fn cut_off_for(&self) -> Option<Duration> {
        let since = *self.inner().shared.cut_off.lock();
        since.map(|since| self.inner().clock.elapsed().saturating_sub(since))
    }

    /// True if other processes may write to the same store.
    pub fn is_shared(&self) -> bool {
        self.inner().is_shared()
    }
}

#[cfg(test)]
mod tests;
