//! Gives claims without a class the one that the policy in their namespace names; and, since it is the one
//! that sees all class kinds, says on claims that nobody can do anything about what is missing.

pub mod decide;
mod run;

pub use run::{DefaultClass, controller};
