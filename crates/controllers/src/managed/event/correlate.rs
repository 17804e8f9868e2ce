//! Which events are worth a write. Touches nothing: `recorder.rs` has the hands.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use concert_model::{ObjectKey, Uid};

use super::Event;
use super::recent::Recent;

/// Entries that are remembered: client-go's bound.
const ENTRIES_MAX: usize = 4096;

/// Between two writes of the same event.
const REPEAT_AFTER: Duration = Duration::from_secs(300);

/// Writes that an object may cause at once, and how long each takes to come back: client-go's values.
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(300);

/// What to do with an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Write a new Event object.
    Create,
    /// Write that it happened again, so often in all.
    Repeat {
        /// The Event object.
        object: ObjectKey,
        /// How often.
        count: u32,
    },
    /// It happened again, and that was written not long ago.
    Known,
    /// The object has caused too many writes.
    Limited,
}

/// Remembers what was written.
pub(super) struct Correlator {
    told: Recent<Identity, Told>,
    buckets: Recent<Uid, Bucket>,
    hasher: RandomState,
}

/// What makes two events the same. The message is hashed, for it is long.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Identity {
    uid: Uid,
    is_warning: bool,
    reason: &'static str,
    message: u64,
}

struct Told {
    object: ObjectKey,
    /// How often it happened, and not how often that was written.
    count: u32,
    written_at: Duration,
}

struct Bucket {
    tokens: f64,
    at: Duration,
}

impl Correlator {
    pub fn new() -> Self {
        let (told, buckets) = (Recent::new(ENTRIES_MAX), Recent::new(ENTRIES_MAX));
        Self { told, buckets, hasher: RandomState::new() }
    }

    /// What to do with an event that happens now.
    pub fn decide(&mut self, event: &Event, now: Duration) -> Verdict {
        let identity = self.identity(event);
        let Some(told) = self.told.get_mut(&identity) else {
            return if self.take(&event.uid, now) { Verdict::Create } else { Verdict::Limited };
        };
        told.count = told.count.saturating_add(1);
        if now.saturating_sub(told.written_at) < REPEAT_AFTER {
            return Verdict::Known;
        }
        let (object, count) = (told.object.clone(), told.count);
        // Limited or not, the count is kept for the next write.
        if self.take(&event.uid, now) { Verdict::Repeat { object, count } } else { Verdict::Known }
    }

    /// An event was written as `object`.
    pub fn written(&mut self, event: &Event, object: ObjectKey, now: Duration) {
        let identity = self.identity(event);
        match self.told.get_mut(&identity) {
            Some(told) if told.object == object => told.written_at = now,
            _ => self.told.insert(identity, Told { object, count: 1, written_at: now }),
        }
    }

    /// An event could not be written, or what was written of it is gone.
    pub fn forget(&mut self, event: &Event) {
        let identity = self.identity(event);
        self.told.remove(&identity);
    }

    fn identity(&self, event: &Event) -> Identity {
        Identity {
            uid: event.uid.clone(),
            is_warning: event.is_warning,
            reason: event.reason,
            message: self.hasher.hash_one(&event.message),
        }
    }

    /// Takes one of the writes that an object may cause.
    fn take(&mut self, uid: &Uid, now: Duration) -> bool {
        let Some(bucket) = self.buckets.get_mut(uid) else {
            self.buckets.insert(uid.clone(), Bucket { tokens: BURST - 1.0, at: now });
            return true;
        };
        let refilled = now.saturating_sub(bucket.at).as_secs_f64() / REFILL.as_secs_f64();
        bucket.tokens = (bucket.tokens + refilled).min(BURST);
        bucket.at = now;
        let has_one = bucket.tokens >= 1.0;
        bucket.tokens -= if has_one { 1.0 } else { 0.0 };
        has_one
    }
}
