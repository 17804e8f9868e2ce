//! What a batch comes to: a plain function of the batch and of what is stored.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use concert_model::{GroupKind, ObjectKey, Revision};

use crate::backend::numbers::revision_of;
use crate::backend::{Act, Attempt, Check, Done, Effect, Refusal, Shelf, Txn, Verdict, Write};
use crate::contract::ItemKey;

/// What is stored of all that a batch asks for or touches.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    pub(super) newest: i64,
    pub(super) claims: i64,
    pub(super) places: HashMap<ObjectKey, Place>,
    pub(super) fences: HashMap<ItemKey, i64>,
    /// The last write of any object of a kind.
    pub(super) kinds: HashMap<GroupKind, i64>,
}

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) revision: i64,
    pub(super) is_free: bool,
}

/// Everything there is to write, and what to answer.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    pub(super) verdicts: Vec<Verdict>,
    pub(super) newest: i64,
    pub(super) claims: i64,
    pub(super) log: Vec<LogRow<'a>>,
    /// Where each key that was written stands at the end.
    pub(super) places: BTreeMap<&'a ObjectKey, Place>,
    /// What each item that was touched has at the end; nothing for a row that goes.
    pub(super) work: BTreeMap<&'a ItemKey, Option<(i64, &'a Bytes)>>,
    pub(super) attempts: Vec<&'a Attempt>,
    pub(super) reseals: Vec<Reseal<'a>>,
}

#[derive(Debug)]
pub(super) struct LogRow<'a> {
    pub(super) revision: i64,
    pub(super) act: Act,
    pub(super) previous: Option<i64>,
    pub(super) write: &'a Write,
}

#[derive(Debug)]
pub(super) struct Reseal<'a> {
    pub(super) shelf: Shelf,
    pub(super) place: i64,
    pub(super) from: &'a Bytes,
    pub(super) to: &'a Bytes,
}

/// Does the batch in memory, one transaction after the other.
pub(super) fn plan<'a>(batch: &'a [Txn], mut stored: Stored) -> Plan<'a> {
    let mut plan = Plan::default();
    for txn in batch {
        let refusal = txn.checks.iter().find_map(|check| stored.refuse(check));
        let verdict = match refusal {
            Some(refusal) => Err(refusal),
            None => {
                let mut done = Done::default();
                for effect in &txn.effects {
                    plan.apply(&mut stored, effect, &mut done);
                }
                Ok(done)
            }
        };
        plan.verdicts.push(verdict);
    }
    (plan.newest, plan.claims) = (stored.newest, stored.claims);
    plan
}

impl Plan<'_> {
    /// True if there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.log.is_empty() && self.work.is_empty() && self.attempts.is_empty() && self.reseals.is_empty()
    }
}

impl<'a> Plan<'a> {
    fn apply(&mut self, stored: &mut Stored, effect: &'a Effect, done: &mut Done) {
        match effect {
            Effect::Put(write) => done.revision = Some(self.write(stored, write, false)),
            Effect::Remove(write) => done.revision = Some(self.write(stored, write, true)),
            Effect::Claim(item, body) => {
                stored.claims += 1;
                stored.fences.insert(item.clone(), stored.claims);
                self.work.insert(item, Some((stored.claims, body)));
                done.claim = Some(stored.claims.cast_unsigned());
            }
            Effect::Work(item, Some(body)) => {
                if let Some(fence) = stored.fences.get(item) {
                    self.work.insert(item, Some((*fence, body)));
                }
            }
            Effect::Work(item, None) => {
                if stored.fences.remove(item).is_some() {
                    self.work.insert(item, None);
                }
            }
            Effect::Attempt(attempt) => self.attempts.push(attempt),
            Effect::Reseal { shelf, place, from, to } => {
                self.reseals.push(Reseal { shelf: *shelf, place: place.cast_signed(), from, to });
            }
        }
    }

    fn write(&mut self, stored: &mut Stored, write: &'a Write, is_removal: bool) -> Revision {
        let before = stored.places.get(&write.key).copied();
        let act = match before {
            _ if is_removal => Act::Removed,
            Some(Place { is_free: false, .. }) => Act::Updated,
            _ => Act::Created,
        };
        stored.newest += 1;
        let place = Place { revision: stored.newest, is_free: is_removal };
        stored.places.insert(write.key.clone(), place);
        if let Some(last) = stored.kinds.get_mut(&write.key.kind) {
            *last = stored.newest;
        }
        self.places.insert(&write.key, place);
        let previous = before.map(|before| before.revision);
        self.log.push(LogRow { revision: place.revision, act, previous, write });
        revision_of(place.revision)
    }
}

impl Stored {
    fn refuse(&self, check: &Check) -> Option<Refusal> {
        match check {
            Check::Object(key, expected) => {
                let place = self.places.get(key).filter(|place| !place.is_free);
                let now = place.map(|place| revision_of(place.revision));
                (now != *expected).then(|| Refusal::Changed { key: key.clone(), now })
            }
            Check::Fence(fence) => {
                let newest = self.fences.get(&fence.item).copied().unwrap_or(0);
                (newest != fence.number.cast_signed()).then(|| Refusal::Fenced(fence.clone()))
            }
            Check::Unwritten(kind, since) => {
                let last = self.kinds.get(kind).copied().unwrap_or(0);
                (revision_of(last) > *since).then(|| Refusal::Written(kind.clone()))
            }
        }
    }
}

/// What must be looked up before a batch can be planned, each once.
#[derive(Debug, Default)]
pub(super) struct Asked<'a> {
    pub(super) keys: BTreeMap<&'a ObjectKey, ()>,
    pub(super) items: BTreeMap<&'a ItemKey, ()>,
    pub(super) kinds: BTreeMap<&'a GroupKind, ()>,
}

impl<'a> Asked<'a> {
    pub(super) fn by(batch: &'a [Txn]) -> Self {
        let mut asked = Self::default();
        for check in batch.iter().flat_map(|txn| &txn.checks) {
            match check {
                Check::Object(key, _) => drop(asked.keys.insert(key, ())),
                Check::Fence(fence) => drop(asked.items.insert(&fence.item, ())),
                Check::Unwritten(kind, _) => drop(asked.kinds.insert(kind, ())),
            }
        }
        for effect in batch.iter().flat_map(|txn| &txn.effects) {
            match effect {
                Effect::Put(write) | Effect::Remove(write) => drop(asked.keys.insert(&write.key, ())),
                Effect::Claim(item, _) | Effect::Work(item, _) => drop(asked.items.insert(item, ())),
                Effect::Attempt(_) | Effect::Reseal { .. } => {}
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use concert_model::Timestamp;

    use super::*;
    use crate::backend::{Backend as _, Memory, Stamp};
    use crate::chance::Chance;
    use crate::contract::Fence;

    fn key(n: u64) -> ObjectKey {
        ObjectKey::namespaced(GroupKind::new("a.dev", format!("Kind{}", n % 2)), "a", n.to_string())
    }

    fn item(n: u64) -> ItemKey {
        ItemKey { controller: "c".into(), item: n.to_string().into() }
    }

    fn random(chance: &Chance) -> Txn {
        let (revision, claim) = (chance.below(12), chance.below(6));
        let check = || match chance.below(6) {
            0 => Check::Object(key(chance.below(4)), Some(Revision(revision))),
            1 => Check::Object(key(chance.below(4)), None),
            2 => Check::Fence(Fence { item: item(chance.below(3)), number: claim }),
            _ => Check::Unwritten(key(chance.below(2)).kind, Revision(6 + chance.below(60))),
        };
        let body = || Bytes::from(chance.below(1_000).to_string());
        let effect = || {
            let text: Arc<str> = "x".into();
            let stamp =
                Stamp { at: Timestamp::UNIX_EPOCH, actor: text.clone(), reason: text.clone(), manager: text };
            let write = Write { key: key(chance.below(4)), head: body(), payload: body(), stamp };
            match chance.below(6) {
                0..=2 => Effect::Put(write),
                3 => Effect::Remove(write),
                4 => Effect::Claim(item(chance.below(3)), body()),
                _ => Effect::Work(item(chance.below(3)), chance.is_hit(0.5).then(body)),
            }
        };
        let count = |most: u64| 0..chance.below(most);
        Txn { checks: count(3).map(|_| check()).collect(), effects: count(4).map(|_| effect()).collect() }
    }

    /// What the planner says, and what the backend in memory does, for random batches one after the other.
    #[test]
    fn a_plan_says_what_the_backend_in_memory_does() {
        for seed in 0..300 {
            let (chance, memory) = (Chance::seeded(seed), Memory::new());
            let mut stored = Stored::default();
            for _ in 0..6 {
                let batch: Vec<Txn> = (0..1 + chance.below(5)).map(|_| random(&chance)).collect();
                let asked = Asked::by(&batch);
                let mut known = stored.clone();
                known.places.retain(|key, _| asked.keys.contains_key(key));
                known.fences.retain(|item, _| asked.items.contains_key(item));
                known.kinds = stored.kinds.clone();
                known.kinds.retain(|kind, _| asked.kinds.contains_key(kind));
                for kind in asked.kinds.keys() {
                    known.kinds.entry((*kind).clone()).or_default();
                }
                let plan = plan(&batch, known);
                assert_eq!(plan.verdicts, memory.commit(&batch).unwrap(), "seed {seed}");
                (stored.newest, stored.claims) = (plan.newest, plan.claims);
                for (key, place) in &plan.places {
                    stored.places.insert((*key).clone(), *place);
                    let last = stored.kinds.entry(key.kind.clone()).or_default();
                    *last = (*last).max(place.revision);
                }
                for (item, row) in &plan.work {
                    match row {
                        Some((fence, _)) => drop(stored.fences.insert((*item).clone(), *fence)),
                        None => drop(stored.fences.remove(*item)),
                    }
                }
                let bodies =
                    |n| memory.work(&item(n)).unwrap().map(|row| (row.fence.cast_signed(), row.body));
                for n in 0..3 {
                    if let Some(row) = plan.work.get(&item(n)) {
                        assert_eq!(row.map(|(fence, body)| (fence, body.clone())), bodies(n), "seed {seed}");
                    }
                }
            }
        }
    }
}
