//! The concert of claims against a simulated cloud, through a bad connection.
//!
//! The shipped kinds and definitions, the shipped controllers. Buckets have two implementations, so that
//! two schedulers race for each claim; users change their minds about claims, classes and policies all the
//! while.

mod check;
mod play;

pub use play::ClaimsPlay;
