//! The recent past, shared by all watches.
//!
//! Committed batches are kept in a ring; each watch has a cursor of its own and takes what it has not
//! seen. Writing never waits for a watch: one that falls behind the ring reads the log, and one that
//! falls behind the log is expired.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use concert_model::{Encoded, GroupKind, Revision};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::Shared;
use crate::backend::{Act, Change, Failure};

/// Changes kept in memory: a second's worth at full speed, so that a reader as slow as that never has
/// to go to the log.
const CHANGES_MAX: usize = 8_192;
/// Payload bytes kept in memory, whatever the number of changes.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// One committed change, as watches see it.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) revision: Revision,
    pub(super) act: Act,
    pub(super) object: Encoded,
    pub(super) previous: Option<Encoded>,
}

impl Published {
    pub(super) fn from_change(shared: &Shared, change: Change) -> Result<Self, Failure> {
        Ok(Self {
            revision: change.row.revision,
            act: change.act,
            object: shared.unseal(change.row)?,
            previous: change.previous.map(|row| shared.unseal(row)).transpose()?,
        })
    }

    fn bytes(&self) -> usize {
        let previous = self.previous.as_ref().map_or(0, |p| p.body().payload().len());
        self.object.body().payload().len() + previous
    }
}

/// Changes in order, shared by all who read them.
pub(super) type Batch = Arc<[Published]>;

/// What a watch finds behind its cursor.
pub(super) enum Found {
    Batch(Batch),
    Nothing,
    /// The ring starts later: read the log.
    TooOld,
}

pub(super) struct Hub {
    ring: RwLock<Ring>,
    newest: AtomicU64,
    is_closed: AtomicBool,
    /// Rung after each batch. Wakes in the order of arrival, unlike a watch channel, which wakes in a
    /// random one: the simulation could not be repeated.
    more: Notify,
}

#[derive(Default)]
struct Ring {
    batches: VecDeque<Batch>,
    /// Every change after this revision is in the ring.
    since: Revision,
    changes: usize,
    bytes: usize,
    /// The last change of each kind that changed since the store was opened or restored.
    touched: HashMap<GroupKind, Revision>,
    /// For all other kinds.
    untouched: Revision,
}

impl Hub {
    pub(super) fn new(newest: Revision) -> Self {
        let ring = RwLock::new(Ring { since: newest, untouched: newest, ..Ring::default() });
        Self {
            ring,
            newest: AtomicU64::new(newest.0),
            is_closed: AtomicBool::new(false),
            more: Notify::new(),
        }
    }

    /// The last revision published.
    pub(super) fn newest(&self) -> Revision {
        Revision(self.newest.load(Ordering::Acquire))
    }

    /// Completes when there is more, or no more to come. Counts from when it is first polled or enabled.
    pub(super) fn more(&self) -> Notified<'_> {
        self.more.notified()
    }

    pub(super) fn publish(&self, published: Vec<Published>) {
        let Some(newest) = published.last().map(|p| p.revision) else { return };
        self.ring.write().unwrap_or_else(PoisonError::into_inner).push(published.into());
        self.newest.store(newest.0, Ordering::Release);
        self.more.notify_waiters();
    }

    /// Starts later: nobody watches yet.
    pub(super) fn skip_to(&self, newest: Revision) {
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        (ring.since, ring.untouched) = (newest, newest);
        drop(ring);
        self.newest.store(newest.0, Ordering::Release);
    }

    /// Goes on from `newest` without a past: every watch from before is behind.
    pub(super) fn restart(&self, newest: Revision) {
        let ring = Ring { since: newest, untouched: newest, ..Ring::default() };
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = ring;
        self.newest.store(newest.0, Ordering::Release);
        self.more.notify_waiters();
    }

    /// Ends all watches: the store is gone.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.more.notify_waiters();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// A revision that is another one after each change of an object of `kind`.
    pub(super) fn touched(&self, kind: &GroupKind) -> Revision {
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        ring.touched.get(kind).copied().unwrap_or(ring.untouched)
    }

    /// The oldest batch with a change after `cursor`.
    pub(super) fn after(&self, cursor: Revision) -> Found {
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        if cursor < ring.since {
            return Found::TooOld;
        }
        let is_seen = |batch: &Batch| batch.last().is_none_or(|p| p.revision <= cursor);
        let first = ring.batches.partition_point(is_seen);
        ring.batches.get(first).map_or(Found::Nothing, |batch| Found::Batch(batch.clone()))
    }
}

impl Ring {
    fn push(&mut self, batch: Batch) {
        for change in &*batch {
            match self.touched.get_mut(&change.object.key().kind) {
                Some(last) => *last = change.revision,
                None => drop(self.touched.insert(change.object.key().kind.clone(), change.revision)),
            }
        }
        self.changes += batch.len();
        self.bytes += batch.iter().map(Published::bytes).sum::<usize>();
        self.batches.push_back(batch);
        // The newest batch stays, whatever its size: those who are awake must find it.
        while self.batches.len() > 1 && (self.changes > CHANGES_MAX || self.bytes > BYTES_MAX) {
            let Some(oldest) = self.batches.pop_front() else { return };
            self.changes -= oldest.len();
            self.bytes -= oldest.iter().map(Published::bytes).sum::<usize>();
            self.since = oldest.last().map_or(self.since, |p| p.revision);
        }
    }
}
