//! The managed reconciler as a library.
//!
//! Connects to provider servers over gRPC, starts a controller for every kind they serve once it is
//! defined, and drives each object of it with the standard algorithm for managed resources. Runs on a
//! Kubernetes API server or, unchanged, on the embedded store.
//!
//! ```no_run
//! use concert_server::Shutdown;
//! use concert_server::managed::{Controller, ControllerConfig, Options, ProviderConfig, ResourceType};
//!
//! # async fn example() -> Result<(), concert_server::managed::Error> {
//! let config = ControllerConfig {
//!     providers: vec![ProviderConfig {
//!         name: "example-provider".into(),
//!         endpoint: "localhost:50051".into(),
//!         resource_types: vec![ResourceType {
//!             api_version: "example.crossplane.io/v1alpha1".into(),
//!             kind: "ExampleResource".into(),
//!             ..ResourceType::default()
//!         }],
//!         ..ProviderConfig::default()
//!     }],
//! };
//! let options = Options::new().with_leader_election(true);
//! let shutdown = Shutdown::new();
//! // Somebody else keeps a clone of `shutdown` and asks for the end.
//! Controller::new(config, options).run(&shutdown).await
//! # }
//! ```
//!
//! Logs go to whatever `tracing` subscriber the program has installed, or to the one of
//! [`Options::with_logger`].

pub(crate) mod claimed;
pub mod config;
mod controller;
mod duty;
mod error;
mod leader;
mod metrics;
mod objects;
mod options;
pub mod plan;
pub(crate) mod provider;
mod storage;
mod validate;

#[cfg(test)]
mod tests;

pub use config::{ControllerConfig, ProviderConfig, RateLimit, ResourceType};
pub use controller::{Controller, Running};
pub use error::Error;
pub use options::{LEADER_ELECTION_ID, Options};
pub use provider::Dial;
pub use storage::Storage;

pub(crate) use duty::Reconciling;
