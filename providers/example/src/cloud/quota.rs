//! How many calls an account may make: a token bucket that is told the time.

use std::time::Duration;

use concert_model::Timestamp;
use serde::{Deserialize, Serialize};

/// Size and refill of an account's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Quota {
    /// Calls per second in the long run.
    pub per_second: f64,
    /// Calls at once after a rest.
    pub burst: u32,
}

impl Quota {
    /// Whether the numbers make sense.
    ///
    /// # Errors
    /// Names the field.
    pub fn check(&self) -> Result<(), String> {
        if !(self.per_second.is_finite() && self.per_second > 0.0) {
            return Err("quota.perSecond must be a number above 0".to_owned());
        }
        if self.burst == 0 {
            return Err("quota.burst must be at least 1".to_owned());
        }
        Ok(())
    }
}

/// What one account has left.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    left: f64,
    filled_at: Timestamp,
}

impl Bucket {
    pub(super) fn full(quota: &Quota, now: Timestamp) -> Self {
        Self { left: f64::from(quota.burst), filled_at: now }
    }

    /// Takes one call out, or says when there will be one.
    pub(super) fn take(&mut self, quota: &Quota, now: Timestamp) -> Result<(), Duration> {
        let passed = now.duration_since(self.filled_at).as_secs_f64().max(0.0);
        self.left = (self.left + passed * quota.per_second).min(f64::from(quota.burst));
        self.filled_at = now;
        if self.left >= 1.0 {
            self.left -= 1.0;
            return Ok(());
        }
        // Rounded up, so that a caller who waits exactly so long finds it.
        let wait = Duration::from_secs_f64((1.0 - self.left) / quota.per_second);
        Err(wait + Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn an_empty_bucket_says_when_to_come_back_and_keeps_its_word() {
        let quota = Quota { per_second: 10.0, burst: 2 };
        let mut bucket = Bucket::full(&quota, at(0));
        assert_eq!(bucket.take(&quota, at(0)), Ok(()));
        assert_eq!(bucket.take(&quota, at(0)), Ok(()));
        assert_eq!(bucket.take(&quota, at(0)), Err(Duration::from_millis(101)));
        assert_eq!(bucket.take(&quota, at(101)), Ok(()));
    }

    #[test]
    fn a_rest_fills_no_more_than_the_burst() {
        let quota = Quota { per_second: 10.0, burst: 2 };
        let mut bucket = Bucket::full(&quota, at(0));
        assert_eq!((0..5).filter(|_| bucket.take(&quota, at(60_000)).is_ok()).count(), 2);
    }

    #[test]
    fn a_clock_that_goes_back_takes_nothing_away() {
        let quota = Quota { per_second: 1.0, burst: 1 };
        let mut bucket = Bucket::full(&quota, at(10_000));
        assert_eq!(bucket.take(&quota, at(0)), Ok(()));
    }
}
