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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{seconds, widget};

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
