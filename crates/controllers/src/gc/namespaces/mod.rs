//! Namespaces that are being deleted: their contents go first, through their finalizers.

pub mod decide;
mod run;

pub use run::controller;
