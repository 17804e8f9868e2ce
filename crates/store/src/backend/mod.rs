//! Bytes beneath the objects.
//!
//! A backend knows keys, revisions and bytes, and nothing of what they mean: the object semantics stand
//! over it, once, in [`crate::local`]. All calls are plain functions; whoever drives a backend decides on
//! which thread. In production one writer thread commits whatever has queued up, in simulation commits
//! are called inline.

mod bell;
pub mod memory;
mod numbers;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod sqlite;
pub mod transfer;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use concert_model::{GroupKind, ObjectKey, Revision, Timestamp};

use crate::contract::{Fence, ItemKey};
use crate::work::WorkRow;

pub use bell::Bell;
pub use memory::Memory;
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
pub use sqlite::Sqlite;

/// An ordered map of keys to bytes with one log of all its writes.
///
/// # Guarantees
/// - A transaction is done entirely or not at all; those of a batch are done in order.
/// - When [`Backend::commit`] returns, what it did is durable and visible to every later call.
/// - Every write of an object gets the next revision. None is used twice, not even after a crash.
/// - Reads do not wait for commits, nor commits for reads.
pub trait Backend: Send + Sync + 'static {
    /// The newest revision and the one up to which the log is compacted.
    ///
    /// # Errors
    /// As every call: [`Failure`].
    fn bounds(&self) -> Result<Bounds, Failure>;

    /// The current row of a key.
    ///
    /// # Errors
    /// [`Failure`].
    fn get(&self, key: &ObjectKey) -> Result<Option<Row>, Failure>;

    /// Rows of one kind in the order of namespace and name, all as of one revision.
    ///
    /// # Errors
    /// [`Failure::Compacted`] when `scan.at` is.
    fn range(&self, scan: &Scan<'_>) -> Result<Range, Failure>;

    /// Log rows after a revision, oldest first.
    ///
    /// # Errors
    /// [`Failure::Compacted`] when a row after `after` may be gone.
    fn tail(&self, after: Revision, limit: usize) -> Result<Vec<Change>, Failure>;

    /// The writes of one key, newest first, of all its incarnations.
    ///
    /// # Errors
    /// [`Failure`].
    fn history(&self, key: &ObjectKey, before: Option<Revision>, limit: usize) -> Result<Vec<Past>, Failure>;

    /// The work row of an item.
    ///
    /// # Errors
    /// [`Failure`].
    fn work(&self, item: &ItemKey) -> Result<Option<WorkRow>, Failure>;

    /// All work rows of a controller, by item.
    ///
    /// # Errors
    /// [`Failure`].
    fn work_of(&self, controller: &str) -> Result<Vec<WorkRow>, Failure>;

    /// Recorded attempts of an item, newest first.
    ///
    /// # Errors
    /// [`Failure`].
    fn attempts(&self, item: &ItemKey, limit: usize) -> Result<Vec<Attempt>, Failure>;

    /// Does a batch of transactions, each with its own verdict.
    ///
    /// # Assumptions
    /// Called by one caller at a time, in this process.
    ///
    /// # Errors
    /// [`Failure`] for the batch as a whole: nothing of it was done, or, for [`Failure::Broken`], nobody
    /// knows.
    fn commit(&self, batch: &[Txn]) -> Result<Vec<Verdict>, Failure>;

    /// Forgets what only readers before `floor` could see: the bytes of states that were replaced, never
    /// who wrote when. Does at most `limit` writes' worth and returns how far it came.
    ///
    /// # Assumptions
    /// As [`Backend::commit`].
    ///
    /// # Errors
    /// [`Failure`].
    fn compact(&self, floor: Revision, limit: usize) -> Result<Revision, Failure>;

    /// Drops history: log rows that hold no current state and attempts, both older than `before`. Does at
    /// most `limit` rows and returns how many it dropped.
    ///
    /// # Assumptions
    /// As [`Backend::commit`].
    ///
    /// # Errors
    /// [`Failure`].
    fn forget(&self, before: Timestamp, limit: usize) -> Result<usize, Failure>;

    /// How many objects of a kind there are now after a place, in one namespace or in all.
    ///
    /// # Errors
    /// [`Failure`].
    fn count(&self, kind: &GroupKind, namespace: Option<&str>, after: &ObjectKey) -> Result<usize, Failure>;

    /// Payloads of one shelf, in some fixed order, after a place: for re-encryption.
    ///
    /// # Errors
    /// [`Failure`].
    fn payloads(&self, shelf: Shelf, after: u64, limit: usize) -> Result<Vec<Payload>, Failure>;

    /// True if single reads take microseconds, so that they may be done on any thread.
    fn is_local(&self) -> bool;

    /// The bell that rings when other processes write to the same place; none where this one is alone with
    /// it. Whoever is not alone reads the log from time to time, rung for or not.
    fn bell(&self) -> Option<&Bell> {
        None
    }

    /// Copies everything to a new file, as of one moment, while others read and write.
    ///
    /// # Errors
    /// [`Failure`] when there is such a file already, or it cannot be written; none is left behind then.
    fn backup_to(&self, _target: &Path) -> Result<(), Failure> {
        Err(Failure::broken("this sort of store makes no copies"))
    }

    /// Takes a copy in the place of everything there is.
    ///
    /// # Guarantees
    /// - Every payload was shown to `renew` before, which may give another for it, and any failure leaves
    ///   all as it was.
    /// - Revisions and claims go on far ahead of all that were ever given out, here or where the copy comes
    ///   from, and everything that was taken back has moved ahead with them. All before is compacted.
    ///
    /// # Assumptions
    /// As [`Backend::commit`].
    ///
    /// # Errors
    /// [`Failure`].
    fn restore_from(&self, _source: &Path, _renew: &Renew<'_>) -> Result<(), Failure> {
        Err(Failure::broken("this sort of store takes no copies"))
    }
}

/// Looks at a payload of a copy, and gives what is to be kept in its place, if anything else is.
pub type Renew<'a> = dyn Fn(&Owner, &Bytes) -> Result<Option<Bytes>, Failure> + 'a;

/// How far the log reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The last revision given out.
    pub newest: Revision,
    /// Reads at or after this revision see everything.
    pub compacted: Revision,
}

/// The state of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whose.
    pub key: ObjectKey,
    /// Written at.
    pub revision: Revision,
    /// In clear.
    pub head: Bytes,
    /// Sealed.
    pub payload: Bytes,
}

/// Which rows to read.
pub struct Scan<'a> {
    /// Of this kind.
    pub kind: &'a GroupKind,
    /// In one namespace, or in all.
    pub namespace: Option<&'a str>,
    /// After this (namespace, name).
    pub after: Option<(&'a str, &'a str)>,
    /// As of this revision, or of now.
    pub at: Option<Revision>,
    /// At most so many rows.
    pub limit: usize,
    /// Decides by key and head; payloads of others are not even read.
    pub keep: &'a dyn Fn(&ObjectKey, &[u8]) -> bool,
}

/// Rows as of one revision.
#[derive(Clone, Debug)]
pub struct Range {
    /// The revision.
    pub revision: Revision,
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// True if the limit cut it short.
    pub is_cut: bool,
}

/// A row of the log, as watches need it.
#[derive(Clone, Debug)]
pub struct Change {
    /// The state written, or for a removal the final one.
    pub row: Row,
    /// What it did.
    pub act: Act,
    /// The state before; none for an object that is new.
    pub previous: Option<Row>,
}

/// What a write did to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The key was free before.
    Created,
    /// It replaced a state.
    Updated,
    /// The key is free again.
    Removed,
}

/// A row of the log, as history needs it.
#[derive(Clone, Debug)]
pub struct Past {
    /// Written at.
    pub revision: Revision,
    /// What it did.
    pub act: Act,
    /// Who, why and when.
    pub stamp: Stamp,
    /// In clear.
    pub head: Bytes,
    /// Sealed; none once compacted.
    pub payload: Option<Bytes>,
}

/// Who wrote, why and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: Arc<str>,
    /// Why.
    pub reason: Arc<str>,
    /// As which field manager.
    pub manager: Arc<str>,
}

/// One recorded attempt at an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Which item.
    pub item: ItemKey,
    /// When it ended.
    pub at: Timestamp,
    /// What came of it: sealed beneath the store, clear above.
    pub body: Bytes,
}

/// Checks that must all hold, then effects that are all done.
#[derive(Clone, Debug, Default)]
pub struct Txn {
    /// What must be so.
    pub checks: Vec<Check>,
    /// What to do.
    pub effects: Vec<Effect>,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The key was last written at this revision, or is free.
    Object(ObjectKey, Option<Revision>),
    /// This is the newest claim on the item.
    Fence(Fence),
    /// No object of this kind was written after this revision.
    Unwritten(GroupKind, Revision),
}

/// A change of a transaction.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Writes a state of a key.
    Put(Write),
    /// Frees a key; the bytes are the final state.
    Remove(Write),
    /// Makes a new claim on an item, with a number higher than any before, and sets its work row.
    Claim(ItemKey, Bytes),
    /// Sets the body of a work row, or drops the row.
    Work(ItemKey, Option<Bytes>),
    /// Records an attempt.
    Attempt(Attempt),
    /// Replaces the bytes of a payload if they are still `from`.
    Reseal {
        /// Where.
        shelf: Shelf,
        /// At which place.
        place: u64,
        /// What is there.
        from: Bytes,
        /// What shall be there.
        to: Bytes,
    },
}

/// One write of one key.
#[derive(Clone, Debug)]
pub struct Write {
    /// Whose.
    pub key: ObjectKey,
    /// In clear.
    pub head: Bytes,
    /// Sealed.
    pub payload: Bytes,
    /// Who, why and when.
    pub stamp: Stamp,
}

/// What became of one transaction.
pub type Verdict = Result<Done, Refusal>;

/// The numbers that a transaction was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Of its last object write.
    pub revision: Option<Revision>,
    /// Of its last claim.
    pub claim: Option<u64>,
}

/// A check that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The key was written, or freed, by somebody else.
    Changed {
        /// Which key.
        key: ObjectKey,
        /// Where it is now.
        now: Option<Revision>,
    },
    /// The item was claimed by somebody else.
    Fenced(Fence),
    /// An object of the kind was written.
    Written(GroupKind),
}

/// Where payloads lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// States of objects.
    Objects,
    /// Work rows.
    Work,
    /// Attempts.
    Attempts,
}

/// A payload and whose it is.
#[derive(Clone, Debug)]
pub struct Payload {
    /// Its place on the shelf.
    pub place: u64,
    /// Whose.
    pub owner: Owner,
    /// The bytes.
    pub bytes: Bytes,
}

/// Whose bytes: bound into their encryption, so that they cannot be swapped.
#[derive(Clone, Debug)]
pub enum Owner {
    /// An object's.
    Object(ObjectKey),
    /// An item's.
    Item(ItemKey),
}

/// Why a backend could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The revision asked for is compacted.
    #[error("the revision is compacted")]
    Compacted,
    /// There is no room.
    #[error("the disk is full")]
    Full,
    /// It failed, and what was asked for may or may not have happened.
    #[error("the backend failed")]
    Broken(#[source] crate::error::BoxError),
}

impl Failure {
    /// A failure in words.
    pub fn broken(why: impl Into<String>) -> Self {
        Self::Broken(why.into().into())
    }
}
