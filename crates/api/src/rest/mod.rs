//! The REST door: resource types, resources, plugins and events as no8s speaks of them.
//!
//! It is a view: a resource type is a kind in a group of its own, a resource is an object of that kind,
//! and everything is written through the one path that all doors share. `door` says which request is for
//! whom, `routes` is the table of all of them; `types`, `resources`, `events`, `plugins` and `cluster`
//! answer; `auth`, `users`, `roles` and `webhooks` are an annex of it; `admit` is what the write path asks;
//! `draft7` knows schemas, `stream` sends changes as they happen.

pub mod admit;
pub mod auth;
pub mod body;
pub mod call;
mod cluster;
mod door;
pub mod draft7;
pub mod error;
mod events;
#[cfg(test)]
mod fixtures;
pub mod ids;
pub mod index;
mod openapi;
pub mod owners;
mod plugins;
pub mod query;
mod records;
mod resources;
mod roles;
mod routes;
pub(crate) mod stream;
pub mod types;
mod users;
pub mod view;
pub mod webhooks;

pub use admit::Webhooks;
pub use auth::{Accounts, BadAdmin, FirstAdmin};
pub use body::Fields;
pub use call::Call;
pub use cluster::{Company, Node, Seat};
pub use door::{Annex, Parts};
pub use error::{Error, Wrong};
pub use ids::Ids;

pub(crate) use door::{Door, Shared, is_for_us};
pub(crate) use events::is_stream;
