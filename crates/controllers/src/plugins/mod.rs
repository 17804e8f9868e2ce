//! Workers that reconcile elsewhere: who is in charge of which resource, and what their reports mean.
//!
//! A worker is an object. For each kind that it handles there is a controller whose items are lent to
//! the worker's hosts: `decide.rs` says which there should be, `run.rs` starts and stops them while
//! workers and types come and go, `lifecycle.rs` gives reports and silence their meaning, and
//! `history.rs` writes down what was tried.

mod decide;
mod history;
mod lifecycle;
mod run;
mod worker;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use concert_engine::Engine;
use concert_engine::workers::Board;
use concert_model::no8s::Rules;
use concert_store::{Chance, Clock, Store, Work};

use crate::gc::Kinds;

pub use decide::{Target, controllers_of, wanted};
pub use history::{History, item_of};
pub use lifecycle::{LEASES, Lifecycle};
pub use run::{CONTROLLER, Running, start};
pub use worker::{Handle, WORKER_GROUP, WORKER_KIND, WORKER_VERSION, Worker, worker_kind};

/// What the controllers of workers need.
#[derive(Clone)]
pub struct Parts {
    /// Runs controllers.
    pub engine: Engine,
    /// Where objects live.
    pub store: Arc<dyn Store>,
    /// Where claims are counted.
    pub work: Arc<dyn Work>,
    /// Where attempts are written down.
    pub history: Arc<dyn History>,
    /// Where hosts ask for work.
    pub board: Board,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes jitter.
    pub chance: Chance,
    /// Tells which kinds there are; asked again whenever a definition changes.
    pub kinds: Kinds,
    /// How long waits are.
    pub rules: Rules,
}
