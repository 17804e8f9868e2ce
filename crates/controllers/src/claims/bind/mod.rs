//! Makes a managed resource of a claim and its class, binds the two when it can be used, and lets it go
//! when the claim does. One controller for each pair of claim kind and managed kind.

pub mod configure;
pub mod decide;
mod pass;
mod run;
mod sources;

pub use run::{Binder, controller};
