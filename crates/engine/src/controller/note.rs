//! What a controller remembers of each item, beside what the queue does.

use std::sync::Arc;
use std::time::Duration;

use crate::outcome::{OutcomeKind, Wait};
use crate::queue::Lane;

/// Small, because there may be a million: what most items do not have is in `detail`.
#[derive(Default)]
pub(super) struct Note {
    /// Of the object as last seen by the main source.
    pub fingerprint: u64,
    /// Of the object as last seen by the main source; 0 if it has none.
    pub generation: i64,
    /// Of the object as last seen by the main source: which incarnation, and what of it counts after a
    /// restart.
    pub version: u64,
    /// The version that the run began with which `outcome` is of. A later one it may not have seen.
    pub ran: u64,
    pub detail: Option<Box<Detail>>,
    pub attempt: u32,
    pub outcome: Option<OutcomeKind>,
    /// The list it was last seen in.
    pub list: u16,
    /// Whether the main source says that the object exists.
    pub is_known: bool,
    /// Whether its first poll is still to come: that one is spread over the interval.
    pub is_unpolled: bool,
    /// Whether it goes before all others.
    pub is_first: bool,
    /// Whether it stands in line to be saved.
    pub is_unsaved: bool,
    /// Whether another member has it, and it goes when its run ends: its row stays for that one.
    pub is_disowned: bool,
}

#[derive(Default)]
pub(super) struct Detail {
    pub error: Option<Arc<str>>,
    pub waits: Vec<Wait>,
    pub row: Option<Claim>,
    /// The wait that the last outcome asked for.
    pub delay: Option<Duration>,
    /// The lane that it asked for, if that is another than that of retries.
    pub lane: Option<Lane>,
    pub saved: Option<Saved>,
}

/// The claim on the item's row of work state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Ours: it may be saved.
    Held(u64),
    /// From before we started: to be claimed with the first save.
    Found(u64),
}

/// What the row says, as far as it decides whether it must be written again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Saved {
    pub outcome: OutcomeKind,
    pub attempt: u32,
    pub error: Option<Arc<str>>,
    pub waits: Vec<Wait>,
    pub delay: Option<Duration>,
    pub lane: Option<Lane>,
    pub version: u64,
}

impl Note {
    pub fn detail_mut(&mut self) -> &mut Detail {
        self.detail.get_or_insert_default()
    }

    pub fn waits(&self) -> &[Wait] {
        self.detail.as_ref().map_or(&[], |it| &it.waits)
    }

    /// Drops what a success leaves behind, and the box with it if nothing else is in it.
    pub fn clear(&mut self) {
        self.attempt = 0;
        if let Some(detail) = &mut self.detail {
            (detail.error, detail.delay, detail.lane) = (None, None, None);
            if detail.row.is_none() {
                detail.saved = None;
            }
        }
        self.tidy();
    }

    /// Drops the box if there is nothing in it.
    pub fn tidy(&mut self) {
        self.detail.take_if(|it| {
            let has_row = it.row.is_some() || it.saved.is_some();
            !has_row && it.error.is_none() && it.waits.is_empty() && it.delay.is_none()
        });
    }

    /// What a row would have to say; none if it needs none.
    pub fn to_save(&self) -> Option<Saved> {
        let outcome = self.outcome.filter(|it| !matches!(it, OutcomeKind::Done | OutcomeKind::Poll))?;
        let detail = self.detail.as_deref();
        Some(Saved {
            outcome,
            attempt: self.attempt,
            error: detail.and_then(|it| it.error.clone()),
            waits: self.waits().to_vec(),
            delay: detail.and_then(|it| it.delay),
            lane: detail.and_then(|it| it.lane).filter(|_| outcome == OutcomeKind::After),
            version: self.ran,
        })
    }
}
