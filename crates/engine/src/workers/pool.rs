//! The state of one worker: who waits, who has what. Plain data behind the board's lock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use concert_model::{ObjectKey, Timestamp};
use tokio::sync::Notify;

use super::board::Terms;
use super::claim::{Ask, Claimed, Waiting};
use super::lease::{End, Lease, Leased, Stale};

/// Ends that are remembered, so that a report whose answer was lost can be repeated: more than any host
/// has under way at a time.
const ENDED_MAX: usize = 4096;

/// Hosts that are remembered although they say nothing any more, and for how long if there are more: each
/// start of a host is another one.
const SILENT_MAX: usize = 100;
const SILENCE_MAX: Duration = Duration::from_secs(60 * 60);

/// Bells of controllers: one for each kind that a worker handles, some of which are gone.
const BELLS_SWEPT: usize = 64;

#[derive(Default)]
pub(super) struct Pool {
    pub terms: Terms,
    /// By number, and so in the order they came.
    pub waiting: BTreeMap<u64, Waiting>,
    pub leases: BTreeMap<Arc<str>, Lease>,
    /// Last heard of, by the clock's `elapsed`.
    pub hosts: BTreeMap<Arc<str>, Duration>,
    pub counts: Counts,
    bells: Vec<Weak<Notify>>,
    /// Whether somebody wanted to start a run and might not.
    is_refused: bool,
    ended: VecDeque<(Arc<str>, u64)>,
}

/// What has happened at a worker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Leases that ran out.
    pub expired: u64,
    /// Writes that came with a fence that is not the newest, or no longer good.
    pub stale: u64,
}

impl Pool {
    /// Notes that a host lives.
    pub fn touch(&mut self, host: &Arc<str>, now: Duration) {
        if self.hosts.insert(host.clone(), now).is_none() && self.hosts.len() > SILENT_MAX {
            self.hosts.retain(|_, seen| now.saturating_sub(*seen) < SILENCE_MAX);
        }
    }

    /// What a host was lent by a claim that it makes again; nobody else waits for the first answer.
    pub fn repeated(&mut self, ask: &Ask, now: Duration, time: Timestamp) -> Vec<Claimed> {
        if ask.id.is_none() {
            return Vec::new();
        }
        let is_gone = |_: &u64, it: &mut Waiting| it.ask.is_repeated_by(ask);
        self.waiting.extract_if(.., is_gone).for_each(|(_, it)| it.bell.notify_one());
        let is_it = |it: &&Lease| it.claim == ask.id && it.leased.host == ask.host && it.expires > now;
        self.leases.values().filter(is_it).map(|it| it.claimed(now, time)).collect()
    }

    pub fn attach(&mut self, bell: Weak<Notify>) {
        if self.bells.len() >= BELLS_SWEPT {
            self.bells.retain(|it| it.strong_count() > 0);
        }
        self.bells.push(bell);
    }

    pub fn bells(&self) -> Vec<Weak<Notify>> {
        self.bells.clone()
    }

    pub fn is_wanted(&self, kind: &str) -> bool {
        self.waiting.values().any(|it| it.wanted > 0 && it.ask.accepts(kind))
    }

    /// Takes one from what the first host that fits waits for.
    pub fn reserve(&mut self, kind: &str) -> Option<u64> {
        let first = self.waiting.iter_mut().find(|(_, it)| it.wanted > 0 && it.ask.accepts(kind));
        let Some((number, waiting)) = first else {
            self.is_refused = true;
            return None;
        };
        waiting.wanted -= 1;
        waiting.coming += 1;
        Some(*number)
    }

    /// A run for this claim brought nothing. Says whom to wake: those who were refused meanwhile.
    pub fn give_back(&mut self, claim: u64) -> Vec<Weak<Notify>> {
        if let Some(waiting) = self.waiting.get_mut(&claim) {
            waiting.wanted += 1;
            waiting.coming -= 1;
            if waiting.is_served() {
                waiting.bell.notify_one();
            }
        }
        if std::mem::take(&mut self.is_refused) { self.bells() } else { Vec::new() }
    }

    /// The host that a run brings its item to: the one it began for, or else any that fits.
    pub fn receiver(&mut self, claim: Option<u64>, key: &ObjectKey) -> Option<&mut Waiting> {
        if let Some(number) = claim.filter(|it| self.waiting.contains_key(it)) {
            let waiting = self.waiting.get_mut(&number)?;
            waiting.coming -= 1;
            return Some(waiting);
        }
        let waiting = self.waiting.values_mut().find(|it| it.wanted > 0 && it.ask.accepts(&key.kind.kind))?;
        waiting.wanted -= 1;
        Some(waiting)
    }

    /// The lease of an item, if `fence` is the one it was given under and it has not run out.
    pub fn held(&mut self, item: &str, fence: u64, now: Duration) -> Result<&mut Lease, Stale> {
        let not_held = || Stale::NotHeld { item: item.into() };
        let lease = self.leases.get_mut(item).filter(|it| it.expires > now).ok_or_else(not_held)?;
        match lease.leased.fence.number {
            newest if newest == fence => Ok(lease),
            newest => Err(Stale::Older { item: item.into(), given: fence, newest }),
        }
    }

    /// The same for a write, which is counted if it comes too late.
    pub fn held_to_write(&mut self, item: &str, fence: u64, now: Duration) -> Result<&mut Lease, Stale> {
        if self.held(item, fence, now).is_err() {
            self.counts.stale += 1;
        }
        self.held(item, fence, now)
    }

    /// Forgets a lease, if it is still the one of this claim.
    pub fn drop_lease(&mut self, item: &str, fence: u64) -> Option<Lease> {
        let is_it = self.leases.get(item).is_some_and(|it| it.leased.fence.number == fence);
        is_it.then(|| self.leases.remove(item)).flatten()
    }

    pub fn note_end(&mut self, leased: &Leased) {
        if self.ended.len() >= ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back((leased.item.clone(), leased.fence.number));
    }

    pub fn has_ended(&self, item: &str, fence: u64) -> bool {
        self.ended.iter().any(|(it, number)| &**it == item && *number == fence)
    }

    /// Gives back what a host was lent and did not begin.
    pub fn unlend(&mut self, item: &str, fence: u64) {
        if let Some(end) = self.drop_lease(item, fence).and_then(|lease| lease.end) {
            end.send(End::Returned).ok();
        }
    }
}
