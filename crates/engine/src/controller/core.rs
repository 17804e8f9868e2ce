//! The state of one controller and how it changes. Plain data behind one lock: nothing here waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use concert_model::ObjectKey;
use concert_store::Chance;
use prometheus_client::metrics::counter::Counter;

use crate::backoff::Backoff;
use crate::outcome::{Failure, Outcome, OutcomeKind};
use crate::queue::{Full, Item, ItemId, Lane, Next, Placed, Queue, Reason};
use crate::spread::{spread, together};
use crate::workers::{Demand, Permit};

use super::note::{Claim, Note};
use super::park::Unverified;
use super::restore::Restored;
use super::state::ItemState;
use super::waits::{Scope, Waits};

pub(super) struct Core {
    pub queue: Queue<Note>,
    pub waits: Waits,
    /// Bells to ring once the lock is given back.
    pub rings: Rings,
    /// When the timekeeper will ring.
    pub armed: Option<Duration>,
    pub restored: BTreeMap<Box<str>, Restored>,
    /// Items whose row is out of date, in the order they became so.
    pub unsaved: VecDeque<ObjectKey>,
    /// Rows of items that are gone, by the printed key.
    pub orphans: Vec<(Arc<str>, Claim)>,
    pub(super) policy: Policy,
    runs: u64,
    adds: Counter,
    chance: Chance,
    /// Parked items whose waits are still to be compared with what is.
    pub(super) unverified: BTreeMap<ObjectKey, Unverified>,
    /// Those of them that cannot be before a watch has begun, by what it covers.
    pub(super) unwatched: BTreeMap<Scope, BTreeMap<ObjectKey, Unverified>>,
    /// Which list of the main source is the latest.
    pub(super) list: u16,
    /// Whether keys have come since it began, so that what is not in it may be there all the same.
    pub(super) is_list_outdated: bool,
}

/// How outcomes are turned into due times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub capacity: usize,
    pub backoff: Backoff,
    pub poll: Option<Duration>,
    /// Whether items are kept that no source says exist.
    pub keeps_unknown: bool,
    /// Whether there are sources beside the main one.
    pub has_related: bool,
    pub is_durable: bool,
}

/// Who is to be woken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rings {
    pub workers: bool,
    pub timer: bool,
    pub parking: bool,
    pub saving: bool,
    pub room: bool,
}

/// An item that was taken to be run.
pub(super) struct Run {
    pub item: Item,
    pub attempt: u32,
    /// Counts all runs of the controller.
    pub number: u64,
    /// Of the object as last seen before the run.
    pub version: u64,
    pub permit: Option<Permit>,
}

impl Core {
    pub fn new(policy: Policy, chance: Chance, adds: Counter) -> Self {
        Self {
            queue: Queue::new(policy.capacity),
            waits: Waits::default(),
            rings: Rings::default(),
            armed: None,
            restored: BTreeMap::new(),
            unsaved: VecDeque::new(),
            orphans: Vec::new(),
            policy,
            runs: 0,
            adds,
            chance,
            unverified: BTreeMap::new(),
            unwatched: BTreeMap::new(),
            list: 0,
            is_list_outdated: false,
        }
    }

    pub fn enqueue(
        &mut self,
        key: &ObjectKey,
        lane: Lane,
        reason: Reason,
        due: Duration,
        now: Duration,
    ) -> Result<(), Full> {
        self.meet(key, now)?;
        self.add(key, lane, reason, due, now)
    }

    /// As [`Core::enqueue`], for a key that is known.
    pub fn wake_known(
        &mut self,
        key: &ObjectKey,
        lane: Lane,
        reason: Reason,
        due: Duration,
        now: Duration,
    ) -> bool {
        self.queue.find(key).is_some() && self.add(key, lane, reason, due, now).is_ok()
    }

    /// Takes up to `max` items that are due, and no more than `demand` allows.
    pub fn take(&mut self, max: usize, demand: Option<&Demand>, now: Duration, runs: &mut Vec<Run>) {
        for _ in 0..max {
            let permit = match demand.map(Demand::take) {
                None => None,
                Some(Some(permit)) => Some(permit),
                Some(None) => return,
            };
            let Some(item) = self.queue.pop(now) else { return };
            let note = self.queue.note_mut(item.id);
            let waits = note.detail.as_mut().map(|it| std::mem::take(&mut it.waits)).unwrap_or_default();
            self.runs += 1;
            let (attempt, version) = (note.attempt, note.version);
            runs.push(Run { attempt, version, item, number: self.runs, permit });
            if let Some(run) = runs.last().filter(|_| !waits.is_empty()) {
                self.unpark(&run.item.key, &waits);
            }
        }
        // Others may be idle: whoever wakes up passes the bell on.
        let is_open = demand.is_none_or(Demand::is_open);
        self.rings.workers |= is_open && self.queue.next_due() == Some(Duration::ZERO);
    }

    /// Puts an item back that may not run before `due`.
    pub fn defer(&mut self, id: ItemId, due: Duration, now: Duration) {
        if let Some(placed) = self.queue.defer(id, due, now) {
            self.ring_for(placed);
        }
    }

    /// Ends a run that began with `version` of its object.
    pub fn settle(&mut self, id: ItemId, version: u64, outcome: Outcome, now: Duration) {
        let claim = self.queue.note(id).detail.as_ref().and_then(|it| it.row);
        let Some(key) = self.queue.key(id).cloned() else { return };
        if self.queue.note(id).is_disowned {
            return self.drop_run(id, now);
        }
        let note = self.queue.note_mut(id);
        (note.outcome, note.ran) = (Some(outcome.kind()), version);
        let mut waits = Vec::new();
        let next = match outcome {
            Outcome::Done => self.next_poll(id, &key, self.policy.poll, now),
            Outcome::Poll(interval) => self.next_poll(id, &key, Some(interval), now),
            Outcome::After(delay) => self.after(id, Lane::Retry, delay, now),
            Outcome::AfterIn(lane, delay) => self.after(id, lane, delay, now),
            Outcome::Returned => self.put_back(id),
            Outcome::Requeue(why, after) => self.requeue(id, why, after, now),
            Outcome::WaitFor(all) => {
                if let Some(detail) = &mut self.queue.note_mut(id).detail {
                    (detail.error, detail.delay) = (None, None);
                }
                waits = all;
                Next::Rest
            }
            Outcome::WaitAtMost(all, most) => {
                let detail = self.queue.note_mut(id).detail_mut();
                (detail.error, detail.delay) = (None, Some(most));
                waits = all;
                Next::At(Lane::Poll, "waited", now.saturating_add(most))
            }
            Outcome::Transient(failure) => self.retry(id, failure, now),
            Outcome::Terminal(failure) => {
                let note = self.queue.note_mut(id);
                note.attempt = note.attempt.saturating_add(1);
                let is_kept = note.is_known || self.policy.keeps_unknown;
                let detail = note.detail_mut();
                (detail.error, detail.delay) = (Some(failure.text), failure.after);
                match failure.after {
                    _ if !is_kept => Next::Forget,
                    Some(after) => Next::At(Lane::Poll, "poll", now.saturating_add(after)),
                    None => Next::Rest,
                }
            }
        };
        let Some(placed) = self.queue.finish(id, self.in_lane(id, next), now) else {
            self.rings.room = true;
            if let Some(claim) = claim {
                self.orphans.push((key.to_string().into(), claim));
                self.rings.saving = true;
            }
            return;
        };
        self.ring_for(placed);
        // What runs again at once need not be parked.
        if !waits.is_empty() && placed != Placed::Ready {
            self.park(id, &key, waits, false);
        }
        self.mark_unsaved(id, &key);
    }

    /// Ends a run of an item that another member has.
    pub fn drop_run(&mut self, id: ItemId, now: Duration) {
        if let Some(key) = self.queue.key(id).cloned() {
            self.disown(&key);
            self.queue.finish(id, Next::Forget, now);
            self.rings.room = true;
        }
    }

    fn after(&mut self, id: ItemId, lane: Lane, delay: Duration, now: Duration) -> Next {
        let note = self.queue.note_mut(id);
        note.clear();
        if self.policy.is_durable {
            let detail = note.detail_mut();
            detail.delay = Some(delay);
            detail.lane = Some(lane).filter(|it| *it != Lane::Retry);
        }
        Next::At(lane, "after", now.saturating_add(delay))
    }

    /// A run that was none: failures in a row, and the last one's words, are what they were.
    fn put_back(&mut self, id: ItemId) -> Next {
        let lane = self.queue.view(id).and_then(|it| it.lane);
        if self.policy.is_durable {
            let detail = self.queue.note_mut(id).detail_mut();
            (detail.delay, detail.lane) = (Some(Duration::ZERO), lane);
        }
        Next::Back
    }

    fn requeue(&mut self, id: ItemId, why: Arc<str>, after: Option<Duration>, now: Duration) -> Next {
        let note = self.queue.note_mut(id);
        let delay = after.unwrap_or_else(|| {
            note.attempt = note.attempt.saturating_add(1);
            self.policy.backoff.delay(note.attempt, &self.chance)
        });
        let detail = note.detail_mut();
        (detail.error, detail.delay) = (Some(why), Some(delay));
        Next::At(Lane::Retry, "retry", now.saturating_add(delay))
    }

    fn retry(&mut self, id: ItemId, failure: Failure, now: Duration) -> Next {
        let Some(after) = failure.after else { return self.requeue(id, failure.text, None, now) };
        let note = self.queue.note_mut(id);
        note.attempt = note.attempt.saturating_add(1);
        self.requeue(id, failure.text, Some(after), now)
    }

    fn next_poll(&mut self, id: ItemId, key: &ObjectKey, poll: Option<Duration>, now: Duration) -> Next {
        let note = self.queue.note_mut(id);
        note.clear();
        if !note.is_known && !self.policy.keeps_unknown {
            return Next::Forget;
        }
        let is_first = std::mem::take(&mut note.is_unpolled);
        match poll {
            Some(poll) if is_first && poll < Duration::MAX => {
                Next::At(Lane::Poll, "poll", together(now + spread(key, poll), poll))
            }
            // A poll beyond the end of time never comes.
            Some(poll) => now
                .checked_add(poll)
                .map_or(Next::Rest, |due| Next::At(Lane::Poll, "poll", together(due, poll))),
            None => Next::Rest,
        }
    }

    pub fn resume_key(&mut self, key: &ObjectKey, now: Duration) {
        let placed = self.queue.resume_key(key, now);
        self.ring_for(placed);
    }

    /// Forgets everything and takes nothing any more.
    pub fn clear(&mut self) {
        let policy = Policy { capacity: 0, ..self.policy };
        *self = Self::new(policy, self.chance.clone(), self.adds.clone());
    }

    pub fn state(&self, key: &ObjectKey) -> Option<ItemState> {
        self.queue.view(self.queue.find(key)?).map(ItemState::of)
    }

    pub fn states(&self) -> Vec<ItemState> {
        self.queue.ids().filter_map(|id| self.queue.view(id)).map(ItemState::of).collect()
    }

    /// The item of a key, with what was saved of it if it was not known. If that is a time or a wait
    /// that holds for the object as it was then, its version then.
    pub(super) fn meet(&mut self, key: &ObjectKey, now: Duration) -> Result<(ItemId, Option<u64>), Full> {
        let id = self.queue.meet(key)?;
        if self.restored.is_empty() {
            return Ok((id, None));
        }
        let Some(saved) = self.restored.remove(key.to_string().as_str()) else { return Ok((id, None)) };
        let version = saved.row.version;
        Ok((id, self.restore(id, key, saved, now).then_some(version)))
    }

    fn restore(&mut self, id: ItemId, key: &ObjectKey, saved: Restored, now: Duration) -> bool {
        let note = self.queue.note_mut(id);
        (note.attempt, note.outcome) = (saved.row.attempt, Some(saved.row.outcome));
        note.ran = saved.row.version;
        let detail = note.detail_mut();
        (detail.error, detail.row) = (saved.row.error.clone(), Some(Claim::Found(saved.fence)));
        match (saved.row.outcome, saved.due) {
            (OutcomeKind::Transient | OutcomeKind::Requeue | OutcomeKind::After, Some(due)) => {
                let is_late = due <= now && saved.row.outcome == OutcomeKind::After;
                let due = if is_late { now + spread(key, saved.row.delay()) } else { due };
                self.add(key, saved.row.lane.unwrap_or(Lane::Retry), "restored", due, now).is_ok()
            }
            (OutcomeKind::WaitFor, due) if !saved.row.waits.is_empty() => {
                self.park(id, key, saved.row.waits, true);
                due.is_none_or(|due| self.add(key, Lane::Poll, "restored", due, now).is_ok())
            }
            _ => false,
        }
    }

    pub(super) fn add(
        &mut self,
        key: &ObjectKey,
        lane: Lane,
        reason: Reason,
        due: Duration,
        now: Duration,
    ) -> Result<(), Full> {
        let placed = self.queue.add(key, lane, reason, due, now)?;
        self.adds.inc();
        self.ring_for(placed);
        Ok(())
    }

    /// The lane of an item that would be in `lane` if it were like all others.
    pub(super) fn lane(&self, id: ItemId, lane: Lane) -> Lane {
        if self.queue.note(id).is_first { Lane::User } else { lane }
    }

    fn in_lane(&self, id: ItemId, next: Next) -> Next {
        match next {
            Next::At(lane, reason, due) => Next::At(self.lane(id, lane), reason, due),
            next => next,
        }
    }

    fn ring_for(&mut self, placed: Placed) {
        match placed {
            Placed::Ready => self.rings.workers = true,
            Placed::Later(due) if self.armed.is_none_or(|armed| due < armed) => {
                self.armed = Some(due);
                self.rings.timer = true;
            }
            Placed::Later(_) | Placed::Merged => {}
        }
    }

    /// Has the row of an item written or dropped if it does not say what it should.
    pub(super) fn mark_unsaved(&mut self, id: ItemId, key: &ObjectKey) {
        if !self.policy.is_durable {
            return;
        }
        let note = self.queue.note_mut(id);
        let wanted = note.to_save();
        let (has_row, is_saved) = match &note.detail {
            Some(detail) => (detail.row.is_some(), detail.saved == wanted),
            None => (false, false),
        };
        let is_current = if wanted.is_none() { !has_row } else { is_saved };
        if !is_current && !std::mem::replace(&mut note.is_unsaved, true) {
            self.unsaved.push_back(key.clone());
            self.rings.saving = true;
        }
    }
}
