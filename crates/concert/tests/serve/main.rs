//! `concert serve` as a process, driven by a real kubectl.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod applying;
mod changing;
mod claims;
mod client;
mod cloud;
mod conformance;
mod copies;
mod definitions;
mod deleting;
mod durability;
mod explaining;
mod managed;
mod plane;
mod planning;
mod reading;
mod wait;
mod wire;
