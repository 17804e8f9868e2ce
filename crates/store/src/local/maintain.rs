//! Keeping the store small and its keys fresh, in small steps between writes.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use concert_model::{GroupKind, Revision, time};

use super::Local;
use super::driver::Job;
use crate::backend::{Backend, Effect, Payload, Shelf, Txn};
use crate::contract::Result;
use crate::error::Error;
use crate::seal::KeyError;

/// Log rows compacted, forgotten or sealed again in one step. A step holds up the writer for a few
/// milliseconds.
const STEP_ROWS: usize = 500;

/// How long the past is kept.
#[derive(Clone, Debug)]
pub struct Retention {
    /// Watches and lists may go on from a position this old.
    pub window: Duration,
    /// But over no more than so many writes.
    pub window_writes_max: u64,
    /// Who wrote when, and what was tried, is remembered this long.
    pub history: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(10 * 60),
            window_writes_max: 200_000,
            history: Duration::from_secs(90 * 24 * 60 * 60),
        }
    }
}

/// Which revision was the newest when: what "a window ago" was.
#[derive(Debug, Default)]
pub(super) struct Samples(Mutex<VecDeque<(Duration, Revision)>>);

impl Samples {
    /// Notes the newest revision and returns the one that was the newest `window` ago.
    fn note(&self, now: Duration, newest: Revision, window: Duration) -> Revision {
        let mut samples = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        samples.push_back((now, newest));
        let is_old = |sample: Option<&(Duration, Revision)>| {
            sample.is_some_and(|(at, _)| now.saturating_sub(*at) >= window)
        };
        while is_old(samples.get(1)) {
            samples.pop_front();
        }
        samples.front().filter(|s| is_old(Some(s))).map_or(Revision(0), |(_, revision)| *revision)
    }
}

/// Why keys could not be rotated.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The store has no keys.
    #[error("the store is not encrypted")]
    NotEncrypted,
    /// Another rotation goes on.
    #[error("keys are being rotated already")]
    Busy,
    /// The key file could not be written.
    #[error("cannot write the key file")]
    Keys(#[source] KeyError),
    /// The store failed; the old keys are kept, and rotating again goes on where this one stopped.
    #[error("cannot seal again")]
    Store(#[source] Error),
}

impl Local {
    /// Compacts and forgets what `retention` allows. Called again and again, say every half minute.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; what was done until then is done.
    pub async fn maintain(&self, retention: &Retention) -> Result<()> {
        let inner = self.inner();
        let newest = inner.read_one(Backend::bounds).await?.newest;
        let by_time = inner.samples.note(inner.clock.elapsed(), newest, retention.window);
        let by_count = Revision(newest.0.saturating_sub(retention.window_writes_max));
        self.compact(by_time.max(by_count)).await?;
        let history = time::SignedDuration::try_from(retention.history).unwrap_or(time::SignedDuration::MAX);
        if let Ok(before) = inner.clock.now().checked_sub(history) {
            while inner.driver.call(move |backend| backend.forget(before, STEP_ROWS)).await? == STEP_ROWS {}
        }
        Ok(())
    }

    /// Drops the past before `floor`: watches and lists from there are expired.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn compact(&self, floor: Revision) -> Result<()> {
        self.refresh().await?;
        // What watchers have not been told yet must stay readable.
        let floor = floor.min(self.inner().shared.hub.newest());
        let mut done = self.inner().read_one(Backend::bounds).await?.compacted;
        loop {
            let until = self.inner().driver.call(move |backend| backend.compact(floor, STEP_ROWS)).await?;
            if until <= done {
                return Ok(());
            }
            done = until;
        }
    }

    /// The newest revision.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn newest(&self) -> Result<Revision> {
        Ok(self.inner().read_one(Backend::bounds).await?.newest)
    }

    /// The newest revision that this process has heard of: never waits, and is as new as the last
    /// [`Local::refresh`] at least.
    pub fn heard(&self) -> Revision {
        self.inner().shared.hub.newest()
    }

    /// A revision that is another one after each change of an object of `kind`: whoever read such an object
    /// and finds the same revision as before that read need not read it again. Never waits: where others
    /// write to the same store, it knows of what they did until the last [`Local::refresh`] at least.
    pub fn touched(&self, kind: &GroupKind) -> Revision {
        self.inner().shared.hub.touched(kind)
    }

    /// Makes a new key, seals everything with it, and drops the old keys. Reads and writes go on.
    ///
    /// # Errors
    /// [`RotateError`]; nothing is lost.
    pub async fn rotate_keys(&self) -> Result<(), RotateError> {
        let inner = self.inner();
        let keyring = inner.shared.seal.keyring().ok_or(RotateError::NotEncrypted)?;
        // Two at a time would drop each other's keys. Free again however this ends.
        let _turn = inner.rotation.try_lock().map_err(|_| RotateError::Busy)?;
        keyring.add(&inner.chance).map_err(RotateError::Keys)?;
        // Everything that was sealed earlier is stored when the writer gets to this.
        inner.driver.call(|_| Ok(())).await.map_err(RotateError::Store)?;
        for shelf in [Shelf::Objects, Shelf::Work, Shelf::Attempts] {
            self.reseal(shelf).await.map_err(RotateError::Store)?;
        }
        keyring.drop_old().map_err(RotateError::Keys)
    }

    async fn reseal(&self, shelf: Shelf) -> Result<()> {
        let inner = self.inner();
        let mut after = 0;
        loop {
            let read = move |backend: &dyn Backend| backend.payloads(shelf, after, STEP_ROWS);
            let payloads = inner.read(read).await?;
            let Some(last) = payloads.last() else { return Ok(()) };
            after = last.place;
            let effects =
                payloads.into_iter().filter_map(|payload| self.resealed(shelf, payload).transpose());
            let txn = Txn { checks: Vec::new(), effects: effects.collect::<Result<Vec<_>>>()? };
            let answer = inner.driver.commit(Job { txn, writes: Vec::new() }).await?;
            answer.map_err(|_| Error::unavailable("a transaction without checks was refused"))?;
        }
    }

    fn resealed(&self, shelf: Shelf, payload: Payload) -> Result<Option<Effect>> {
        let Payload { place, owner, bytes } = payload;
        let seal = &self.inner().shared.seal;
        let to = seal.reseal(seal.newest(), &owner, &bytes)?;
        Ok(to.map(|to| Effect::Reseal { shelf, place, from: bytes, to }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_follows_a_window_behind() {
        let samples = Samples::default();
        let window = Duration::from_secs(10);
        let note = |second, revision| samples.note(Duration::from_secs(second), Revision(revision), window).0;
        assert_eq!(note(0, 5), 0);
        assert_eq!(note(5, 7), 0);
        assert_eq!(note(10, 9), 5);
        assert_eq!(note(16, 9), 7);
        assert_eq!(note(90, 9), 9);
    }
}
