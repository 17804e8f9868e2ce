//! What goes in and out of the queue, and what can be asked of it.

use std::time::Duration;

use concert_model::ObjectKey;

use super::lane::Lane;
use super::reasons::{Reason, Reasons};

/// Which item, for as long as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub(super) u32);

/// A key that was taken to be run.
#[derive(Clone, Debug)]
pub struct Item {
    /// For [`super::Queue::finish`].
    pub id: ItemId,
    /// Which key.
    pub key: ObjectKey,
    /// The lane it was taken from.
    pub lane: Lane,
    /// Why it runs.
    pub reasons: Reasons,
    /// When it was due.
    pub due: Duration,
}

/// What is to become of a key that has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It stays known and waits to be added.
    Rest,
    /// It is added again.
    At(Lane, Reason, Duration),
    /// It was not run after all: it is due at once, in the lane and for the reasons it was taken with.
    Back,
    /// It is dropped, unless it was added meanwhile.
    Forget,
}

/// Where a key went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It can be taken.
    Ready,
    /// It is due at that time and was not, or later, before.
    Later(Duration),
    /// Nothing changed for those who wait for work.
    Merged,
}

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing is to be done.
    Idle,
    /// It waits for a worker.
    Ready,
    /// It waits for its time.
    Delayed,
    /// A worker has it.
    Running,
}

/// What the queue knows of one key.
#[derive(Clone, Debug)]
pub struct View<'a, T> {
    /// Which.
    pub key: &'a ObjectKey,
    /// Where it is.
    pub stage: Stage,
    /// Whether it is held back.
    pub is_paused: bool,
    /// The lane it runs or waits in; none if it does neither.
    pub lane: Option<Lane>,
    /// When it is to run (again).
    pub due: Option<Duration>,
    /// Since when it runs.
    pub running_since: Option<Duration>,
    /// Why it runs or waits.
    pub reasons: Reasons,
    /// The owner's note.
    pub note: &'a T,
}

/// How many keys are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Can be taken, by lane.
    pub ready: [usize; Lane::ALL.len()],
    /// Due later.
    pub delayed: usize,
    /// Taken.
    pub running: usize,
    /// All that are known.
    pub known: usize,
}

/// The queue knows as many keys as it may. Keys that it knows already are never refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full with {capacity} items")]
pub struct Full {
    /// How many it may know.
    pub capacity: usize,
}
