//! Puts stores, engine, controllers and surfaces together into programs that run.
//!
//! Only this crate names backends and reads the environment. What a program does is in the crates
//! below; here is which parts it has, in which order they start, and in which they stop.
#![warn(missing_docs)]

pub mod admin;
pub mod config;
pub mod explain;
pub mod managed;
pub mod serve;
mod upkeep;

pub use concert_engine::Shutdown;
pub use concert_engine::members::Share;
pub use concert_store::{Chance, Clock, Event, SystemClock};
