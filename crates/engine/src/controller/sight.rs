//! What the main source tells: which objects there are.

use std::time::Duration;

use concert_model::{ObjectKey, Uid};

use crate::outcome::OutcomeKind;
use crate::queue::{Full, ItemId, Lane, Reason};
use crate::spread::{spread, stable_hash, together};

use super::core::Core;
use super::note::{Claim, Note};

/// An object as the main source saw it.
pub(super) struct Sight<'a> {
    pub key: &'a ObjectKey,
    pub fingerprint: u64,
    pub generation: i64,
    pub uid: &'a Uid,
    /// Part of a list, and not of the changes after it: the lane in which it goes as such.
    pub listed: Option<Lane>,
    /// As far as the object itself tells, there is nothing to do but to poll.
    pub is_settled: bool,
    /// Whether it goes before all others; none where all are alike.
    pub is_first: Option<bool>,
    /// With whom it takes turns.
    pub share: u32,
}

impl Sight<'_> {
    /// What is compared after a restart: by generation, which the writes of a status leave alone, or
    /// else by all that counts as a change.
    fn version(&self) -> u64 {
        let state = match self.generation {
            0 => self.fingerprint.to_string(),
            generation => generation.to_string(),
        };
        stable_hash([&*self.uid.0, &state])
    }
}

impl Core {
    pub fn list_begins(&mut self) {
        self.list = self.list.wrapping_add(1);
        self.is_list_outdated = false;
    }

    /// What the main source saw.
    pub fn sighted(&mut self, sight: &Sight<'_>, reason: Reason, now: Duration) -> Result<(), Full> {
        let (id, restored) = self.meet(sight.key, now)?;
        let list = self.list;
        self.queue.set_share(id, sight.share);
        let note = self.queue.note_mut(id);
        let was_known = std::mem::replace(&mut note.is_known, true);
        let is_same = was_known && note.fingerprint == sight.fingerprint;
        let was_generation = std::mem::replace(&mut note.generation, sight.generation);
        (note.fingerprint, note.list) = (sight.fingerprint, list);
        note.is_first = sight.is_first == Some(true);
        note.is_disowned = false;
        if self.policy.is_durable {
            note.version = sight.version();
        }
        if is_same {
            // A list of its own accord, or after a gap: whoever waits had better look again.
            let is_parked = sight.listed.is_some() && !self.queue.note(id).waits().is_empty();
            return if is_parked { self.add_listed(id, sight, now) } else { Ok(()) };
        }
        if was_known || sight.listed.is_none() {
            let is_wish = !was_known || was_generation != sight.generation;
            let lane = if is_wish && sight.is_first.is_none() { Lane::User } else { Lane::Event };
            return self.add(sight.key, self.lane(id, lane), reason, now, now);
        }
        self.queue.note_mut(id).is_unpolled = true;
        match restored {
            Some(version) if self.is_still_valid(id, version) => Ok(()),
            // It was not done, whatever its object says of itself.
            Some(_) => self.add_listed(id, sight, now),
            None => self.first_listed(id, sight, now),
        }
    }

    /// Whether what was saved of an item is about its object as it is now. Without a generation the
    /// reconciler's own last write looks like a change; a back-off is kept all the same, being short.
    /// It is also all that is kept where other sources may have had news that nobody heard.
    fn is_still_valid(&self, id: ItemId, version: u64) -> bool {
        let note = self.queue.note(id);
        let is_backing_off = matches!(note.outcome, Some(OutcomeKind::Transient | OutcomeKind::Requeue));
        let is_same = note.version == version && !self.policy.has_related;
        is_same || is_backing_off && (note.version == version || note.generation == 0)
    }

    /// An object that was there before the controller was. Those that have nothing to do but to be
    /// polled are, spread over the interval; the rest runs now, behind everything fresh.
    fn first_listed(&mut self, id: ItemId, sight: &Sight<'_>, now: Duration) -> Result<(), Full> {
        match self.policy.poll {
            Some(poll) if sight.is_settled => {
                self.queue.note_mut(id).is_unpolled = false;
                self.add(sight.key, Lane::Poll, "poll", together(now + spread(sight.key, poll), poll), now)
            }
            None if sight.is_settled => Ok(()),
            _ => self.add_listed(id, sight, now),
        }
    }

    fn add_listed(&mut self, id: ItemId, sight: &Sight<'_>, now: Duration) -> Result<(), Full> {
        let lane = sight.listed.unwrap_or(Lane::Poll);
        self.add(sight.key, self.lane(id, lane), "listed", now, now)
    }

    /// The main source says that an object is no more.
    pub fn gone(&mut self, key: &ObjectKey, reason: Reason, now: Duration) -> Result<(), Full> {
        let (id, _) = self.meet(key, now)?;
        self.queue.note_mut(id).is_known = false;
        self.add(key, Lane::Event, reason, now, now)
    }

    /// As [`Core::gone`], for an object that may never have been an item.
    pub fn not_ours(&mut self, key: &ObjectKey, now: Duration) {
        if self.queue.find(key).is_some() {
            // A known key is never refused.
            self.gone(key, "deleted", now).ok();
        }
    }

    /// Another member has it: it is no item here, and its row is for that one to read.
    pub fn disown(&mut self, key: &ObjectKey) {
        let Some(id) = self.queue.find(key) else { return };
        let note = self.queue.note_mut(id);
        note.is_disowned = true;
        let waits = note.detail.take().map(|it| it.waits).unwrap_or_default();
        if !waits.is_empty() {
            self.unpark(key, &waits);
        }
        self.queue.remove(key);
        self.rings.room = true;
    }

    /// Disowns all that `is_ours` does not recognise.
    pub fn disown_all_but(&mut self, is_ours: impl Fn(&dyn std::fmt::Display) -> bool) {
        let all: Vec<ObjectKey> = self.queue.ids().filter_map(|id| self.queue.key(id).cloned()).collect();
        all.iter().filter(|key| !is_ours(key)).for_each(|key| self.disown(key));
        self.restored.retain(|item, _| is_ours(item));
    }

    /// A list of the main source is complete: what was known and is not in it is gone.
    pub fn list_ends(&mut self, now: Duration) {
        if self.is_list_outdated {
            return;
        }
        let is_lost = |note: &Note| note.is_known && note.list != self.list;
        let lost: Vec<ItemId> = self.queue.ids().filter(|id| is_lost(self.queue.note(*id))).collect();
        for id in lost {
            if let Some(key) = self.queue.key(id).cloned() {
                // A known key is never refused.
                self.gone(&key, "deleted", now).ok();
            }
        }
        // What was saved of objects that are no more.
        for (item, saved) in std::mem::take(&mut self.restored) {
            self.orphans.push((item.into(), Claim::Found(saved.fence)));
            self.rings.saving = true;
        }
    }
}
