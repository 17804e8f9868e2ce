//! How often a managed resource is looked at when nothing changes.

use std::sync::Arc;
use std::time::Duration;

use concert_model::{Object, duration};
use concert_store::Chance;

use super::vocabulary::annotation;

/// Changes an interval, given the object.
pub type Hook = Arc<dyn Fn(&Object, Duration) -> Duration + Send + Sync>;

/// The rules of polling.
#[derive(Clone)]
pub struct Poll {
    /// Unless the object says otherwise.
    pub interval: Duration,
    /// What an object may ask for at least.
    pub min: Duration,
    /// Moves each interval by up to so much, to either side.
    pub jitter: Duration,
    /// Has the last word before the jitter.
    pub hook: Option<Hook>,
}

impl Poll {
    /// Every minute, as Crossplane does.
    pub const INTERVAL: Duration = Duration::from_secs(60);

    /// At this interval, give or take a tenth, so that what was made together is not polled together
    /// for ever.
    pub fn every(interval: Duration) -> Self {
        Self { interval, min: Duration::from_secs(1), jitter: interval / 10, hook: None }
    }

    /// The interval of `object`, before chance has its say.
    pub fn interval(&self, object: &Object) -> Duration {
        let asked = object.annotation(annotation::POLL_INTERVAL).and_then(|it| duration::parse(it).ok());
        let interval = asked.filter(|it| !it.is_zero()).map_or(self.interval, |it| it.max(self.min));
        self.hook.as_ref().map_or(interval, |hook| hook(object, interval))
    }

    /// When to look at `object` next.
    pub fn next(&self, object: &Object, chance: &Chance) -> Duration {
        self.around(self.interval(object), chance)
    }

    /// When to look again at what is looked at at this interval.
    pub fn around(&self, interval: Duration, chance: &Chance) -> Duration {
        let jitter = self.jitter.min(interval / 2);
        (interval + jitter.mul_f64(2.0 * chance.fraction())).saturating_sub(jitter)
    }
}

impl std::fmt::Debug for Poll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Poll({:?} ± {:?})", self.interval, self.jitter)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(interval: &str) -> Object {
        let mut object =
            Object::from_value(json!({"apiVersion": "example.com/v1", "kind": "Thing"})).unwrap();
        object.set_annotation(annotation::POLL_INTERVAL, interval);
        object
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_object_may_ask_for_its_own_interval_but_not_for_any() {
        let poll = Poll { min: seconds(5), ..Poll::every(seconds(60)) };
        for (asked, interval) in [("10m", 600), ("1s", 5), ("0s", 60), ("-1s", 60), ("soon", 60), ("", 60)] {
            assert_eq!(poll.interval(&object(asked)), seconds(interval), "{asked}");
        }
    }

    #[test]
    fn the_hook_sees_object_and_interval_and_has_the_last_word() {
        let hook: Hook = Arc::new(|_, interval| interval * 2);
        let poll = Poll { hook: Some(hook), ..Poll::every(seconds(60)) };
        assert_eq!(poll.interval(&object("30s")), seconds(60));
    }

    #[test]
    fn jitter_stays_within_its_bounds() {
        let (poll, chance) = (Poll { jitter: seconds(6), ..Poll::every(seconds(60)) }, Chance::seeded(1));
        let all: Vec<Duration> = (0..1000).map(|_| poll.next(&object(""), &chance)).collect();
        assert!(all.iter().all(|it| (seconds(54)..=seconds(66)).contains(it)));
        assert!(all.iter().any(|it| *it < seconds(56)) && all.iter().any(|it| *it > seconds(64)));
        let none = Poll { jitter: Duration::ZERO, ..Poll::every(seconds(60)) };
        assert_eq!(none.next(&object(""), &chance), seconds(60));
    }
}
