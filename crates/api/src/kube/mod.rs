//! The Kubernetes-shaped API.
//!
//! [`Api::handle`] takes a request and gives an answer; whoever listens calls it. `path` and `params` say
//! what is asked for, `accept` in which form, `content` reads what was sent. `catalogue` knows what is
//! served; `objects`, `list`, `watch` and `change` do the work; `discovery` and `openapi` describe it.

mod accept;
pub(crate) mod answer;
mod api;
mod catalogue;
mod change;
pub(crate) mod content;
mod discovery;
mod extensions;
mod hash;
mod list;
mod objects;
mod openapi;
pub(crate) mod params;
pub(crate) mod path;
mod protobuf;
mod reviews;
mod splice;
mod statics;
mod table;
mod token;
mod watch;

pub use answer::{Body, Frames};
pub use api::{Api, Limits, Parts};
pub use content::BoxError;
pub use extensions::Extensions;
