//! A provider with a simulated cloud behind it: for tests, demonstrations and measurements.
//!
//! [`cloud`] is the cloud, [`Example`] the provider that serves it, [`control`] the port through which
//! tests change it behind the provider's back and other programs call the same cloud.
#![warn(missing_docs)]

mod claimed;
pub mod cloud;
pub mod control;
pub mod flags;
mod kinds;
mod provider;

pub use claimed::CLAIMED_CRDS;
pub use kinds::{CRDS, claimed, served};
pub use provider::Example;
