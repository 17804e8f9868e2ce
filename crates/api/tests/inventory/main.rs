//! The inventory, request by request, over a store in memory, beside the other doors.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]
// A request goes through many hands, each a future inside the next.
#![recursion_limit = "256"]

mod access;
mod bad;
mod canary;
mod entries;
mod grants;
mod kube;
mod mothership;
mod sections;
#[path = "../shared/client.rs"]
#[allow(dead_code, reason = "the suites of the other doors use all of it")]
mod shared;
mod stage;
mod watch;
