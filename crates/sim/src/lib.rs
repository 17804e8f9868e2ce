//! The whole control plane under virtual time, with injected faults and a seed.
//!
//! Not shipped. The same seed gives the same life; a bad one is replayed with `make replay SEED=n`.

pub mod claims;
pub mod executor;
pub mod faults;
pub mod fleet;
pub mod managed;
pub mod play;
pub mod scenario;
mod skew;
pub mod toy;
pub mod world;
