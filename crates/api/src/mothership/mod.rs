//! What can be asked of a mothership, behind `/mothership/v1`: how the fleet stands, that an item runs or
//! stops, and that something has happened in a target cluster.

mod door;
mod events;

pub use door::{Asked, Control, Door, Event, Parts};
