//! Definitions that are being deleted: their objects go first, through their finalizers.

pub mod decide;
mod run;

pub use run::controller;
