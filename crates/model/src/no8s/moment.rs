//! What a transition must be told, since it reads no clock and draws no lot.

use std::time::Duration;

use crate::time::{SignedDuration, Timestamp};

/// How long is waited after what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// After the first failure; doubles with each one.
    pub backoff_base: Duration,
    /// Never more than this, before jitter.
    pub backoff_max: Duration,
    /// The wait is longer or shorter by up to this part of it.
    pub jitter: f64,
    /// How often what is ready is looked at.
    pub drift: Duration,
    /// How often what is neither ready nor failed is looked at, if the worker does not say.
    pub interval: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            backoff_base: Duration::from_secs(60),
            backoff_max: Duration::from_secs(3600),
            jitter: 0.1,
            drift: Duration::from_secs(300),
            interval: Duration::from_secs(60),
        }
    }
}

impl Rules {
    /// The wait after a failure that `retries` others came before. `draw` is from 0 up to 1.
    pub fn backoff(&self, retries: u64, draw: f64) -> Duration {
        let doublings = u32::try_from(retries.min(10)).unwrap_or(10);
        let plain = self.backoff_base.saturating_mul(1 << doublings).min(self.backoff_max);
        let factor = 1.0 + self.jitter.clamp(0.0, 1.0) * (2.0 * draw.clamp(0.0, 1.0) - 1.0);
        Duration::try_from_secs_f64(plain.as_secs_f64() * factor).unwrap_or(plain)
    }
}

/// When something is reported, of which generation, and how long waits are.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time of day.
    pub now: Timestamp,
    /// The generation that the worker was given. Standard conditions carry it.
    pub claimed: i64,
    /// Failures in a row when the resource was claimed or, by who has claimed nothing, first read. What is
    /// said from there on makes them one more at most, however often and by how many it is said.
    pub retries: u64,
    /// How long waits are.
    pub rules: Rules,
    /// From 0 up to 1, for jitter.
    pub draw: f64,
}

impl Moment {
    /// The time of day after `wait`; the end of time if that is later.
    pub fn after(&self, wait: Duration) -> Timestamp {
        let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
        self.now.checked_add(wait).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_bound_and_jitter_comes_after_it() {
        let rules = Rules::default();
        let seconds = |retries, draw| rules.backoff(retries, draw).as_secs_f64().round();
        let middle: Vec<f64> = (0..8).map(|retries| seconds(retries, 0.5)).collect();
        assert_eq!(middle, [60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0, 3600.0]);
        assert_eq!((seconds(0, 0.0), seconds(0, 1.0)), (54.0, 66.0));
        assert_eq!((seconds(u64::MAX, 0.0), seconds(u64::MAX, 1.0)), (3240.0, 3960.0));
    }
}
