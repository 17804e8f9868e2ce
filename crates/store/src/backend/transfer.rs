//! Moving everything from one sort of store to another.

use bytes::Bytes;
use concert_model::{ObjectKey, Revision};

use super::{Act, Attempt, Failure, Stamp};
use crate::work::WorkRow;

/// A backend that can be read as a whole. Nobody writes to it meanwhile.
pub trait Source {
    /// The last numbers given out.
    ///
    /// # Errors
    /// As every call: [`Failure`].
    fn numbers(&self) -> Result<Numbers, Failure>;

    /// Rows of the log after a revision, oldest first; none when there are no more.
    ///
    /// # Errors
    /// [`Failure`].
    fn log(&self, after: Revision, limit: usize) -> Result<Vec<Logged>, Failure>;

    /// Work rows after a place, with their places.
    ///
    /// # Errors
    /// [`Failure`].
    fn claims(&self, after: u64, limit: usize) -> Result<Claims, Failure>;

    /// Attempts after a place, oldest first, with their places.
    ///
    /// # Errors
    /// [`Failure`].
    fn attempts(&self, after: u64, limit: usize) -> Result<Vec<(u64, Attempt)>, Failure>;
}

/// Work rows with their places.
pub type Claims = Vec<(u64, WorkRow)>;

/// The last numbers given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Of writes.
    pub newest: Revision,
    /// Reads at or after this revision see everything.
    pub compacted: Revision,
    /// Of claims.
    pub claims: u64,
}

/// A row of the log, as it is kept.
#[derive(Clone, Debug)]
pub struct Logged {
    /// Written at.
    pub revision: Revision,
    /// Whose.
    pub key: ObjectKey,
    /// What it did.
    pub act: Act,
    /// The row before it of the same key.
    pub previous: Option<Revision>,
    /// Who, why and when.
    pub stamp: Stamp,
    /// In clear.
    pub head: Bytes,
    /// Sealed; none once compacted.
    pub payload: Option<Bytes>,
}

/// How much was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Rows of the log.
    pub writes: usize,
    /// Work rows.
    pub claims: usize,
    /// Attempts.
    pub attempts: usize,
}
