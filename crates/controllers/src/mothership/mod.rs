//! The mothership: schedules the component reconcilers of a fleet.
//!
//! Each reconciler on each entry of the inventory is one item of the engine, lent to the reconciler's
//! hosts by the worker protocol. What queues, consolidates, retries, backs off and reports is here, once;
//! what a component needs and whether it is there only its reconciler knows. There are no priorities and
//! no sequences: order comes from `not_ready` and from what is written.
//!
//! `component` is what a reconciler says of itself; `sections` knows what the inventory is at; `triggers`
//! turns changes into wake-ups, `debounce` decides how soon; `decide` gives reports a meaning and
//! `lending` carries it out; `targets` watches in the clusters themselves; `items` are what is told of
//! each; `aggregate` and `entries` make one status of many; `fleet` is what can be asked; `run` starts and
//! stops it all.

mod aggregate;
mod component;
mod debounce;
mod decide;
mod entries;
mod fleet;
mod items;
mod lending;
mod metrics;
mod run;
mod sections;
mod targets;
mod triggers;
pub mod vocabulary;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use concert_engine::workers::Board;
use concert_engine::{Engine, Tasks};
use concert_store::{Chance, Clock, Fence, Store, Work};

pub use aggregate::words_for;
pub use component::{Component, Interest, Watch};
pub use fleet::{Denied, Entry, Event, Failing, Item, Overview, Slow, Writers};
pub use run::{Running, start};
pub use targets::{CREDENTIALS, Reach, Unreachable};

/// What the mothership needs.
#[derive(Clone)]
pub struct Parts {
    /// Runs controllers over the mothership's own store.
    pub engine: Engine,
    /// Runs controllers over the inventory; the same where both are one.
    pub fleet: Engine,
    /// Where workers and items are.
    pub store: Arc<dyn Store>,
    /// Where entries and sections are.
    pub inventory: Arc<dyn Store>,
    /// Where outcomes are kept over a restart.
    pub work: Arc<dyn Work>,
    /// Where hosts ask for work.
    pub board: Board,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes jitter.
    pub chance: Chance,
    /// Owns what follows the inventory.
    pub tasks: Tasks,
    /// The claim of whoever leads, where several could; without it each controller makes its own.
    pub fence: Option<Fence>,
    /// The way to target clusters; without it only agents tell what happens there.
    pub reach: Option<Arc<dyn Reach>>,
    /// How often everything is listed again although watches go on.
    pub relist: Duration,
}

/// What informers do by default: a guard against a watch that broke its promise.
pub const RELIST: Duration = Duration::from_secs(10 * 60 * 60);
