//! The REST door, request by request, over a store in memory, beside the Kubernetes-shaped one.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod change;
mod delete;
mod description;
mod doors;
mod events;
mod fuzz;
mod guarded;
mod list;
mod resources;
#[path = "../shared/mod.rs"]
mod shared;
mod stage;
mod types;
