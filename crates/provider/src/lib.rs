//! Providers: servers that act on an external system, and the protocols spoken with them.
//!
//! [`Connector`] and [`External`] are how Concert sees a provider, whatever the protocol;
//! [`Provider`] is what an author of one writes.
#![warn(missing_docs)]

mod alpha;
mod answer;
pub mod check;
pub mod client;
mod codec;
mod contract;
pub mod conventions;
mod details;
mod error;
mod handshake;
mod in_process;
mod memory;
mod recorder;
pub mod server;
mod text;
mod tls;
mod wire;

pub use answer::{Change, Created, Deleted, Delta, Lookup, Observation, Plan, PlanAction, Updated};
pub use contract::{
    Call, Changes, Configuration, Connector, Enumerate, External, Found, Founds, Moved, Provider, Token,
};
pub use details::Details;
pub use error::{Class, Effect, Error};
pub use handshake::{Action, Capabilities, ConfigKind, Handshake, Protocol, Reference, Served, WatchedKind};
pub use in_process::{InProcess, Timer};
pub use memory::Memory;
pub use recorder::{Event, Record, Recorder};
pub use tls::Tls;

#[cfg(test)]
mod tests;
