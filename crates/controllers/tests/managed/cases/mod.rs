//! The cases, by theme. Each is named after the rule that it checks.

pub mod connecting;
pub mod contents;
pub mod creating;
pub mod deleting;
pub mod doubting;
pub mod grace;
pub mod intending;
pub mod misbehaving;
pub mod observing;
pub mod orphaning;
pub mod outcomes;
pub mod pausing;
pub mod planning;
pub mod policies;
pub mod polling;
pub mod publishing;
pub mod reading;
pub mod references;
pub mod registry;
pub mod requests;
pub mod saving;
pub mod updating;
