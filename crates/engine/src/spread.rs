//! Numbers made from keys that are the same in every process.

use std::time::Duration;

use concert_model::ObjectKey;

/// A hash that stays what it is: FNV-1a, finished so that all bits count.
pub(crate) fn stable_hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        // 0xff is in no text, so it keeps ("ab", "c") and ("a", "bc") apart.
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

/// A place for `key` within `interval`, so that many keys are spread evenly over it.
pub(crate) fn spread(key: &ObjectKey, interval: Duration) -> Duration {
    let hash = stable_hash([&*key.kind.group, &key.kind.kind, &key.namespace, &key.name]);
    interval.mul_f64((hash >> 11) as f64 / (1u64 << 53) as f64)
}

/// Longest that a poll waits for others.
const GRAIN_MAX: Duration = Duration::from_millis(250);

/// The moment at which a poll that is due at `due` is taken, with all others that are due at about the same
/// time: a hundredth of its interval makes no difference to it, and what comes together can be done together.
pub(crate) fn together(due: Duration, interval: Duration) -> Duration {
    let grain = (interval / 100).min(GRAIN_MAX).as_nanos();
    if grain == 0 {
        return due;
    }
    let rest = due.as_nanos() % grain;
    let wait = if rest == 0 { 0 } else { grain - rest };
    // Less than a quarter of a second.
    due.saturating_add(Duration::from_nanos(u64::try_from(wait).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{seconds, widget};

    #[test]
    fn polls_of_about_the_same_time_come_together_and_none_comes_early_or_much_later() {
        let millis = Duration::from_millis;
        for (due, interval, taken) in
            [(60_001, 60_000, 60_250), (60_250, 60_000, 60_250), (1_001, 1_000, 1_010), (17, 50, 17)]
        {
            assert_eq!(together(millis(due), millis(interval)), millis(taken), "{due}");
        }
        assert_eq!(together(Duration::from_nanos(7), Duration::ZERO), Duration::from_nanos(7));
        assert_eq!(together(Duration::MAX, Duration::MAX), Duration::MAX);
    }

    #[test]
    fn keys_are_spread_evenly_and_always_to_the_same_place() {
        let mut buckets = [0; 10];
        for number in 0..10_000 {
            let place = spread(&widget(&format!("w{number}")), seconds(10));
            buckets[usize::try_from(place.as_secs()).unwrap()] += 1;
        }
        assert!(buckets.iter().all(|count| (850..1150).contains(count)), "{buckets:?}");
        assert_eq!(stable_hash(["a", "b"]), stable_hash(["a", "b"]));
        assert_ne!(stable_hash(["ab", "c"]), stable_hash(["a", "bc"]));
    }
}
