//! The seam to what the work is about.

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::{Object, ObjectKey};
use concert_store::{Fence, ItemKey};
use serde_json::Value;

use crate::outcome::Outcome;
use crate::reconciler::{Labels, Request};

use super::lease::{Leased, Report};

/// What an item, a report and a silence mean.
///
/// # Guarantees
/// For every offer that was lent, exactly one of `finished` and `expired` follows, unless the
/// controller stops or the host never got it.
///
/// # Assumptions
/// Writes that it makes carry the fence of the lease.
#[async_trait]
pub trait Meaning: Send + Sync + 'static {
    /// Reads what `request` is about and says whether a host is needed.
    async fn prepare(&self, request: &Request) -> Prepared;

    /// A host reported how its run ended.
    async fn finished(&self, lease: &Leased, report: Report) -> Outcome;

    /// A host was not heard of in time. `fence` is newer than the one it had.
    async fn expired(&self, lease: &Leased, fence: Fence) -> Outcome;

    /// What a run of `key` draws on. Asked before each, so it must be quick.
    fn labels(&self, key: &ObjectKey) -> Labels {
        let _ = key;
        Labels::default()
    }
}

/// What becomes of an item that is due.
pub enum Prepared {
    /// A host is needed.
    Offer(Box<Offer>),
    /// Nothing is to be done by a host now.
    Settled(Outcome),
}

/// What a host gets.
#[derive(Clone, Debug)]
pub struct Offer {
    /// What hosts call the item.
    pub item: Arc<str>,
    /// Which row of work state its claims are counted in.
    pub row: ItemKey,
    /// Which object.
    pub key: ObjectKey,
    /// The object as it was read for this run.
    pub object: Arc<Object>,
    /// Failures in a row before this run.
    pub attempt: u64,
    /// What was known when it was offered, for whoever gives its end a meaning.
    pub context: Arc<Value>,
}
