//! The REST door: resource types, resources, plugins and events as no8s speaks of them.
//!
//! It is a view: a resource type is a kind in a group of its own, a resource is an object of that kind,
//! and everything is written through the one path that all doors share.

pub mod body;
pub mod error;
#[cfg(test)]
mod fixtures;
pub mod webhooks;

pub use body::Fields;
pub use error::{Error, Wrong};
