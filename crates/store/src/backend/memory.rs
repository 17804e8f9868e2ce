//! Everything in memory: for tests, for simulation, and to read what a backend must do.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use concert_model::{GroupKind, ObjectKey, Revision, Timestamp};

use super::{
    Act, Attempt, Backend, Bounds, Change, Check, Done, Effect, Failure, Owner, Past, Payload, Range,
    Refusal, Row, Scan, Shelf, Stamp, Txn, Verdict, Write,
};
use crate::contract::ItemKey;
use crate::work::WorkRow;

/// A backend that forgets everything when it is dropped.
#[derive(Debug, Default)]
pub struct Memory {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Newest log row of every key that has one, freed keys included.
    latest: BTreeMap<ObjectKey, Revision>,
    log: BTreeMap<Revision, Entry>,
    newest: Revision,
    compacted: Revision,
    work: BTreeMap<ItemKey, (u64, Bytes)>,
    claims: u64,
    attempts: BTreeMap<u64, Attempt>,
}

#[derive(Clone, Debug)]
struct Entry {
    key: ObjectKey,
    act: Act,
    previous: Option<Revision>,
    head: Bytes,
    payload: Option<Bytes>,
    stamp: Stamp,
}

impl Memory {
    /// An empty backend.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn row(&self, revision: Revision) -> Option<Row> {
        let entry = self.log.get(&revision)?;
        let (key, head, payload) = (entry.key.clone(), entry.head.clone(), entry.payload.clone()?);
        Some(Row { key, revision, head, payload })
    }

    /// The revision of the state that `key` had at `at`, none if the key was free.
    fn state_at(&self, latest: Revision, at: Revision) -> Option<Revision> {
        let mut revision = latest;
        while revision > at {
            revision = self.log.get(&revision)?.previous?;
        }
        (self.log.get(&revision)?.act != Act::Removed).then_some(revision)
    }

    fn live(&self, key: &ObjectKey) -> Option<Revision> {
        self.state_at(*self.latest.get(key)?, self.newest)
    }

    fn refuse(&self, check: &Check) -> Option<Refusal> {
        match check {
            Check::Object(key, expected) => {
                let now = self.live(key);
                (now != *expected).then(|| Refusal::Changed { key: key.clone(), now })
            }
            Check::Fence(fence) => {
                let newest = self.work.get(&fence.item).map_or(0, |(number, _)| *number);
                (newest != fence.number).then(|| Refusal::Fenced(fence.clone()))
            }
            Check::Unwritten(kind, since) => {
                let all = self.latest.range(key_of(kind, "", "")..).take_while(|(key, _)| key.kind == *kind);
                let is_written = all.into_iter().any(|(_, latest)| latest > since);
                is_written.then(|| Refusal::Written(kind.clone()))
            }
        }
    }

    fn write(&mut self, write: &Write, act: Act) -> Revision {
        self.newest.0 += 1;
        let previous = self.latest.insert(write.key.clone(), self.newest);
        let entry = Entry {
            key: write.key.clone(),
            act,
            previous,
            head: write.head.clone(),
            payload: Some(write.payload.clone()),
            stamp: write.stamp.clone(),
        };
        self.log.insert(self.newest, entry);
        self.newest
    }

    fn apply(&mut self, effect: &Effect, done: &mut Done) {
        match effect {
            Effect::Put(write) => {
                let act = if self.live(&write.key).is_some() { Act::Updated } else { Act::Created };
                done.revision = Some(self.write(write, act));
            }
            Effect::Remove(write) => done.revision = Some(self.write(write, Act::Removed)),
            Effect::Claim(item, body) => {
                self.claims += 1;
                self.work.insert(item.clone(), (self.claims, body.clone()));
                done.claim = Some(self.claims);
            }
            Effect::Work(item, Some(body)) => {
                if let Some((_, stored)) = self.work.get_mut(item) {
                    *stored = body.clone();
                }
            }
            Effect::Work(item, None) => drop(self.work.remove(item)),
            Effect::Attempt(attempt) => {
                let place = self.attempts.last_key_value().map_or(1, |(place, _)| place + 1);
                self.attempts.insert(place, attempt.clone());
            }
            Effect::Reseal { shelf, place, from, to } => {
                if let Some(bytes) = self.payload_mut(*shelf, *place).filter(|bytes| *bytes == from) {
                    *bytes = to.clone();
                }
            }
        }
    }

    fn payload_mut(&mut self, shelf: Shelf, place: u64) -> Option<&mut Bytes> {
        match shelf {
            Shelf::Objects => self.log.get_mut(&Revision(place))?.payload.as_mut(),
            // The number of its claim is a row's place: no two rows share one.
            Shelf::Work => self.work.values_mut().find(|(claim, _)| *claim == place).map(|(_, body)| body),
            Shelf::Attempts => self.attempts.get_mut(&place).map(|a| &mut a.body),
        }
    }
}

impl Backend for Memory {
    fn bounds(&self) -> Result<Bounds, Failure> {
        let inner = self.lock();
        Ok(Bounds { newest: inner.newest, compacted: inner.compacted })
    }

    fn get(&self, key: &ObjectKey) -> Result<Option<Row>, Failure> {
        let inner = self.lock();
        Ok(inner.live(key).and_then(|revision| inner.row(revision)))
    }

    fn range(&self, scan: &Scan<'_>) -> Result<Range, Failure> {
        let inner = self.lock();
        let at = scan.at.unwrap_or(inner.newest);
        if at < inner.compacted {
            return Err(Failure::Compacted);
        }
        let start = match (scan.after, scan.namespace) {
            (Some((namespace, name)), _) => Bound::Excluded(key_of(scan.kind, namespace, name)),
            (None, namespace) => Bound::Included(key_of(scan.kind, namespace.unwrap_or_default(), "")),
        };
        let mut range = Range { revision: at, rows: Vec::new(), is_cut: false };
        for (key, latest) in inner.latest.range((start, Bound::Unbounded)) {
            if key.kind != *scan.kind || scan.namespace.is_some_and(|n| n != &*key.namespace) {
                break;
            }
            let Some(row) = inner.state_at(*latest, at).and_then(|revision| inner.row(revision)) else {
                continue;
            };
            if !(scan.keep)(key, &row.head) {
                continue;
            }
            if range.rows.len() == scan.limit {
                range.is_cut = true;
                break;
            }
            range.rows.push(row);
        }
        Ok(range)
    }

    fn count(&self, kind: &GroupKind, namespace: Option<&str>, after: &ObjectKey) -> Result<usize, Failure> {
        let inner = self.lock();
        let rest = inner.latest.range((Bound::Excluded(after.clone()), Bound::Unbounded));
        let is_meant = |key: &ObjectKey| {
            key.kind == *kind && namespace.is_none_or(|namespace| namespace == &*key.namespace)
        };
        let rest = rest.take_while(|(key, _)| is_meant(key));
        Ok(rest.filter(|(key, _)| inner.live(key).is_some()).count())
    }

    fn tail(&self, after: Revision, limit: usize) -> Result<Vec<Change>, Failure> {
        let inner = self.lock();
        if after < inner.compacted {
            return Err(Failure::Compacted);
        }
        let rows = inner.log.range((Bound::Excluded(after), Bound::Unbounded)).take(limit);
        let change = |(revision, entry): (&Revision, &Entry)| {
            let previous = entry.previous.filter(|_| entry.act != Act::Created);
            Some(Change {
                row: inner.row(*revision)?,
                act: entry.act,
                previous: previous.and_then(|revision| inner.row(revision)),
            })
        };
        Ok(rows.filter_map(change).collect())
    }

    fn history(&self, key: &ObjectKey, before: Option<Revision>, limit: usize) -> Result<Vec<Past>, Failure> {
        let inner = self.lock();
        let mut next = inner.latest.get(key).copied();
        let mut pasts = Vec::new();
        while let Some(revision) = next.filter(|_| pasts.len() < limit) {
            let Some(entry) = inner.log.get(&revision) else { break };
            if before.is_none_or(|before| revision < before) {
                let (act, stamp) = (entry.act, entry.stamp.clone());
                let (head, payload) = (entry.head.clone(), entry.payload.clone());
                pasts.push(Past { revision, act, stamp, head, payload });
            }
            next = entry.previous;
        }
        Ok(pasts)
    }

    fn work(&self, item: &ItemKey) -> Result<Option<WorkRow>, Failure> {
        let row = self.lock().work.get(item).cloned();
        Ok(row.map(|(fence, body)| WorkRow { item: item.clone(), fence, body }))
    }

    fn work_of(&self, controller: &str) -> Result<Vec<WorkRow>, Failure> {
        let inner = self.lock();
        let rows = inner.work.iter().filter(|(item, _)| &*item.controller == controller);
        Ok(rows
            .map(|(i, (fence, body))| WorkRow { item: i.clone(), fence: *fence, body: body.clone() })
            .collect())
    }

    fn attempts(&self, item: &ItemKey, limit: usize) -> Result<Vec<Attempt>, Failure> {
        let inner = self.lock();
        Ok(inner.attempts.values().rev().filter(|a| a.item == *item).take(limit).cloned().collect())
    }

    fn commit(&self, batch: &[Txn]) -> Result<Vec<Verdict>, Failure> {
        let mut inner = self.lock();
        let verdict = |txn: &Txn| {
            if let Some(refusal) = txn.checks.iter().find_map(|check| inner.refuse(check)) {
                return Err(refusal);
            }
            let mut done = Done::default();
            for effect in &txn.effects {
                inner.apply(effect, &mut done);
            }
            Ok(done)
        };
        Ok(batch.iter().map(verdict).collect())
    }

    fn compact(&self, floor: Revision, limit: usize) -> Result<Revision, Failure> {
        let mut inner = self.lock();
        let from = inner.compacted;
        let until = Revision(floor.0.min(inner.newest.0).min(from.0.saturating_add(limit as u64)));
        if until <= from {
            return Ok(from);
        }
        inner.compacted = until;
        let span = (Bound::Excluded(from), Bound::Included(until));
        let gone = |(revision, entry): (&Revision, &Entry)| {
            [entry.previous, (entry.act == Act::Removed).then_some(*revision)]
        };
        let gone: Vec<Revision> = inner.log.range(span).flat_map(gone).flatten().collect();
        for revision in gone {
            if let Some(entry) = inner.log.get_mut(&revision) {
                entry.payload = None;
            }
        }
        Ok(until)
    }

    fn forget(&self, before: Timestamp, limit: usize) -> Result<usize, Failure> {
        let mut inner = self.lock();
        let is_old = |e: &Entry| e.payload.is_none() && e.stamp.at < before;
        let compacted = inner.compacted;
        let rows = inner.log.range(..=compacted).filter(|(r, e)| **r < inner.newest && is_old(e));
        let gone: Vec<Revision> = rows.map(|(r, _)| *r).take(limit).collect();
        for revision in &gone {
            let entry = inner.log.remove(revision);
            // A key whose newest row is forgotten was freed long ago: nothing is left to say about it.
            if let Some(entry) = entry.filter(|e| inner.latest.get(&e.key) == Some(revision)) {
                inner.latest.remove(&entry.key);
            }
        }
        let attempts = inner.attempts.len();
        let mut room = limit - gone.len();
        inner.attempts.retain(|_, a| {
            let keep = a.at >= before || room == 0;
            room -= usize::from(!keep);
            keep
        });
        Ok(gone.len() + attempts - inner.attempts.len())
    }

    fn payloads(&self, shelf: Shelf, after: u64, limit: usize) -> Result<Vec<Payload>, Failure> {
        let inner = self.lock();
        let all: Vec<Payload> = match shelf {
            Shelf::Objects => {
                let states =
                    inner.log.iter().filter_map(|(r, e)| Some((r.0, e.key.clone(), e.payload.clone()?)));
                states
                    .map(|(place, key, bytes)| Payload { place, owner: Owner::Object(key), bytes })
                    .collect()
            }
            Shelf::Work => {
                let rows = inner.work.iter();
                let mut all: Vec<_> =
                    rows.map(|(item, (claim, body))| payload_of(*claim, item, body)).collect();
                all.sort_by_key(|payload| payload.place);
                all
            }
            Shelf::Attempts => {
                let rows = inner.attempts.iter();
                rows.map(|(place, attempt)| payload_of(*place, &attempt.item, &attempt.body)).collect()
            }
        };
        Ok(all.into_iter().filter(|p| p.place > after).take(limit).collect())
    }

    fn is_local(&self) -> bool {
        true
    }
}

fn payload_of(place: u64, item: &ItemKey, body: &Bytes) -> Payload {
    Payload { place, owner: Owner::Item(item.clone()), bytes: body.clone() }
}

fn key_of(kind: &GroupKind, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::namespaced(kind.clone(), namespace, name)
}
