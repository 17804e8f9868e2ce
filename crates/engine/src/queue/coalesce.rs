//! The queue itself: what waits, what runs, and who is next.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use concert_model::ObjectKey;

use super::index::Index;
use super::item::{Depth, Full, Item, ItemId, Next, Placed, Stage, View};
use super::lane::Lane;
use super::ready::Ready;
use super::reasons::{Compact, Reason, Vocabulary};
use super::slab::Slab;
use super::timers::Timers;

/// Delayed keys that one call moves into their lanes, so that a million polls that fall due together
/// do not hold up the caller. Order between lanes is exact up to this many.
const PROMOTED_MAX: usize = 1024;

/// Keys that wait or run, each with a note of the owner's type.
///
/// # Guarantees
/// - A key waits at most once and runs at most once at a time.
/// - It keeps the earliest due time, the best lane and all reasons it was added with. Once deferred it
///   keeps the time it was told, unless it is added in a better lane.
/// - A key that is added while it runs is run exactly once more.
/// - Within a lane, shares take turns.
pub struct Queue<T> {
    slots: Slab<Slot<T>>,
    index: Index,
    hasher: RandomState,
    timers: Timers,
    ready: Ready,
    running: BTreeMap<u32, Running>,
    vocabulary: Vocabulary,
    last: Option<ObjectKey>,
    len: usize,
    capacity: usize,
    is_paused: bool,
}

struct Slot<T> {
    /// None in a slot that is free.
    key: Option<ObjectKey>,
    /// In nanoseconds; of meaning only while a run is wanted.
    due: u64,
    hash: u32,
    /// Whose turn it is when it is due.
    share: u32,
    /// Changes whenever the slot leaves a lane or its timer, which makes their entries stale.
    stamp: u32,
    reasons: Compact,
    lane: Lane,
    stage: Stage,
    is_wanted: bool,
    /// Whether `due` is a time it was told to come back at.
    is_deferred: bool,
    is_paused: bool,
    is_removed: bool,
    note: T,
}

struct Running {
    since: u64,
    lane: Lane,
    reasons: Compact,
}

impl<T: Default> Queue<T> {
    /// A queue that knows at most `capacity` keys.
    pub fn new(capacity: usize) -> Self {
        Self {
            slots: Slab::new(),
            index: Index::default(),
            hasher: RandomState::new(),
            timers: Timers::default(),
            ready: Ready::default(),
            running: BTreeMap::new(),
            vocabulary: Vocabulary::default(),
            last: None,
            len: 0,
            capacity: capacity.min(u32::MAX as usize - 1),
            is_paused: false,
        }
    }

    /// Asks for a run of `key` at `due`.
    ///
    /// # Errors
    /// [`Full`] for a key that is not known yet.
    pub fn add(
        &mut self,
        key: &ObjectKey,
        lane: Lane,
        reason: Reason,
        due: Duration,
        now: Duration,
    ) -> Result<Placed, Full> {
        let slot = self.meet(key)?.0;
        self.want(slot, lane, reason, nanos(due));
        Ok(self.place(slot, nanos(now)))
    }

    /// The item of `key`, made known if it is not.
    ///
    /// # Errors
    /// [`Full`] for a key that is not known yet.
    pub fn meet(&mut self, key: &ObjectKey) -> Result<ItemId, Full> {
        let hash = self.hash(key);
        if let Some(slot) = self.search(key, hash) {
            return Ok(ItemId(slot));
        }
        if self.len >= self.capacity {
            return Err(Full { capacity: self.capacity });
        }
        let key = self.share_text(key);
        let slot = self.slots.take(Slot::free);
        let entry = &mut self.slots[slot];
        // The stamp goes on counting, so that entries of the slot's former key stay stale.
        *entry = Slot { key: Some(key), hash, stamp: entry.stamp, ..Slot::free() };
        self.index.insert(hash, slot, |slot| self.slots[slot].hash);
        self.len += 1;
        Ok(ItemId(slot))
    }

    /// Takes the next key that is due.
    pub fn pop(&mut self, now: Duration) -> Option<Item> {
        if self.is_paused {
            return None;
        }
        self.promote(now);
        let slots = &self.slots;
        let slot = self.ready.pop(|slot, stamp| slots[slot].stamp == stamp)?;
        let entry = &mut self.slots[slot];
        entry.stamp = entry.stamp.wrapping_add(1);
        entry.stage = Stage::Running;
        (entry.is_wanted, entry.is_deferred) = (false, false);
        let reasons = std::mem::take(&mut entry.reasons);
        self.running.insert(slot, Running { since: nanos(now), lane: entry.lane, reasons });
        let key = entry.key.clone().expect("a slot with a live entry holds a key");
        let (lane, due) = (entry.lane, Duration::from_nanos(entry.due));
        Some(Item { id: ItemId(slot), key, lane, reasons: reasons.spell(&self.vocabulary), due })
    }

    /// Moves keys that have become due into their lanes, a bounded number at a time. Says whether there
    /// were any.
    pub fn promote(&mut self, now: Duration) -> bool {
        let now = nanos(now);
        for count in 0..PROMOTED_MAX {
            let slots = &self.slots;
            let Some(slot) = self.timers.pop(now, |slot, stamp| slots[slot].stamp == stamp) else {
                return count > 0;
            };
            self.slots[slot].stage = Stage::Idle;
            self.place(slot, now);
        }
        true
    }

    /// Ends a run. Returns where the key went; none if it is no longer known.
    pub fn finish(&mut self, id: ItemId, next: Next, now: Duration) -> Option<Placed> {
        let running = self.running.remove(&id.0)?;
        let entry = &mut self.slots[id.0];
        entry.stage = Stage::Idle;
        let is_removed = std::mem::take(&mut entry.is_removed);
        match next {
            Next::At(lane, reason, due) if !is_removed => self.want(id.0, lane, reason, nanos(due)),
            Next::Back if !is_removed => {
                entry.reasons.merge(&running.reasons);
                let (lane, due) = match entry.is_wanted {
                    true => (entry.lane.min(running.lane), entry.due.min(nanos(now))),
                    false => (running.lane, nanos(now)),
                };
                (entry.lane, entry.due, entry.is_wanted) = (lane, due, true);
            }
            Next::Rest if !is_removed => {}
            _ if entry.is_wanted => {}
            _ => {
                self.free(id.0);
                return None;
            }
        }
        Some(self.place(id.0, nanos(now)))
    }

    /// Puts a key back that was taken but may not run before `due`: same lane, same reasons. One that
    /// was added in a better lane meanwhile may ask again at once.
    pub fn defer(&mut self, id: ItemId, due: Duration, now: Duration) -> Option<Placed> {
        let running = self.running.remove(&id.0)?;
        let entry = &mut self.slots[id.0];
        entry.stage = Stage::Idle;
        if std::mem::take(&mut entry.is_removed) && !entry.is_wanted {
            self.free(id.0);
            return None;
        }
        entry.reasons.merge(&running.reasons);
        if !entry.is_wanted || entry.lane >= running.lane {
            (entry.lane, entry.due) = (running.lane, nanos(due));
            (entry.is_wanted, entry.is_deferred) = (true, true);
        }
        Some(self.place(id.0, nanos(now)))
    }

    /// When there will be something to take; zero if there is now.
    pub fn next_due(&mut self) -> Option<Duration> {
        if self.is_paused {
            return None;
        }
        if !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        self.next_timer()
    }

    /// When the next key that is not due yet will be.
    pub fn next_timer(&mut self) -> Option<Duration> {
        if self.is_paused {
            return None;
        }
        let slots = &self.slots;
        self.timers.next_due(|slot, stamp| slots[slot].stamp == stamp).map(Duration::from_nanos)
    }

    /// Holds everything back.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Lets everything go that is not held back by itself.
    pub fn resume(&mut self) {
        self.is_paused = false;
    }

    /// Whether everything is held back.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Holds one key back, whatever is added to it.
    ///
    /// # Errors
    /// [`Full`] for a key that is not known yet.
    pub fn pause_key(&mut self, key: &ObjectKey) -> Result<(), Full> {
        let ItemId(slot) = self.meet(key)?;
        self.slots[slot].is_paused = true;
        self.withdraw(slot);
        Ok(())
    }

    /// Lets one key go.
    pub fn resume_key(&mut self, key: &ObjectKey, now: Duration) -> Placed {
        let Some(ItemId(slot)) = self.find(key) else { return Placed::Merged };
        self.slots[slot].is_paused = false;
        self.place(slot, nanos(now))
    }

    /// Forgets a key: at once, or at the end of its run unless it is added meanwhile.
    pub fn remove(&mut self, key: &ObjectKey) {
        let Some(ItemId(slot)) = self.find(key) else { return };
        self.withdraw(slot);
        let entry = &mut self.slots[slot];
        if entry.stage == Stage::Running {
            entry.is_removed = true;
            entry.is_wanted = false;
            entry.reasons = Compact::default();
        } else {
            self.free(slot);
        }
    }

    /// The item of a key that is known.
    pub fn find(&self, key: &ObjectKey) -> Option<ItemId> {
        self.search(key, self.hash(key)).map(ItemId)
    }

    /// Says with whom an item takes turns: keys of one share wait for each other, and shares take turns.
    pub fn set_share(&mut self, id: ItemId, share: u32) {
        self.slots[id.0].share = share;
    }

    /// When the key was due that has waited longest to be taken; none if none waits.
    pub fn oldest_due(&self) -> Option<Duration> {
        let heads = self.ready.heads(|slot, stamp| self.slots[slot].stamp == stamp);
        heads.map(|slot| self.slots[slot].due).min().map(Duration::from_nanos)
    }

    /// The owner's note on an item.
    pub fn note(&self, id: ItemId) -> &T {
        &self.slots[id.0].note
    }

    /// The owner's note on an item.
    pub fn note_mut(&mut self, id: ItemId) -> &mut T {
        &mut self.slots[id.0].note
    }

    /// The key of an item.
    pub fn key(&self, id: ItemId) -> Option<&ObjectKey> {
        self.slots[id.0].key.as_ref()
    }

    /// What is known of one key.
    pub fn view(&self, id: ItemId) -> Option<View<'_, T>> {
        let entry = &self.slots[id.0];
        let running = self.running.get(&id.0);
        let lane = running.map(|it| it.lane).or_else(|| entry.is_wanted.then_some(entry.lane));
        Some(View {
            key: entry.key.as_ref()?,
            stage: entry.stage,
            is_paused: entry.is_paused,
            lane,
            due: entry.is_wanted.then(|| Duration::from_nanos(entry.due)),
            running_since: running.map(|it| Duration::from_nanos(it.since)),
            reasons: running.map_or(&entry.reasons, |it| &it.reasons).spell(&self.vocabulary),
            note: &entry.note,
        })
    }

    /// All items, in the order of their slots.
    pub fn ids(&self) -> impl Iterator<Item = ItemId> {
        self.slots.iter().filter(|(_, entry)| entry.key.is_some()).map(|(slot, _)| ItemId(slot))
    }

    /// How many keys are where.
    pub fn depth(&self) -> Depth {
        let (ready, delayed) = (self.ready.len(), self.timers.len());
        Depth { ready, delayed, running: self.running.len(), known: self.len }
    }

    /// Since when each running key runs.
    pub fn running_since(&self) -> impl Iterator<Item = Duration> {
        self.running.values().map(|it| Duration::from_nanos(it.since))
    }

    fn want(&mut self, slot: u32, lane: Lane, reason: Reason, due: u64) {
        let entry = &mut self.slots[slot];
        entry.is_removed = false;
        entry.reasons.add(reason, &mut self.vocabulary);
        // Who comes back before the time it was told is refused again and told a later one: a key with
        // many events would never get its turn.
        entry.is_deferred &= lane >= entry.lane;
        let (lane, due) = match (entry.is_wanted, entry.is_deferred) {
            (false, _) => (lane, due),
            (true, false) => (lane.min(entry.lane), due.min(entry.due)),
            (true, true) => (entry.lane, entry.due),
        };
        let is_moved = match entry.stage {
            Stage::Ready => lane != entry.lane,
            Stage::Delayed => due != entry.due,
            Stage::Idle | Stage::Running => false,
        };
        if is_moved {
            self.withdraw(slot);
        }
        let entry = &mut self.slots[slot];
        (entry.lane, entry.due, entry.is_wanted) = (lane, due, true);
    }

    /// Puts a key where it can be found when it is due.
    fn place(&mut self, slot: u32, now: u64) -> Placed {
        let entry = &mut self.slots[slot];
        if entry.stage != Stage::Idle || !entry.is_wanted || entry.is_paused {
            return Placed::Merged;
        }
        let (due, lane, share, stamp) = (entry.due, entry.lane, entry.share, entry.stamp);
        let is_due = due <= now;
        entry.stage = if is_due { Stage::Ready } else { Stage::Delayed };
        let slots = &self.slots;
        let is_live = |slot: u32, stamp: u32| slots[slot].stamp == stamp;
        if is_due {
            self.ready.push(lane, share, slot, stamp, is_live);
            return Placed::Ready;
        }
        self.timers.push(due, slot, stamp, is_live);
        Placed::Later(Duration::from_nanos(due))
    }

    /// Takes a waiting key out of its lane or timer.
    fn withdraw(&mut self, slot: u32) {
        let entry = &mut self.slots[slot];
        match entry.stage {
            Stage::Ready => self.ready.forget_one(entry.lane),
            Stage::Delayed => self.timers.forget_one(),
            Stage::Idle | Stage::Running => return,
        }
        entry.stamp = entry.stamp.wrapping_add(1);
        entry.stage = Stage::Idle;
    }

    fn free(&mut self, slot: u32) {
        self.index.remove(self.slots[slot].hash, slot, |slot| self.slots[slot].hash);
        let stamp = self.slots[slot].stamp.wrapping_add(1);
        self.slots[slot] = Slot { stamp, ..Slot::free() };
        self.slots.give(slot);
        self.len -= 1;
    }

    fn hash(&self, key: &ObjectKey) -> u32 {
        // The upper half: both halves are equally good, and this one keeps the cast obvious.
        (self.hasher.hash_one(key) >> 32) as u32
    }

    fn search(&self, key: &ObjectKey, hash: u32) -> Option<u32> {
        let is_it = |slot: u32| {
            let entry = &self.slots[slot];
            entry.hash == hash && entry.key.as_ref() == Some(key)
        };
        self.index.find(hash, is_it)
    }

    /// The key with the texts it has in common with the last new one shared: most keys of a queue
    /// are of one kind, and many come namespace by namespace.
    fn share_text(&mut self, key: &ObjectKey) -> ObjectKey {
        let mut key = key.clone();
        if let Some(last) = &self.last {
            if last.kind == key.kind {
                key.kind = last.kind.clone();
            }
            if last.namespace == key.namespace {
                key.namespace = last.namespace.clone();
            }
        }
        self.last = Some(key.clone());
        key
    }
}

impl<T: Default> Slot<T> {
    fn free() -> Self {
        Self {
            key: None,
            due: 0,
            hash: 0,
            share: 0,
            stamp: 0,
            reasons: Compact::default(),
            lane: Lane::Poll,
            stage: Stage::Idle,
            is_wanted: false,
            is_deferred: false,
            is_paused: false,
            is_removed: false,
            note: T::default(),
        }
    }
}

/// 584 years of them fit.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
