//! `concert serve`: a control plane in one folder, or one of several replicas on a database.
//!
//! Store, engine, controllers and an API on one port, in one process. [`Layer`] is what it is told,
//! [`DataFolder`] what it keeps.

mod claimed;
mod config;
pub mod copies;
mod data;
mod declared;
mod definitions;
mod error;
mod hands;
mod inventory;
mod knowledge;
mod logins;
mod members;
mod migrate;
mod mothership;
mod only;
mod plugins;
mod posts;
mod run;
mod storage;
mod targets;
mod way_in;
mod workers;

#[cfg(test)]
mod tests;

pub use config::{ADMIN_LISTEN, Config, LISTEN, Layer, Plugins};
pub use data::{DataFolder, Entry};
pub use error::Error;
pub use logins::{Logins, Secrets};
pub use members::Sharing;
pub use migrate::{advance, migrate};
pub use only::{Elsewhere, Only};
pub use run::{Plane, Running};
pub use storage::{Storage, StoreUrl};
