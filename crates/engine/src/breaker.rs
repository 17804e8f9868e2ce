//! Circuit breakers: a target that is down is left alone for a while, by any label.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// When a breaker opens and how it closes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Failures in a row that open it.
    pub failures: u32,
    /// How long it stays open.
    pub cooldown: Duration,
    /// How many may try at a time afterwards.
    pub probes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { failures: 5, cooldown: Duration::from_secs(30), probes: 1 }
    }
}

/// What the target had to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It works.
    Well,
    /// It failed.
    Badly,
    /// It was not asked.
    NotAsked,
}

/// The state of one breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All may pass; so many failures in a row.
    Closed {
        /// In a row.
        failures: u32,
    },
    /// None may pass until then.
    Open {
        /// By the clock's `elapsed`.
        until: Duration,
    },
    /// A few may try.
    HalfOpen {
        /// How many try now.
        probes: u32,
    },
}

/// One breaker. Plain data: the time is handed in.
#[derive(Clone, Copy, Debug)]
pub struct Breaker {
    config: Config,
    state: State,
}

impl Breaker {
    /// A breaker that is closed.
    pub fn new(config: Config) -> Self {
        Self { config, state: State::Closed { failures: 0 } }
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// Asks to pass. Whoever may must [record](Breaker::record) how it went.
    ///
    /// # Errors
    /// The time at which to ask again.
    pub fn admit(&mut self, now: Duration) -> Result<(), Duration> {
        if let State::Open { until } = self.state {
            if now < until {
                return Err(until);
            }
            self.state = State::HalfOpen { probes: 0 };
        }
        match &mut self.state {
            // Nobody knows how long a probe takes; a fraction of the cooldown is soon enough.
            State::HalfOpen { probes } if *probes >= self.config.probes => {
                Err(now + self.config.cooldown / 4)
            }
            State::HalfOpen { probes } => {
                *probes += 1;
                Ok(())
            }
            State::Closed { .. } | State::Open { .. } => Ok(()),
        }
    }

    /// How it went for one who was admitted.
    pub fn record(&mut self, answer: Answer, now: Duration) {
        let open = State::Open { until: now + self.config.cooldown };
        self.state = match (self.state, answer) {
            (State::Closed { .. } | State::HalfOpen { .. }, Answer::Well) => State::Closed { failures: 0 },
            (State::Closed { failures }, Answer::Badly) if failures + 1 < self.config.failures => {
                State::Closed { failures: failures + 1 }
            }
            (State::Closed { .. } | State::HalfOpen { .. }, Answer::Badly) => open,
            (State::HalfOpen { probes }, Answer::NotAsked) => {
                State::HalfOpen { probes: probes.saturating_sub(1) }
            }
            // Those who passed before it opened say nothing new.
            (state @ (State::Closed { .. } | State::Open { .. }), _) => state,
        };
    }

    fn is_untouched(&self) -> bool {
        self.state == State::Closed { failures: 0 }
    }
}

/// Breakers by label. Cheap to clone; controllers that share it share the breakers.
#[derive(Clone, Debug)]
pub struct Breakers {
    config: Config,
    /// Only those that have something to remember.
    breakers: Arc<Mutex<BTreeMap<Arc<str>, Breaker>>>,
}

impl Breakers {
    /// All closed.
    pub fn new(config: Config) -> Self {
        Self { config, breakers: Arc::default() }
    }

    /// Asks to pass to the target `label`.
    ///
    /// # Errors
    /// The time at which to ask again.
    pub fn admit(&self, label: &str, now: Duration) -> Result<(), Duration> {
        self.with(|breakers| breakers.get_mut(label).map_or(Ok(()), |it| it.admit(now)))
    }

    /// How it went for one who was admitted.
    pub fn record(&self, label: &Arc<str>, answer: Answer, now: Duration) {
        self.with(|breakers| {
            let is_news = answer == Answer::Badly || breakers.contains_key(label);
            if !is_news {
                return;
            }
            let breaker = breakers.entry(label.clone()).or_insert_with(|| Breaker::new(self.config));
            breaker.record(answer, now);
            if breaker.is_untouched() {
                breakers.remove(label);
            }
        });
    }

    /// The state of a target's breaker.
    pub fn state(&self, label: &str) -> State {
        self.with(|breakers| breakers.get(label).map_or(State::Closed { failures: 0 }, Breaker::state))
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<Arc<str>, Breaker>) -> T) -> T {
        act(&mut self.breakers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::seconds;

    fn open() -> Breaker {
        let mut breaker = Breaker::new(Config::default());
        for _ in 0..5 {
            breaker.admit(seconds(0)).unwrap();
            breaker.record(Answer::Badly, seconds(0));
        }
        breaker
    }

    #[test]
    fn opens_after_failures_in_a_row_only() {
        let mut breaker = Breaker::new(Config::default());
        for answer in [Answer::Badly; 4].into_iter().chain([Answer::Well]).chain([Answer::Badly; 4]) {
            breaker.record(answer, seconds(0));
        }
        assert_eq!(breaker.state(), State::Closed { failures: 4 });
        breaker.record(Answer::Badly, seconds(7));
        assert_eq!(breaker.admit(seconds(8)), Err(seconds(37)));
    }

    #[test]
    fn one_probe_decides_after_the_cooldown() {
        for (answer, state) in [
            (Answer::Well, State::Closed { failures: 0 }),
            (Answer::Badly, State::Open { until: seconds(61) }),
            (Answer::NotAsked, State::HalfOpen { probes: 0 }),
        ] {
            let mut breaker = open();
            assert!(breaker.admit(seconds(29)).is_err());
            assert!(breaker.admit(seconds(30)).is_ok());
            assert!(breaker.admit(seconds(30)).is_err(), "one probe at a time");
            breaker.record(answer, seconds(31));
            assert_eq!(breaker.state(), state);
        }
    }

    #[test]
    fn those_who_passed_before_it_opened_say_nothing_new() {
        let mut breaker = open();
        breaker.record(Answer::Badly, seconds(9));
        breaker.record(Answer::Well, seconds(9));
        assert_eq!(breaker.state(), State::Open { until: seconds(30) });
    }

    #[test]
    fn healthy_targets_are_not_kept() {
        let breakers = Breakers::new(Config { failures: 1, ..Config::default() });
        let label: Arc<str> = "target".into();
        breakers.record(&label, Answer::Well, seconds(0));
        breakers.record(&label, Answer::Badly, seconds(0));
        assert_eq!(breakers.admit("target", seconds(1)), Err(seconds(30)));
        assert!(breakers.admit("other", seconds(1)).is_ok());
        breakers.admit("target", seconds(30)).unwrap();
        breakers.record(&label, Answer::Well, seconds(30));
        assert!(breakers.with(|it| it.is_empty()));
    }
}
