//! What can be asked about one item: what `explain` prints.

use std::sync::Arc;
use std::time::Duration;

use concert_model::ObjectKey;

use crate::outcome::{OutcomeKind, Wait};
use crate::queue::{Lane, Reasons, Stage, View};

use super::note::Note;

/// Everything the engine knows about one item. Times are of the clock's `elapsed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemState {
    /// Which object.
    pub key: ObjectKey,
    /// Where it is.
    pub phase: Phase,
    /// How urgent its run is; none if none is to come.
    pub lane: Option<Lane>,
    /// Failures in a row.
    pub attempt: u32,
    /// Why it runs or is to run.
    pub reasons: Reasons,
    /// How its last run went; none if it never ran.
    pub last_outcome: Option<OutcomeKind>,
    /// What went wrong in the last run, or is not there yet.
    pub last_error: Option<Arc<str>>,
    /// When it is to run (again).
    pub next_due: Option<Duration>,
}

/// Where an item is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// All is done; waits for a change.
    Idle,
    /// Due; waits for a worker.
    Waiting,
    /// Due later.
    DueAt(Duration),
    /// A worker has it.
    RunningSince(Duration),
    /// Waits for something else to change.
    ParkedOn(Vec<Wait>),
    /// Failed, or not there yet; will be tried again.
    BackingOff {
        /// When.
        until: Duration,
    },
    /// Held back by an operator.
    Paused,
    /// Failed for good; waits for a change of its object.
    Terminal,
}

impl ItemState {
    pub(super) fn of(view: View<'_, Note>) -> Self {
        let note = view.note;
        Self {
            phase: phase(&view),
            key: view.key.clone(),
            lane: view.lane,
            attempt: note.attempt,
            last_outcome: note.outcome,
            last_error: note.detail.as_ref().and_then(|it| it.error.clone()),
            next_due: view.due,
            reasons: view.reasons,
        }
    }
}

fn phase(view: &View<'_, Note>) -> Phase {
    if let Some(since) = view.running_since {
        return Phase::RunningSince(since);
    }
    if view.is_paused {
        return Phase::Paused;
    }
    match (view.stage, view.due, view.note.waits()) {
        (Stage::Ready, ..) => Phase::Waiting,
        (_, Some(until), _)
            if matches!(view.note.outcome, Some(OutcomeKind::Transient | OutcomeKind::Requeue)) =>
        {
            Phase::BackingOff { until }
        }
        (_, None, _) if view.note.outcome == Some(OutcomeKind::Terminal) => Phase::Terminal,
        (_, Some(due), []) => Phase::DueAt(due),
        (_, None, []) => Phase::Idle,
        (_, _, waits) => Phase::ParkedOn(waits.to_vec()),
    }
}
