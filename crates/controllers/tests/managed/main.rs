//! The managed reconciler's conformance: each line of the checklist is a case, and each case runs on
//! our own store and on a real Kubernetes API server.
#![allow(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the panic says where")]

mod bench;
mod cases;
mod definition;
mod faulty;
mod line;
mod scripted;
mod stores;
mod suite;
mod town;
