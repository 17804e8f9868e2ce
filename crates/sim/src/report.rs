//! How a life went.

use std::collections::BTreeMap;

use crate::faults::Fault;

/// How one life went.
#[derive(Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Broken promises, in words; empty for a good life.
    pub violations: Vec<String>,
    /// What happened, in order.
    pub trace: Vec<String>,
    /// Equal for two lives that were the same.
    pub fingerprint: u64,
    /// Of what there was how much.
    pub counts: Counts,
}

/// Of what there was how much: a simulation in which nothing happens proves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Things made in the world.
    pub creates: u64,
    /// Things removed from it.
    pub deletes: u64,
    /// Calls of former owners that the world turned away.
    pub fenced: u64,
    /// Deaths of the store with everything in it.
    pub crashes: u64,
    /// Deaths of a process.
    pub kills: u64,
    /// Processes stopped for a while.
    pub freezes: u64,
    /// Processes asked to stop.
    pub stops: u64,
    /// Processes cut off from the store.
    pub cuts: u64,
    /// What else went wrong.
    pub faults: BTreeMap<Fault, u64>,
    /// Tasks polled.
    pub steps: u64,
}
