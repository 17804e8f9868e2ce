//! Leadership: one of several processes works, the others wait to take over.
//!
//! A seat is a record that the holder renews. Nobody compares times of others: a candidate takes over
//! when it has itself seen the record unchanged for as long as the record says it is good for.

mod controllers;
mod election;
mod lease;
mod row;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_store::{Error, Fence};

use crate::members::Authority;

pub use controllers::Controllers;
pub use election::{Config, Election, State};
pub use lease::LeaseSeat;
pub use row::RowSeat;

/// A place that one can hold at a time.
///
/// # Guarantees
/// Of two who take or renew on the ground of the same record, one is refused.
#[async_trait]
pub trait Seat: Send + Sync + 'static {
    /// The record as it is; none if there is none.
    ///
    /// # Errors
    /// Any of the store's.
    async fn look(&self) -> Result<Option<Record>, Error>;

    /// Writes a record on the ground of `seen`.
    ///
    /// # Errors
    /// [`Error::Conflict`], [`Error::AlreadyExists`] or [`Error::Fenced`] when somebody was faster.
    async fn take(&self, seen: Option<&Record>, claim: &Claim) -> Result<Record, Error>;

    /// Writes the record again, so that others see that its holder lives.
    ///
    /// # Errors
    /// As [`Seat::take`]: somebody has taken over.
    async fn renew(&self, held: &Record, claim: &Claim) -> Result<Record, Error>;

    /// Gives the seat free, so that a successor need not wait.
    ///
    /// # Errors
    /// As [`Seat::take`].
    async fn leave(&self, held: &Record) -> Result<(), Error>;
}

/// What a holder says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who; different in every process and every start.
    pub holder: Arc<str>,
    /// How long the record is good for.
    pub lease: Duration,
}

/// What stands on a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Empty if the seat was given free.
    pub holder: Arc<str>,
    /// How long it is good for.
    pub lease: Duration,
    /// Differs with every write. For equality only.
    pub token: Arc<str>,
    /// What fences off former holders, where the store can.
    pub fence: Option<Fence>,
    /// Higher with each holder, where there is no fence: for others than the store, who can compare.
    pub term: Option<u64>,
    /// Seat's own count: of renewals, or of holders.
    pub count: u64,
}

impl Record {
    /// What whoever holds the seat may do.
    fn authority(&self) -> Authority {
        match (&self.fence, self.term) {
            (Some(fence), _) => Authority::Seat(fence.clone()),
            (None, Some(term)) => Authority::Term(term),
            (None, None) => Authority::Alone,
        }
    }
}

/// What a leader does, or a member.
#[async_trait]
pub trait Duty: Send + Sync + 'static {
    /// Called when the seat is taken, or the membership begins.
    fn begin(&self, under: Authority);

    /// Called when it is lost (`is_lost`: stop at once, somebody else has it) or is to be given free:
    /// completes when nothing works any more.
    async fn end(&self, is_lost: bool);
}
