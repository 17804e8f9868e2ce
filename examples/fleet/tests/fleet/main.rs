//! A fleet of clusters: real processes, two real kube-apiservers, and nobody who tells the order.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fleet;
mod killed;
mod plane;
mod process;
mod programs;
mod secrets;
mod settles;
mod use_cases;
mod wait;
mod web;
mod world;
