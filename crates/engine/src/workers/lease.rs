//! What a host holds, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use concert_model::time::SignedDuration;
use concert_model::{Object, ObjectKey, Timestamp};
use concert_store::Fence;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::outcome::Wait;
use crate::queue::Reasons;

use super::claim::Claimed;

/// An item that a host has.
#[derive(Clone, Debug)]
pub struct Leased {
    /// What hosts call it.
    pub item: Arc<str>,
    /// Which object.
    pub key: ObjectKey,
    /// The object as the host got it.
    pub object: Arc<Object>,
    /// The claim: writes carry it.
    pub fence: Fence,
    /// Who has it.
    pub host: Arc<str>,
    /// Since when, by the clock's `elapsed`.
    pub since: Duration,
    /// The same for people.
    pub since_time: Timestamp,
    /// Why it runs.
    pub reasons: Reasons,
    /// Failures in a row before this run.
    pub attempt: u64,
    /// What was known when it was offered.
    pub context: Arc<Value>,
    /// The last word that was noted of it, in terms of its meaning.
    pub said: Option<Arc<str>>,
}

/// How a host says that a run ended.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// None if it did not say.
    pub success: Option<bool>,
    /// In words.
    pub message: String,
    /// When it wants to look again.
    pub requeue_after: Option<Duration>,
    /// Nothing can be done before one of these changes.
    pub waits: Vec<Wait>,
    /// Whatever else is to be remembered.
    pub details: Map<String, Value>,
}

/// Why a host may not write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stale {
    /// It has no lease, or no longer.
    #[error("stale fence: no lease is held on item {item}")]
    NotHeld {
        /// Which.
        item: Arc<str>,
    },
    /// Somebody has claimed since.
    #[error("stale fence: item {item} was claimed again, fence {given} is older than {newest}")]
    Older {
        /// Which.
        item: Arc<str>,
        /// What the host came with.
        given: u64,
        /// What is right.
        newest: u64,
    },
}

/// A lease as the board keeps it.
pub(super) struct Lease {
    pub leased: Leased,
    /// What its host called the claim.
    pub claim: Option<Arc<str>>,
    pub expires: Duration,
    /// No heartbeat extends it beyond this.
    pub ends: Duration,
    pub end: Option<oneshot::Sender<End>>,
}

impl Lease {
    /// As its host is told of it, if it is so late and `time` for people.
    pub fn claimed(&self, now: Duration, time: Timestamp) -> Claimed {
        let it = &self.leased;
        Claimed {
            item: it.item.clone(),
            key: it.key.clone(),
            object: it.object.clone(),
            fence: it.fence.number,
            expires_at: after(time, self.expires.saturating_sub(now)),
            attempt: it.attempt,
            reasons: it.reasons.clone(),
            context: it.context.clone(),
        }
    }
}

/// So long after `time`.
pub(super) fn after(time: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    time.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// How a lease ends before its time.
pub(super) enum End {
    /// With the lease as it was then, and what is rung when it was dealt with.
    Reported(Box<Leased>, Report, oneshot::Sender<()>),
    /// The host never got it, or gave it back.
    Returned,
}
