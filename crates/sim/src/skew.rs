//! A clock that is not like the others: it runs faster or slower, and shows another time of day.

use std::sync::Arc;
use std::time::Duration;

use concert_model::Timestamp;
use concert_store::{Chance, Clock};
use futures_util::future::BoxFuture;

use crate::executor::Executor;

/// How much faster or slower than the true time a clock may run.
pub(crate) const DRIFT: f64 = 0.1;
/// How far its time of day may be off.
const OFFSET_SECONDS: u64 = 600;

/// The clock of one process.
pub struct Skewed {
    executor: Executor,
    rate: f64,
    offset: Duration,
}

impl Skewed {
    /// One that is off by as much as `chance` says.
    pub fn new(executor: Executor, chance: &Chance) -> Arc<Self> {
        let rate = 1.0 + DRIFT * (2.0 * chance.fraction() - 1.0);
        Arc::new(Self { executor, rate, offset: Duration::from_secs(chance.below(OFFSET_SECONDS)) })
    }
}

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        let now = self.executor.now();
        now.checked_add(self.offset).unwrap_or(now)
    }

    fn elapsed(&self) -> Duration {
        self.executor.elapsed().mul_f64(self.rate)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // Rounded up: who wakes finds that the time has passed.
        let real = Duration::try_from_secs_f64(duration.as_secs_f64() / self.rate).unwrap_or(Duration::MAX);
        self.executor.sleep(real.saturating_add(Duration::from_nanos(1_000)))
    }
}
