//! A fleet of clusters: the shipped mothership over an inventory, and hosts of three reconcilers that die,
//! freeze and report late.
//!
//! Each reconciler makes one thing for each entry, out of what the one before it wrote into the inventory;
//! nobody says in which order. Bugs can be planted: `run.rs` has the hosts, `inventory.rs` the shipped door
//! through which they read and write, `stores.rs` what lies between the mothership and the store, `check.rs`
//! what must hold. In every third life the inventory has a store of its own; in every second nobody has declared
//! what wakes it, and hosts come back only for what they said they wait for.

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
    /// Hosts say that they have read what they have not.
    ReadsTheFuture,
    /// Hosts say that they are done with entries that go, and are not.
    LeavesThingsBehind,
}
