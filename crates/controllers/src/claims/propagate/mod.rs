//! Connection secrets: from a managed resource to its claim, once both have said yes, and every later
//! change too.
//!
//! A secret that is copied says by uid whom it is from; the one it is copied from says by uid whom it may
//! go to. Only we write the second, and only for a claim that is bound, so who can write secrets in one
//! namespace gets nothing of another.

pub mod decide;
mod run;

pub use run::{Players, Propagator, controller, kinds};
