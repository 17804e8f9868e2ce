//! The managed reconciler against a simulated cloud, through a bad connection.
//!
//! Nothing of it is made for the simulation: the registry, the controllers and the provider are those
//! that are shipped; only the way between them is ours.

mod backdrop;
mod play;
mod wire;

pub use backdrop::{Backdrop, parts, registry};
pub use play::ManagedPlay;
pub use wire::Wire;

/// What can be wrong on purpose, to prove that it would be noticed. `wire.rs` has it lie about what became of a
/// create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A create whose answer was lost is said to have certainly not happened.
    DeniesDoubt,
    /// A lookup finds certainly nothing, whatever is there.
    FindsNothing,
}
