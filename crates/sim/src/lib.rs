//! The whole control plane under virtual time, with injected faults and a seed.
//!
//! Not shipped. The same seed gives the same life; a bad one is replayed with `make replay SEED=n`.

pub mod claims;
mod company;
pub mod executor;
pub mod faults;
pub mod fleet;
pub mod managed;
pub mod ownership;
pub mod play;
mod report;
pub mod scenario;
mod skew;
pub mod toy;
pub mod world;
