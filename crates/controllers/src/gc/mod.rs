//! What goes with what: owned objects, the contents of namespaces and of definitions, old events; and the
//! names that definitions leave behind.
//!
//! The store only marks: it leaves finalizers and deletion times. Here are the hands that follow up.
//! Each part is a `decide.rs`, a plain function, and a `run.rs`; [`start()`] starts them all. Nothing is
//! kept but what a list brings back, so a crash anywhere costs a list.

mod contents;
pub mod definitions;
pub mod events;
mod finalizers;
mod leaving;
mod names;
pub mod namespaces;
pub mod owners;
mod start;
#[cfg(test)]
mod tests;
pub mod vocabulary;

use std::sync::Arc;

use concert_store::Kind;

pub use start::{Parts, Running, Settings, start};

/// All kinds that are served right now.
pub type Kinds = Arc<dyn Fn() -> Vec<Arc<Kind>> + Send + Sync>;
