//! Watch → coalescing keyed queue → workers → back-off, requeue or park.
//!
//! Knows no kind: a controller is a name, a [`Reconciler`] and [sources](Source) of keys. Time,
//! chance and tasks are handed in, so that all of it runs on a Tokio runtime as well as on the one
//! thread of a simulation.
#![warn(missing_docs)]

mod alarm;
pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod controller;
pub mod engine;
pub mod follow;
pub mod leader;
pub mod members;
pub mod metrics;
pub mod outcome;
pub mod queue;
pub mod reconciler;
pub mod shutdown;
pub mod source;
mod spread;
pub mod tasks;
pub mod watched;
pub mod workers;

#[cfg(test)]
mod fixtures;

pub use backoff::Backoff;
pub use breaker::Breakers;
pub use budget::{Budget, Budgets};
pub use controller::{Controller, Durability, EnqueueError, Handle, ItemState, Phase, Summary, Versions};
pub use engine::{Engine, StartError};
pub use follow::{Change, Follow};
pub use members::Authority;
pub use metrics::Metrics;
pub use outcome::{Failure, Outcome, OutcomeKind, Seen, Wait};
pub use queue::{Full, Lane, Reason, Reasons};
pub use reconciler::{Labels, Reconciler, Request};
pub use shutdown::Shutdown;
pub use source::{Objects, Source};
pub use tasks::{OnExit, Spawn, Tasks, TokioSpawn};
pub use watched::Watched;
