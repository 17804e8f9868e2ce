//! The Kubernetes-shaped API, request by request, over a store in memory.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod apply;
mod delete;
mod discovery;
mod forms;
mod fuzz;
mod guarded;
mod list;
mod objects;
mod openapi;
mod own;
mod patch;
mod refusals;
mod reviews;
mod samples;
#[path = "../shared/mod.rs"]
mod shared;
mod stage;
mod status;
mod watch;
