//! What every store must do, as cases that any implementation can run.
//!
//! [`core`] uses nothing but the [`Store`](crate::Store) trait and holds for our own stores and for a
//! real Kubernetes API server alike; [`own`] holds for our own stores only. Each case is a function
//! named after the sentence it checks. A suite macro makes one test of each:
//!
//! ```text
//! concert_store::core_suite!(subject);
//!
//! fn subject() -> impl AsRef<concert_store::conformance::Subject> { … }
//! ```
#![allow(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the panic says where")]

mod case;
pub mod core;
mod expect;
mod hand_clock;
pub mod linear;
mod load;
pub mod own;
mod spread;
mod subject;
mod widgets;

pub use case::bounded;
pub use expect::{deleted, invalid_fields, next, next_change};
pub use hand_clock::HandClock;
pub use load::{Acknowledged, Observer};
pub use spread::Spread;
pub use subject::{Own, Subject};
pub use widgets::{Definition, Widgets};
