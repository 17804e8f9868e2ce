//! A provider whose cloud is this machine.
//!
//! [`Redis`] starts and keeps real Redis servers, [`Postgres`] makes databases in a real PostgreSQL server;
//! [`Local`] serves both. What must outlive the process is in one [`DataFolder`].
#![warn(missing_docs)]

mod data_folder;
mod fields;
pub mod flags;
mod found;
mod kinds;
mod local;
mod owner;
mod plan;
mod postgres;
mod redis;
mod status;
mod tokens;

pub use data_folder::DataFolder;
pub use kinds::CRDS;
pub use local::Local;
pub use postgres::Postgres;
pub use redis::{Redis, Settings};

type Result<T, E = concert_provider::Error> = std::result::Result<T, E>;
