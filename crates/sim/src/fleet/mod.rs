//! A fleet of clusters: the shipped mothership over an inventory, and hosts of three reconcilers that die,
//! freeze and report late.
//!
//! Each reconciler makes one thing for each entry, out of what the one before it wrote into the inventory;
//! nobody says in which order. Bugs can be planted: `run.rs` has the hosts, `stores.rs` what lies between
//! them and the store, `check.rs` what must hold.

mod check;
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
    /// Hosts say that they have read what they have not.
    ReadsTheFuture,
    /// Hosts say that they are done with entries that go, and are not.
    LeavesThingsBehind,
}
