//! The time that leases are measured by.

use tokio::time::Instant;

/// Now.
#[expect(clippy::disallowed_methods, reason = "a lease on the other side of a network runs in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
