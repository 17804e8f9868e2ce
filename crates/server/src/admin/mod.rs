//! What operators ask of a process: is it alive, is it ready, what does it count.
//!
//! Plain HTTP on addresses of its own. Nothing here changes anything.

mod address;
mod metrics;
mod probes;
mod serve;

pub use address::{Address, AddressError};
pub use metrics::metrics;
pub use probes::{Probes, Readiness, probes};
pub use serve::{BindError, Listener};
