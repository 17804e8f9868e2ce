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
