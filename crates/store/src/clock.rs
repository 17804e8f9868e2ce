//! Time, handed in.
//!
//! Nothing in Concert reads a clock of its own accord: production hands in [`SystemClock`], the
//! simulation one that it moves itself.

use std::time::Duration;

use concert_model::Timestamp;
use futures_util::future::BoxFuture;

/// Tells the time and waits.
///
/// # Guarantees
/// [`Clock::elapsed`] never goes back; [`Clock::now`] may, when an operator sets the machine's clock,
/// so only what people read is stamped with it and only `elapsed` is ever compared.
pub trait Clock: Send + Sync + 'static {
    /// The time of day.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment of this process.
    fn elapsed(&self) -> Duration;

    /// Completes after `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The machine's clock. Needs a Tokio runtime with time enabled for [`Clock::sleep`].
#[derive(Clone, Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// The machine's clock, its `elapsed` counted from now.
    #[expect(clippy::disallowed_methods, reason = "this is the seam that everybody else is sent to")]
    pub fn new() -> Self {
        Self { started: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the seam that everybody else is sent to")]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // A machine whose clock stands before 1970 or after 9999 gets the epoch.
        Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
