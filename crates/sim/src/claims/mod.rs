//! The concert of claims against a simulated cloud, through a bad connection.
//!
//! The shipped kinds and definitions, the shipped controllers. Buckets have two implementations, so that
//! two schedulers race for each claim; users change their minds about claims, classes and policies all the
//! while, and meddle with secrets. They are in two namespaces, and forge what might get them the secrets of
//! the other. `witness.rs` sees every secret at the moment in which it is written.

mod check;
mod play;
mod stores;
pub mod sweep;
mod witness;

pub use play::ClaimsPlay;

/// What can be wrong on purpose, to prove that it would be noticed. `stores.rs` has it lie between the
/// controllers and what they write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// What was let go of is not deleted.
    KeepsWhatItShouldDelete,
    /// A source that is said to have agreed has not.
    DropsConsent,
    /// Managed resources have names that nobody can find again.
    RandomNames,
}
