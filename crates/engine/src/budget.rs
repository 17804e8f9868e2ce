//! Budgets: how often something may be done, by any label.
//!
//! A label may be a provider, an account or whatever costs money or patience. Being out of budget is
//! nobody's failure: it never touches back-off.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::queue::Lane;

/// Labels that are kept before those that are back at their full burst are dropped.
const LABELS_KEPT: usize = 4096;

/// A rate with some slack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Per second.
    pub rate: f64,
    /// At once, after a quiet time.
    pub burst: f64,
}

impl Budget {
    /// `rate` per second and `burst` at once. Less than one in eleven days, or at once, is not offered.
    pub fn new(rate: f64, burst: f64) -> Self {
        Self { rate: rate.max(1e-6), burst: burst.max(1.0) }
    }
}

/// What is left of one budget.
#[derive(Clone, Debug)]
pub struct Bucket {
    budget: Budget,
    tokens: f64,
    updated: Duration,
    /// For each lane the latest time that somebody was told to come back at.
    promised: [Duration; Lane::ALL.len()],
}

impl Bucket {
    /// A bucket that is full.
    pub fn new(budget: Budget, now: Duration) -> Self {
        Self { tokens: budget.burst, budget, updated: now, promised: [now; Lane::ALL.len()] }
    }

    /// Whether there is something left.
    pub fn has_token(&mut self, now: Duration) -> bool {
        self.refill(now);
        // What was filled up over a time that was computed from the rate may miss one by a rounding.
        self.tokens > 1.0 - 1e-6
    }

    /// Takes one, or says when to ask again.
    ///
    /// Those who are refused are told different times, in the order they asked, so that they do not
    /// all come back for the same token. A better lane does not queue behind a worse one: it takes
    /// the next token, and the one it was meant for is told another time.
    ///
    /// # Errors
    /// The time at which to ask again.
    pub fn take(&mut self, lane: Lane, now: Duration) -> Result<(), Duration> {
        if self.has_token(now) {
            self.tokens = (self.tokens - 1.0).max(0.0);
            return Ok(());
        }
        Err(self.promise(lane))
    }

    fn promise(&mut self, lane: Lane) -> Duration {
        let interval = Duration::from_secs_f64(1.0 / self.budget.rate);
        let next = self.updated + interval.mul_f64((1.0 - self.tokens).max(0.0));
        let ahead = self.promised[..=lane as usize].iter().max().copied().unwrap_or_default();
        let due = next.max(ahead + interval);
        self.promised[lane as usize] = due;
        due
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.updated).as_secs_f64();
        self.tokens = (self.tokens + passed * self.budget.rate).min(self.budget.burst);
        self.updated = self.updated.max(now);
    }

    /// From now on it is of another size; what is left of it stays, as far as it fits.
    fn resize(&mut self, budget: Budget, now: Duration) {
        if self.budget != budget {
            self.refill(now);
            self.budget = budget;
            self.tokens = self.tokens.min(budget.burst);
        }
    }

    fn is_full(&mut self, now: Duration) -> bool {
        self.refill(now);
        self.tokens >= self.budget.burst
    }
}

/// Budgets by label. Cheap to clone; controllers that share it share what is left.
#[derive(Clone, Debug, Default)]
pub struct Budgets(Arc<Mutex<Purse>>);

#[derive(Debug)]
struct Purse {
    /// How many have it together.
    crowd: usize,
    budgets: BTreeMap<Arc<str>, Budget>,
    otherwise: Option<Budget>,
    buckets: BTreeMap<Arc<str>, Bucket>,
}

impl Budgets {
    /// No bounds yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The budget of one label.
    pub fn set(&self, label: impl Into<Arc<str>>, budget: Budget) {
        self.with(|purse| {
            let label = label.into();
            purse.buckets.remove(&label);
            purse.budgets.insert(label, budget);
        });
    }

    /// The budget that every label has of its own which was not [set](Budgets::set).
    pub fn set_otherwise(&self, budget: Budget) {
        self.with(|purse| purse.otherwise = Some(budget));
    }

    /// Takes one from the budget of every label, or from none.
    ///
    /// # Errors
    /// The time at which to ask again.
    pub fn take(&self, labels: &[Arc<str>], lane: Lane, now: Duration) -> Result<(), Duration> {
        self.take_part(labels, lane, now, 1)
    }

    /// The same for one of `crowd` processes that have the budgets together: each has an equal part.
    ///
    /// # Errors
    /// As [`Budgets::take`].
    pub fn take_part(
        &self,
        labels: &[Arc<str>],
        lane: Lane,
        now: Duration,
        crowd: usize,
    ) -> Result<(), Duration> {
        self.with(|purse| {
            purse.crowd = crowd.max(1);
            purse.take(labels, lane, now)
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Purse) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for Purse {
    fn default() -> Self {
        Self { crowd: 1, budgets: BTreeMap::new(), otherwise: None, buckets: BTreeMap::new() }
    }
}

impl Purse {
    fn take(&mut self, labels: &[Arc<str>], lane: Lane, now: Duration) -> Result<(), Duration> {
        let mut retry_at = None;
        for label in labels {
            let Some(bucket) = self.bucket(label, now) else { continue };
            if !bucket.has_token(now) {
                retry_at = retry_at.max(Some(bucket.promise(lane)));
            }
        }
        if let Some(at) = retry_at {
            return Err(at);
        }
        for label in labels {
            if let Some(bucket) = self.bucket(label, now) {
                // Fails only for a label that is named twice with one token left: once is enough.
                bucket.take(lane, now).ok();
            }
        }
        Ok(())
    }

    fn bucket(&mut self, label: &Arc<str>, now: Duration) -> Option<&mut Bucket> {
        let whole = *self.budgets.get(label).or(self.otherwise.as_ref())?;
        let parts = self.crowd as f64;
        let budget = Budget::new(whole.rate / parts, whole.burst / parts);
        if self.buckets.len() >= LABELS_KEPT && !self.buckets.contains_key(label) {
            // A bucket that is full again is as good as a new one.
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        let bucket = self.buckets.entry(label.clone()).or_insert_with(|| Bucket::new(budget, now));
        bucket.resize(budget, now);
        Some(bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::seconds;

    #[test]
    fn a_burst_then_the_rate() {
        let mut bucket = Bucket::new(Budget::new(1.0, 2.0), seconds(0));
        assert!(bucket.take(Lane::Poll, seconds(0)).is_ok());
        assert!(bucket.take(Lane::Poll, seconds(0)).is_ok());
        assert_eq!(bucket.take(Lane::Poll, seconds(0)), Err(seconds(1)));
        assert!(bucket.take(Lane::Poll, seconds(1)).is_ok());
        assert!(bucket.take(Lane::Poll, seconds(1)).is_err());
    }

    #[test]
    fn many_together_take_no_more_than_one_alone() {
        let crowd: Vec<Budgets> = (0..4).map(|_| Budgets::new()).collect();
        crowd.iter().for_each(|it| it.set("a", Budget::new(8.0, 4.0)));
        let take = |it: &Budgets, second| it.take_part(&["a".into()], Lane::Poll, seconds(second), 4).is_ok();
        let taken =
            |second| -> usize { crowd.iter().map(|it| (0..100).filter(|_| take(it, second)).count()).sum() };
        assert_eq!(taken(0), 4, "the burst");
        assert_eq!(taken(1), 4, "no more than one each at once");
        // One that is alone again has all of it.
        let alone =
            (0..100).filter(|_| crowd[0].take(&["a".into()], Lane::Poll, seconds(10)).is_ok()).count();
        assert_eq!(alone, 1, "what it had saved up");
        let alone =
            (0..100).filter(|_| crowd[0].take(&["a".into()], Lane::Poll, seconds(11)).is_ok()).count();
        assert_eq!(alone, 4);
    }

    #[test]
    fn those_who_are_refused_come_back_one_by_one() {
        let mut bucket = Bucket::new(Budget::new(10.0, 1.0), seconds(0));
        assert!(bucket.take(Lane::Poll, seconds(0)).is_ok());
        let times: Vec<Duration> =
            (0..50).map(|_| bucket.take(Lane::Poll, seconds(0)).unwrap_err()).collect();
        for time in times {
            assert!(bucket.take(Lane::Poll, time).is_ok(), "{time:?}");
        }
    }

    #[test]
    fn a_user_does_not_queue_behind_polls() {
        let mut bucket = Bucket::new(Budget::new(1.0, 1.0), seconds(0));
        assert!(bucket.take(Lane::Poll, seconds(0)).is_ok());
        for _ in 0..100 {
            bucket.take(Lane::Poll, seconds(0)).unwrap_err();
        }
        assert_eq!(bucket.take(Lane::User, seconds(0)), Err(seconds(1)));
        assert_eq!(bucket.take(Lane::Poll, seconds(0)), Err(seconds(101)));
    }

    #[test]
    fn all_labels_or_none() {
        let budgets = Budgets::new();
        budgets.set("account", Budget::new(1.0, 1.0));
        budgets.set("provider", Budget::new(1.0, 2.0));
        let both = ["account".into(), "provider".into(), "unbounded".into()];
        assert!(budgets.take(&both, Lane::Event, seconds(0)).is_ok());
        assert_eq!(budgets.take(&both, Lane::Event, seconds(0)), Err(seconds(1)));
        assert!(budgets.take(&both[1..], Lane::Event, seconds(0)).is_ok(), "the refusal took nothing");
    }

    #[test]
    fn labels_that_are_quiet_are_not_kept() {
        let budgets = Budgets::new();
        budgets.set_otherwise(Budget::new(1.0, 1.0));
        for second in 0..10_000 {
            budgets.take(&[format!("label {second}").into()], Lane::Poll, seconds(second)).unwrap();
        }
        assert!(budgets.with(|purse| purse.buckets.len()) <= LABELS_KEPT);
    }
}
