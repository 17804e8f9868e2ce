//! A client of any Kubernetes-shaped API: Concert's own or a real kube-apiserver's.
//!
//! It only speaks HTTP. Where to and as whom is in `connection`; one request and its answer in
//! `session`; which kinds there are in `discovery`.

pub mod apply;
mod connection;
pub mod diff;
mod discovery;
mod error;
pub mod kubeconfig;
mod session;
mod target;
pub mod wait;
mod watch;

pub use connection::{Connection, Flags, Places};
pub use discovery::{Kinds, Resource};
pub use error::Error;
pub use session::{Ask, Session};
pub use target::Target;
pub use watch::{Event, Watch};
