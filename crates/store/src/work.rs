//! Work state: one durable row per item of work.
//!
//! Lease, fence, attempt, due time, what is waited for and the last outcome of an item outlive the
//! process, so that back-off survives a restart and a late writer is fenced off. These rows have no
//! revision, no event and no history: idle polling writes nothing.

use async_trait::async_trait;
use bytes::Bytes;

use crate::contract::{Fence, ItemKey, Result};

/// One stored row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkRow {
    /// Which item.
    pub item: ItemKey,
    /// The newest claim; 0 if it was never claimed.
    pub fence: u64,
    /// What the engine knows about the item, in the engine's words.
    pub body: Bytes,
}

/// Rows of work state.
///
/// # Guarantees
/// Every change is durable when the call returns, and visible to every later call.
#[async_trait]
pub trait Work: Send + Sync + 'static {
    /// The row of an item, if there is one.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`].
    async fn read(&self, item: &ItemKey) -> Result<Option<WorkRow>>;

    /// All rows of a controller, by item.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`].
    async fn scan(&self, controller: &str) -> Result<Vec<WorkRow>>;

    /// Claims an item whose newest claim is `seen` (0 for an item without a row). The new claim has a
    /// number higher than any given out before, to whatever item.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`] when somebody else claimed it since.
    async fn claim(&self, item: &ItemKey, seen: u64, body: Bytes) -> Result<Fence>;

    /// Stores what is known about an item, for as long as `fence` is its newest claim.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`].
    async fn save(&self, fence: &Fence, body: Bytes) -> Result<()>;

    /// Drops the row of an item, for as long as `fence` is its newest claim.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`].
    async fn forget(&self, fence: &Fence) -> Result<()>;
}
