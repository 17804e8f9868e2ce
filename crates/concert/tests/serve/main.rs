//! `concert serve` as a process, driven by a real kubectl.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod applying;
mod changing;
mod claims;
mod client;
mod cloud;
mod company;
mod conformance;
mod copies;
mod definitions;
mod deleting;
mod durability;
mod explaining;
mod fleet;
mod following;
mod guide;
mod inventory;
mod managed;
mod no8s;
mod operating;
mod outages;
mod plane;
mod planning;
mod reading;
mod relaying;
mod replicas;
mod restarting;
mod sharing;
mod tenancy;
mod truncating;
mod wait;
mod watcher;
mod wire;
