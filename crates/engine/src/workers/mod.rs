//! Remote workers: runs whose hands are elsewhere.
//!
//! A controller whose reconciler is [`Offers`] runs an item by lending it to a host that asked for
//! work, and waiting for its report or the end of its lease. So the queue, coalescing, lanes, re-runs,
//! due times and metrics of remote work are those of any other. Runs start only on [`Demand`]: as long
//! as no host asks, items stay in the queue, in their order. The [`Board`] is where hosts and runs meet.

mod board;
mod claim;
mod demand;
mod lease;
mod meaning;
mod metrics;
mod offers;
mod pool;

#[cfg(test)]
mod tests;

pub use board::{Board, HostView, PoolView, Terms};
pub use claim::{Ask, Claimed};
pub use demand::{Demand, Permit};
pub use lease::{Leased, Report, Stale};
pub use meaning::{Meaning, Offer, Prepared};
pub use offers::Offers;
