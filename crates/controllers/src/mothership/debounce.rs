//! How soon an item runs that something woke: at once, unless it was woken a moment ago.
//!
//! The first change of a quiet item is not held up at all. What follows soon after waits, a second at
//! first and longer while it goes on, so that many changes become one more run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Between the first run and the next.
pub const GAP_MIN: Duration = Duration::from_secs(1);
/// Between two runs, however many changes there are.
pub const GAP_MAX: Duration = Duration::from_secs(10);
/// Entries that are borne before those that went quiet are forgotten.
const HOT_MIN: usize = 1024;

/// What was woken lately. Plain data: the time is handed in.
#[derive(Debug, Default)]
pub struct Debounce {
    hot: BTreeMap<Arc<str>, Hot>,
    /// When to tidy up next, by the number of entries.
    tidy_at: usize,
}

#[derive(Clone, Copy, Debug)]
struct Hot {
    /// When it was last due, or will be.
    due: Duration,
    /// Until which time after that it is not quiet.
    gap: Duration,
}

impl Debounce {
    /// How long a run of `entry` has to wait that something woke now.
    pub fn delay(&mut self, entry: &Arc<str>, now: Duration) -> Duration {
        self.tidy(now);
        let hot = self.hot.entry(entry.clone()).or_insert(Hot { due: now, gap: Duration::ZERO });
        if hot.due > now {
            // The run that is to come is one for all that happens until then.
        } else if now < hot.due + hot.gap {
            (hot.due, hot.gap) = (hot.due + hot.gap, (hot.gap * 2).min(GAP_MAX));
        } else {
            *hot = Hot { due: now, gap: GAP_MIN };
        }
        hot.due - now
    }

    fn tidy(&mut self, now: Duration) {
        if self.hot.len() < self.tidy_at.max(HOT_MIN) {
            return;
        }
        self.hot.retain(|_, it| now < it.due + it.gap);
        self.tidy_at = self.hot.len() * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn the_first_change_of_a_quiet_item_is_not_held_up() {
        let (mut debounce, a, b) = (Debounce::default(), Arc::from("a"), Arc::from("b"));
        assert_eq!(debounce.delay(&a, millis(0)), Duration::ZERO);
        assert_eq!(debounce.delay(&b, millis(10)), Duration::ZERO);
        assert_eq!(debounce.delay(&a, millis(1_000)), Duration::ZERO, "quiet for a second");
    }

    #[test]
    fn what_follows_waits_for_one_run_that_is_for_all_of_it() {
        let (mut debounce, a) = (Debounce::default(), Arc::from("a"));
        debounce.delay(&a, millis(0));
        let dues: Vec<Duration> = (1..1_000).map(|at| millis(at) + debounce.delay(&a, millis(at))).collect();
        assert!(dues.iter().all(|due| *due == GAP_MIN), "one more run");
    }

    #[test]
    fn runs_get_rarer_while_changes_go_on_up_to_a_bound() {
        let (mut debounce, a) = (Debounce::default(), Arc::from("a"));
        let mut dues: Vec<u64> = Vec::new();
        for at in (0..60_000).step_by(100) {
            let due = u64::try_from((millis(at) + debounce.delay(&a, millis(at))).as_millis()).unwrap();
            if dues.last() != Some(&due) {
                dues.push(due);
            }
        }
        assert_eq!(dues[..6], [0, 1_000, 3_000, 7_000, 15_000, 25_000]);
        assert_eq!(debounce.delay(&a, millis(200_000)), Duration::ZERO);
    }

    #[test]
    fn what_went_quiet_is_forgotten() {
        let mut debounce = Debounce::default();
        for number in 0..10_000_u64 {
            debounce.delay(&format!("e{number}").into(), millis(number * 10));
        }
        assert!(debounce.hot.len() <= 2 * HOT_MIN, "{}", debounce.hot.len());
    }
}
