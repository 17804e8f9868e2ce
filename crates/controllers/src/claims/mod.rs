//! The concert: what applications claim, what classes make of it, and who does what in turn.
//!
//! A [`definition`] says which kinds play together; a [`Registry`](registry::Registry) starts and stops
//! the controllers for it. [`policy`] and [`schedule`] find a class for a claim, [`bind`] makes a managed
//! resource of the two and binds it, [`propagate`] keeps the claim's secret up to date, [`reclaim`] lets go
//! of what a claim has left behind. They meet only in
//! the objects: what a claim says ([`way`]) tells whose turn it is, and no two have the same turn.

pub mod bind;
pub mod definition;
pub mod ensemble;
mod hands;
mod parting;
pub mod plan;
pub mod policy;
pub mod propagate;
pub mod reclaim;
pub mod reference;
pub mod registry;
pub mod schedule;
#[cfg(test)]
mod tests;
pub mod verdict;
pub mod vocabulary;
mod waiting;
pub mod way;

use std::time::Duration;

pub use hands::Hands;

/// How long one pass may take.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// How often claims are looked at, and everything is listed, although nothing seems to change: what a
/// read that was too old has hidden is found then.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// A look at each claim, which writes nothing where all is well.
    pub poll: Duration,
    /// A list of everything.
    pub relist: Duration,
}

/// A look at each claim, unless somebody knows better.
const POLL: Duration = Duration::from_secs(10 * 60);
