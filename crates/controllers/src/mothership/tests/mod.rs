//! The mothership over a store of its own and an inventory of its own, with hosts that do as they are told.

mod deletion;
mod outcomes;
mod restarts;
mod targets;
mod triggers;
mod world;
