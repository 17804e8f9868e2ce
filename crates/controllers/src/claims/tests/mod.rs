//! The whole concert on a store in memory, with the simulated cloud.

mod binding;
mod choosing;
mod declaring;
mod leaving;
mod planning;
mod reclaiming;
mod secrets;
mod stranded;
mod strangers;
mod world;
