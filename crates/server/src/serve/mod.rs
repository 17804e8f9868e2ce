//! `concert serve`: a control plane in one folder.
//!
//! Store, engine, controllers and an API on one port, in one process. [`Layer`] is what it is told,
//! [`DataFolder`] what it keeps.

mod config;
pub mod copies;
mod data;
mod error;
mod hands;
mod knowledge;
mod run;
mod way_in;

pub use config::{ADMIN_LISTEN, Config, LISTEN, Layer};
pub use data::{DataFolder, Entry};
pub use error::Error;
pub use run::{Plane, Running};
