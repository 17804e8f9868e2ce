//! The state of one worker: who waits, who has what. Plain data behind the board's lock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use concert_model::ObjectKey;
use tokio::sync::Notify;

use super::board::Terms;
use super::claim::Waiting;
use super::lease::{End, Lease, Leased, Stale};

/// Ends that are remembered, so that a report whose answer was lost can be repeated: more than any host
/// has under way at a time.
const ENDED_MAX: usize = 4096;

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
    bells: Vec<Weak<Notify>>,
    /// Whether somebody wanted to start a run and might not.
    is_refused: bool,
    ended: VecDeque<(Arc<str>, u64)>,
}

impl Pool {
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
