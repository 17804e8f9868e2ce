//! What the tests of several controllers need.

use std::time::Duration;

use concert_model::Timestamp;
use concert_store::Clock;
use futures_util::future::BoxFuture;

/// Tokio's clock, which tests pause.
#[derive(Clone)]
pub struct PausedClock(tokio::time::Instant);

#[expect(clippy::disallowed_methods, reason = "this is the clock that is handed in")]
impl PausedClock {
    pub fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that is handed in")]
impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap() + self.elapsed()
    }

    fn elapsed(&self) -> Duration {
        tokio::time::Instant::now() - self.0
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
