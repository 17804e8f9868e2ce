//! A clock that stands still until it is moved.

use std::time::Duration;

use concert_model::Timestamp;
use concert_model::time::SignedDuration;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::clock::Clock;

/// Moved by hand; who sleeps wakes when it has been moved far enough.
#[derive(Debug)]
pub struct HandClock {
    elapsed: watch::Sender<Duration>,
}

impl HandClock {
    /// A clock that stands at the start of 2026.
    pub fn new() -> Self {
        Self { elapsed: watch::Sender::new(Duration::ZERO) }
    }

    /// Lets `duration` pass.
    pub fn advance(&self, duration: Duration) {
        self.elapsed.send_modify(|elapsed| *elapsed += duration);
    }
}

impl Default for HandClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        let start = Timestamp::from_second(1_767_225_600).unwrap_or_default();
        let elapsed = SignedDuration::try_from(self.elapsed()).unwrap_or_default();
        start.checked_add(elapsed).unwrap_or(start)
    }

    fn elapsed(&self) -> Duration {
        *self.elapsed.borrow()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut elapsed = self.elapsed.subscribe();
        let due = self.elapsed() + duration;
        Box::pin(async move {
            if elapsed.wait_for(|now| *now >= due).await.is_err() {
                // The clock is gone and will never be moved again.
                std::future::pending::<()>().await;
            }
        })
    }
}
