//! Counts who uses a configuration, and keeps it until nobody does.

pub mod decide;
mod run;
#[cfg(test)]
mod tests;

pub use run::{UsageReconciler, controller};
