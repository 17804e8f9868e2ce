//! Checks of the source tree itself: what no compiler and no lint sees.
//!
//! Every check is a plain function from a [`Tree`] (or from what cargo says about the dependencies)
//! to a list of findings, each one line a person can act on. `tests/tree.rs` applies all of them to
//! this repository; the tests below each check prove that it can fail.

pub mod dependencies;
pub mod direction;
pub mod image;
pub mod length;
pub mod licence;
pub mod links;
pub mod map;
pub mod names;
pub mod reach;
mod tokens;
pub mod tree;
pub mod words;

pub use tree::Tree;
