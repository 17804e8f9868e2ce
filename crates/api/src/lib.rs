//! All that listens.
//!
//! `listen` accepts connections, `auth` says who calls and what they may do, `kube` answers in the shape
//! of Kubernetes, `rest` in that of no8s, `inventory` for a fleet of clusters. Everything is written through
//! one path, whoever asks.

pub mod audit;
pub mod auth;
pub mod error;
pub mod inventory;
pub mod kube;
pub mod listen;
pub mod mothership;
pub mod relay;
pub mod rest;
pub mod workers;
pub mod write;

pub use error::Error;
