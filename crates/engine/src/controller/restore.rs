//! What is kept of an item over a restart.

use std::sync::Arc;
use std::time::Duration;

use concert_model::{ObjectKey, Timestamp};
use concert_store::{Clock, Error, ItemKey, Work};
use serde::{Deserialize, Serialize};

use crate::outcome::{OutcomeKind, Wait};
use crate::queue::Lane;

use super::note::Saved;
use super::state::{ItemState, Phase};

/// The body of one row of work state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    pub outcome: OutcomeKind,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// By the time of day: the only one that outlives a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// The wait that led to `due`. Bounds what a clock that was set back can do.
    #[serde(default, skip_serializing_if = "is_none")]
    pub delay_millis: u64,
    /// In which it is due; that of retries if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// Of the object that the outcome is about.
    #[serde(default)]
    pub version: u64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_none(number: &u64) -> bool {
    *number == 0
}

impl Row {
    pub fn new(saved: &Saved, due: Option<Timestamp>) -> Self {
        Self {
            outcome: saved.outcome,
            attempt: saved.attempt,
            due,
            delay_millis: saved.delay.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
            lane: saved.lane,
            error: saved.error.clone(),
            waits: saved.waits.clone(),
            version: saved.version,
        }
    }

    pub fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_millis)
    }

    /// The time that is left until `due`, never more than the whole wait.
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        let left = Duration::try_from(self.due?.duration_since(now)).unwrap_or_default();
        Some(left.min(self.delay()))
    }
}

/// What is known of an item that another process works on: what it has written down.
///
/// # Errors
/// Any of the store's.
pub async fn stored(
    work: &dyn Work,
    clock: &dyn Clock,
    controller: &str,
    key: &ObjectKey,
) -> Result<Option<ItemState>, Error> {
    let item = ItemKey { controller: controller.into(), item: key.to_string().into() };
    let found = work.read(&item).await?;
    let row = found.and_then(|it| serde_json::from_slice::<Row>(&it.body).ok());
    Ok(row.map(|row| row.state(key.clone(), clock)))
}

impl Row {
    fn state(self, key: ObjectKey, clock: &dyn Clock) -> ItemState {
        let next_due = self.left(clock.now()).map(|left| clock.elapsed() + left);
        let phase = match (self.outcome, next_due) {
            (OutcomeKind::Transient | OutcomeKind::Requeue, Some(until)) => Phase::BackingOff { until },
            (OutcomeKind::Terminal, None) => Phase::Terminal,
            _ if !self.waits.is_empty() => Phase::ParkedOn(self.waits),
            (_, Some(due)) => Phase::DueAt(due),
            (_, None) => Phase::Idle,
        };
        ItemState {
            key,
            phase,
            lane: None,
            attempt: self.attempt,
            reasons: Default::default(),
            last_outcome: Some(self.outcome),
            last_error: self.error,
            next_due,
        }
    }
}

/// A row that was found at the start.
pub(super) struct Restored {
    pub row: Row,
    pub fence: u64,
    /// By the clock's `elapsed`.
    pub due: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::seconds;

    #[test]
    fn a_clock_that_was_set_back_cannot_make_it_wait_longer() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let row = Row {
            outcome: OutcomeKind::Transient,
            attempt: 3,
            due: Some(at(1_010)),
            delay_millis: 10_000,
            lane: None,
            error: None,
            waits: Vec::new(),
            version: 1,
        };
        assert_eq!(row.left(at(1_004)), Some(seconds(6)));
        assert_eq!(row.left(at(2_000)), Some(seconds(0)));
        assert_eq!(row.left(at(0)), Some(seconds(10)));
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
    }
}
