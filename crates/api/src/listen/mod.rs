//! Connections: plain or TLS, bounded in number, size and time.
//!
//! `listener` accepts, `connection` speaks HTTP on one of them, `request` is what every request goes
//! through before the service sees it. `limits` says how much there may be of everything, `quota` counts
//! it, `pace` tells slow from idle, `browser` keeps websites away from a server without authentication,
//! `tls` has the certificates.

mod body;
mod browser;
mod connection;
mod limits;
mod listener;
mod pace;
mod quota;
mod refuse;
mod request;
pub mod tls;

pub use body::{BodyError, Inbound, Outbound};
pub use limits::{Limits, Rate};
pub use listener::{Config, ListenError, Listener, Security};
pub use request::Peer;

#[cfg(test)]
mod tests;
