//! The simulated cloud: what it does, without waiting and without a clock of its own.
//!
//! [`Cloud`] is told the time and draws from the [`Chance`](concert_store::Chance) it was given, so a
//! seed replays it. [`Truth`] is what really happened, whatever the callers were told; [`Api`] is the
//! cloud as its clients see it, with latency.

mod api;
mod fault;
mod file;
mod quota;
mod settings;
mod simulated;
#[cfg(test)]
mod tests;
mod thing;
mod truth;

pub use api::{Api, Change};
pub use fault::Fault;
pub use file::ReadError;
pub use quota::Quota;
pub use settings::Settings;
pub use simulated::{Cloud, Create, Lookup};
pub use thing::{Account, Owner, State, Thing, ThingKey};
pub use truth::{Double, Entry, Event, Summary, Truth};
