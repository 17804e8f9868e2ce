//! Coalescing queue of object keys.
//!
//! Watch events come in at any rate; workers take one key at a time. A key waits at most once,
//! runs at most once at a time, and keeps the earliest of the times it was asked for.
//!
//! Plain data: no waiting, no lock, no clock. Whoever owns it hands in the time.

mod coalesce;
mod index;
mod item;
mod lane;
mod ready;
mod reasons;
mod slab;
mod timers;

#[cfg(test)]
mod model_tests;

pub use coalesce::Queue;
pub use item::{Depth, Full, Item, ItemId, Next, Placed, Stage, View};
pub use lane::Lane;
pub use reasons::{Reason, Reasons};
