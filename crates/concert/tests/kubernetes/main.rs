//! The managed reconciler as a process, on a real Kubernetes, with real providers and real kubectl.
//!
//! One cluster for all tests, one test at a time: there is one definition of each kind.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod claims;
mod claims_told;
mod crashes;
mod declared;
mod deployed;
mod election;
mod leaving;
mod library;
mod life;
mod outage;
mod planning;
mod policies;
mod process;
mod web;
mod wire;
mod world;
