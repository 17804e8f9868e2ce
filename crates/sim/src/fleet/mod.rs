//! A fleet of clusters: the shipped mothership over an inventory, and hosts of three reconcilers that die,
//! freeze and report late.
//!
//! Each reconciler makes one thing for each entry, out of what the one before it wrote into the inventory;
//! nobody says in which order. Bugs can be planted: `run.rs` has the hosts, `inventory.rs` the shipped door
//! through which they read and write, `stores.rs` what lies between the mothership and the store, `check.rs`
//! what must hold. In every third life the inventory has a store of its own; in two of four nobody has declared
//! what wakes it, and hosts come back only for what they said they wait for: with watches that lose events, and
//! with watches that do not.

mod check;
mod inventory;
mod play;
mod run;
mod stores;
mod world;

pub use play::FleetPlay;

/// What can be wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Changes of sections get lost on the way to the mothership.
    LosesChanges,
    /// The store lets those write who were shut out.
    NoFence,
    /// Tokens do not say for which claim they are.
    NoSectionFence,
    /// Hosts decide on what they read first, and say that they decided on what they read last.
    ReadsTheFuture,
    /// Hosts say that they are done with entries that go, and are not.
    LeavesThingsBehind,
}
