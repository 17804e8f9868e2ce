//! How long to wait before the next try of one key.

use std::time::Duration;

use concert_store::Chance;

/// Exponential back-off with full jitter: anything from nothing to a bound that doubles with each
/// failure. The jitter keeps keys that failed together from coming back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The bound after the first failure.
    pub base: Duration,
    /// The bound never grows beyond this.
    pub cap: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), cap: Duration::from_secs(60) }
    }
}

impl Backoff {
    /// Bounds from `base` to `cap`.
    pub fn new(base: Duration, cap: Duration) -> Self {
        Self { base, cap }
    }

    /// The longest wait after so many failures in a row.
    pub fn bound(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.base.saturating_mul(1 << doublings).min(self.cap)
    }

    /// The wait after so many failures in a row.
    pub fn delay(&self, failures: u32, chance: &Chance) -> Duration {
        self.bound(failures).mul_f64(chance.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::seconds;

    #[test]
    fn the_bound_doubles_up_to_the_cap() {
        let backoff = Backoff::default();
        let bounds = [1, 2, 3, 6, 7, 8, u32::MAX].map(|failures| backoff.bound(failures).as_secs());
        assert_eq!(bounds, [1, 2, 4, 32, 60, 60, 60]);
    }

    #[test]
    fn the_jitter_is_full() {
        let (backoff, chance) = (Backoff::default(), Chance::seeded(1));
        let delays: Vec<Duration> = (0..1_000).map(|_| backoff.delay(5, &chance)).collect();
        assert!(delays.iter().all(|delay| *delay < seconds(16)));
        assert!(delays.iter().any(|delay| *delay < seconds(1)));
        assert!(delays.iter().any(|delay| *delay > seconds(15)));
    }
}
