//! Managed resources whose claims are gone without having let go of them, as when somebody took the
//! finalizer of a claim away by hand. What a claim does when it goes is done for them here.

pub mod decide;
mod run;

pub use run::{Reclaimer, controller};
