//! `concert serve`: a control plane in one folder.
//!
//! Store, engine, controllers and an API on one port, in one process. [`Layer`] is what it is told,
//! [`DataFolder`] what it keeps.

mod claimed;
mod config;
pub mod copies;
mod data;
mod declared;
mod error;
mod hands;
mod knowledge;
mod logins;
mod plugins;
mod run;
mod way_in;
mod workers;

#[cfg(test)]
mod tests;

pub use config::{ADMIN_LISTEN, Config, LISTEN, Layer, Plugins};
pub use data::{DataFolder, Entry};
pub use error::Error;
pub use logins::{Logins, Secrets};
pub use run::{Plane, Running};
