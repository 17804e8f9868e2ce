//! A real Kubernetes for tests: etcd and kube-apiserver on loopback, in a directory of their own; a real
//! PostgreSQL; an authority for certificates; and a network that can be cut.
//!
//! ```no_run
//! let Some(cluster) = concert_testbed::Cluster::shared() else { return };
//! cluster.kubectl(&["get", "namespaces"]).unwrap();
//! ```
//!
//! The programs are those that `scripts/testbed` builds. Without them, and without Go to build them
//! with, there is no cluster and tests return early; on CI that is a failure.
#![warn(missing_docs)]

mod authority;
mod certificates;
mod cluster;
pub mod hold;
mod network;
mod postgres;
mod programs;
mod wait;

pub use authority::{Authority, Pair};
pub use cluster::{Cluster, Options};
pub use network::Network;
pub use postgres::{Postgres, Session};
pub use programs::{example, helm, kubectl, program, workspace};
