//! Where hosts that ask for work and runs that need a host meet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use concert_model::Timestamp;
use concert_model::time::SignedDuration;
use concert_store::{Clock, Fence};
use tokio::sync::{Notify, oneshot};

use crate::queue::Reasons;

use super::claim::{Ask, Claimed, Waiting};
use super::demand::{Demand, ring};
use super::lease::{End, Lease, Leased, Report, Stale, after};
use super::meaning::Offer;
use super::offers::Held;
use super::pool::{Counts, Pool};

/// A host that asks without waiting still gets what is due, although a run takes a moment to begin.
const WAIT_MIN: Duration = Duration::from_millis(50);
/// How much longer a host waits whose items are on their way.
const PATIENCE: Duration = Duration::from_secs(1);
/// Who has not said a word for so long is not there.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Hosts, leases and demand of all workers. Cheap to clone.
///
/// # Guarantees
/// An item is lent to one host at a time. After a lease has ended, whatever its end was, nothing that
/// carries its fence is let through.
#[derive(Clone)]
pub struct Board(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pools: BTreeMap<Arc<str>, Pool>,
    claims: u64,
    /// Runs of all workers that have begun.
    runs: usize,
    is_draining: bool,
    is_closed: bool,
}

/// How long leases are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Without a heartbeat.
    pub lease: Duration,
    /// With any number of them.
    pub deadline: Duration,
    /// How often what is as it should be is looked at; as usual if none.
    pub resync: Option<Duration>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { lease: Duration::from_secs(60), deadline: Duration::from_secs(600), resync: None }
    }
}

/// A worker as others see it.
#[derive(Clone, Debug, Default)]
pub struct PoolView {
    /// All hosts that were ever heard of.
    pub hosts: Vec<HostView>,
    /// Items that are lent.
    pub leases: usize,
    /// Claims of hosts that wait for work.
    pub claims: usize,
}

/// A host as others see it.
#[derive(Clone, Debug)]
pub struct HostView {
    /// What it calls itself.
    pub host: Arc<str>,
    /// How long ago it was heard of.
    pub silent_for: Duration,
    /// When that was, for people.
    pub last_seen: Timestamp,
    /// Items that it has.
    pub leases: usize,
}

impl HostView {
    /// `Ready`, or `NotReady` after a minute without a word.
    pub fn phase(&self) -> &'static str {
        if self.silent_for < SILENCE_MAX { READY } else { NOT_READY }
    }
}

impl PoolView {
    /// `Ready` while one of its hosts is.
    pub fn phase(&self) -> &'static str {
        if self.hosts.iter().any(|it| it.phase() == READY) { READY } else { NOT_READY }
    }
}

const READY: &str = "Ready";
const NOT_READY: &str = "NotReady";

impl Board {
    /// No workers yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner { clock, state: Mutex::default() }))
    }

    /// Sets how long leases of `worker` are from now on.
    pub fn set_terms(&self, worker: &str, terms: Terms) {
        self.with(worker, |pool, _| pool.terms = terms);
    }

    /// How long leases of `worker` are.
    pub fn terms(&self, worker: &str) -> Terms {
        self.lock().pools.get(worker).map_or_else(Terms::default, |it| it.terms)
    }

    /// Forgets a worker: its leases end as if they had run out, who waits gets nothing.
    pub fn remove(&self, worker: &str) {
        let Some(pool) = self.lock().pools.remove(worker) else { return };
        for waiting in pool.waiting.values() {
            waiting.bell.notify_one();
        }
    }

    /// Sends everybody away who waits or comes to wait: we are about to stop.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        for waiting in state.pools.values().flat_map(|it| it.waiting.values()) {
            waiting.bell.notify_one();
        }
    }

    /// Begins nothing more: who waits may wait on, and what is lent may still be told of and come back.
    pub fn drain(&self) {
        self.lock().is_draining = true;
    }

    /// Whether anything is lent, on its way to a host, or has come back and is not written down yet.
    pub fn is_lending(&self) -> bool {
        let state = self.lock();
        let is_coming = |pool: &Pool| pool.waiting.values().any(|it| it.coming > 0);
        state.runs > 0 || state.pools.values().any(is_coming)
    }

    /// Lets them wait again: work is lent here once more.
    pub fn open(&self) {
        let mut state = self.lock();
        (state.is_draining, state.is_closed) = (false, false);
    }

    /// What hosts want of `worker` in objects of `kind`.
    pub fn demand(&self, worker: impl Into<Arc<str>>, kind: impl Into<Arc<str>>) -> Demand {
        Demand { board: self.clone(), worker: worker.into(), kind: kind.into() }
    }

    /// Notes that a host lives.
    pub fn touch(&self, worker: &str, host: &Arc<str>) {
        self.with(worker, |pool, now| pool.touch(host, now));
    }

    /// Forgets a host that says good-bye.
    pub fn leave(&self, worker: &str, host: &str) {
        self.with(worker, |pool, _| _ = pool.hosts.remove(host));
    }

    /// Waits for work. Returns as soon as there is some, or nothing after the wait. What was lent to a
    /// caller that went away before it got it goes back to the queue; what was lost on the way is handed
    /// out again to who repeats the claim.
    pub async fn claim(&self, worker: &str, ask: Ask) -> Vec<Claimed> {
        let time = self.0.clock.now();
        let repeated = self.with(worker, |pool, now| pool.repeated(&ask, now, time));
        if !repeated.is_empty() {
            return repeated;
        }
        let deadline = self.0.clock.elapsed().saturating_add(ask.wait.max(WAIT_MIN));
        let queued = self.enter(worker, ask);
        loop {
            let (is_served, coming) = queued.look();
            let now = self.0.clock.elapsed();
            let end = if coming > 0 { deadline.saturating_add(PATIENCE) } else { deadline };
            if is_served || now >= end {
                return queued.leave();
            }
            tokio::select! {
                biased;
                () = queued.bell.notified() => {}
                () = self.0.clock.sleep(end - now) => {}
            }
        }
    }

    /// Extends leases. Answers for each item with its new end, or why it is lost.
    pub fn heartbeat(
        &self,
        worker: &str,
        host: &Arc<str>,
        items: &[(Arc<str>, u64)],
    ) -> Vec<Result<Timestamp, Stale>> {
        self.touch(worker, host);
        let time = self.0.clock.now();
        self.with(worker, |pool, now| {
            let lease = pool.terms.lease;
            let extend = |(item, fence): &(Arc<str>, u64)| {
                let held = pool.held(item, *fence, now)?;
                held.expires = now.saturating_add(lease).min(held.ends);
                Ok(after(time, held.expires.saturating_sub(now)))
            };
            items.iter().map(extend).collect()
        })
    }

    /// The lease that `fence` was given for.
    ///
    /// # Errors
    /// [`Stale`].
    pub fn check(&self, worker: &str, item: &str, fence: u64) -> Result<Leased, Stale> {
        self.with(worker, |pool, now| Ok(pool.held_to_write(item, fence, now)?.leased.clone()))
    }

    /// Who has an item, of whatever worker.
    pub fn holder(&self, item: &str) -> Option<(Arc<str>, Leased)> {
        let now = self.0.clock.elapsed();
        let state = self.lock();
        state.pools.iter().find_map(|(worker, pool)| {
            let lease = pool.leases.get(item).filter(|it| it.expires > now)?;
            Some((worker.clone(), lease.leased.clone()))
        })
    }

    /// Notes a word about a lease, for whoever gives its end a meaning.
    ///
    /// # Errors
    /// [`Stale`].
    pub fn note(&self, worker: &str, item: &str, fence: u64, word: &str) -> Result<(), Stale> {
        self.with(worker, |pool, now| {
            pool.held(item, fence, now)?.leased.said = Some(word.into());
            Ok(())
        })
    }

    /// Ends a lease, and completes when what that means was written down. Again with the same fence it
    /// changes nothing.
    ///
    /// # Errors
    /// [`Stale`].
    pub async fn finish(&self, worker: &str, item: &str, fence: u64, report: Report) -> Result<(), Stale> {
        let (done, is_done) = oneshot::channel();
        self.with(worker, |pool, now| {
            if pool.has_ended(item, fence) {
                return Ok(());
            }
            pool.held_to_write(item, fence, now)?;
            let Some(Lease { leased, end: Some(end), .. }) = pool.drop_lease(item, fence) else {
                return Ok(());
            };
            pool.note_end(&leased);
            end.send(End::Reported(Box::new(leased), report, done)).ok();
            Ok(())
        })?;
        // Dropped without a word when the controller stops: the item is run again then.
        is_done.await.ok();
        Ok(())
    }

    /// Whether a report under this fence was taken and ended the lease: all that it said has been done.
    pub fn has_ended(&self, worker: &str, item: &str, fence: u64) -> bool {
        self.with_known(worker, |pool, _| pool.has_ended(item, fence)).unwrap_or_default()
    }

    /// Gives an item back that a host will not get to: it is due again at once, and nobody has failed.
    ///
    /// # Errors
    /// [`Stale`].
    pub fn release(&self, worker: &str, item: &str, fence: u64) -> Result<(), Stale> {
        self.with(worker, |pool, now| {
            pool.held_to_write(item, fence, now)?;
            pool.unlend(item, fence);
            Ok(())
        })
    }

    /// Takes an item from whoever has it, as if it had been given back. Says who had it.
    pub fn take_back(&self, worker: &str, item: &str) -> Option<Leased> {
        let take = |pool: &mut Pool, _| {
            let leased = pool.leases.get(item)?.leased.clone();
            pool.unlend(item, leased.fence.number);
            Some(leased)
        };
        self.with_known(worker, take).flatten()
    }

    /// Who has an item of a worker, and since when by the clock's `elapsed`.
    pub fn leases(&self, worker: &str) -> Vec<Leased> {
        let now = self.0.clock.elapsed();
        let state = self.lock();
        let pool = state.pools.get(worker);
        let leases = pool.into_iter().flat_map(|it| it.leases.values()).filter(|it| it.expires > now);
        leases.map(|it| it.leased.clone()).collect()
    }

    /// What is known of a worker.
    pub fn view(&self, worker: &str) -> PoolView {
        let (now, time) = (self.0.clock.elapsed(), self.0.clock.now());
        let state = self.lock();
        let Some(pool) = state.pools.get(worker) else { return PoolView::default() };
        let leases = |host: &str| pool.leases.values().filter(|it| &*it.leased.host == host).count();
        let host = |(host, seen): (&Arc<str>, &Duration)| {
            let silent_for = now.saturating_sub(*seen);
            let span = SignedDuration::try_from(silent_for).unwrap_or(SignedDuration::MAX);
            let last_seen = time.checked_sub(span).unwrap_or(Timestamp::MIN);
            HostView { host: host.clone(), silent_for, last_seen, leases: leases(host) }
        };
        PoolView {
            hosts: pool.hosts.iter().map(host).collect(),
            leases: pool.leases.len(),
            claims: pool.waiting.len(),
        }
    }

    /// All workers in numbers: leases, claims that wait, and what has happened so far.
    pub(super) fn numbers(&self) -> Vec<(Arc<str>, usize, usize, Counts)> {
        let numbers = |(worker, pool): (&Arc<str>, &Pool)| {
            (worker.clone(), pool.leases.len(), pool.waiting.len(), pool.counts)
        };
        self.lock().pools.iter().map(numbers).collect()
    }

    pub(super) fn reserve(&self, worker: &str, kind: &str) -> Option<u64> {
        if self.lock().is_draining {
            return None;
        }
        self.with_known(worker, |pool, _| pool.reserve(kind)).flatten()
    }

    pub(super) fn is_wanted(&self, worker: &str, kind: &str) -> bool {
        let state = self.lock();
        !state.is_draining && state.pools.get(worker).is_some_and(|it| it.is_wanted(kind))
    }

    pub(super) fn attach(&self, worker: &str, bell: Weak<Notify>) {
        self.with(worker, |pool, _| pool.attach(bell));
    }

    pub(super) fn give_back(&self, worker: &str, claim: u64) {
        ring(self.with_known(worker, |pool, _| pool.give_back(claim)).unwrap_or_default());
    }

    /// Counts a run until it is dropped.
    pub(super) fn begin(&self) -> Begun {
        self.lock().runs += 1;
        Begun(self.clone())
    }

    /// Lends an item to the host that it was prepared for; none if nobody waits any more.
    pub(super) fn lend(
        &self,
        worker: &Arc<str>,
        claim: Option<u64>,
        offer: &Offer,
        fence: &Fence,
        reasons: &Reasons,
    ) -> Option<Held> {
        let time = self.0.clock.now();
        let (end, ended) = oneshot::channel();
        let leased = self.with(worker, |pool, now| {
            let terms = pool.terms;
            let waiting = pool.receiver(claim, &offer.key)?;
            let leased = Leased {
                item: offer.item.clone(),
                key: offer.key.clone(),
                object: offer.object.clone(),
                fence: fence.clone(),
                host: waiting.ask.host.clone(),
                since: now,
                since_time: time,
                reasons: reasons.clone(),
                attempt: offer.attempt,
                context: offer.context.clone(),
                said: None,
            };
            let ends = now.saturating_add(terms.deadline);
            let expires = now.saturating_add(terms.lease).min(ends);
            let claim = waiting.ask.id.clone();
            let lease = Lease { leased: leased.clone(), claim, expires, ends, end: Some(end) };
            waiting.got.push(lease.claimed(now, time));
            if waiting.is_served() {
                waiting.bell.notify_one();
            }
            pool.leases.insert(offer.item.clone(), lease);
            Some(leased)
        })?;
        Some(Held { board: self.clone(), worker: worker.clone(), leased, ended })
    }

    /// How long a lease still lasts. One that has run out is gone with this call, one that ended in
    /// another way was gone before.
    pub(super) fn remaining(&self, worker: &str, leased: &Leased) -> Result<Duration, Option<Box<Leased>>> {
        let look = |pool: &mut Pool, now: Duration| {
            let number = leased.fence.number;
            let lease = pool.leases.get(&leased.item).filter(|it| it.leased.fence.number == number);
            match lease.ok_or(None)?.expires.checked_sub(now).filter(|it| !it.is_zero()) {
                Some(remaining) => Ok(remaining),
                None => {
                    pool.counts.expired += 1;
                    Err(pool.drop_lease(&leased.item, number).map(|it| Box::new(it.leased)))
                }
            }
        };
        self.with_known(worker, look).unwrap_or(Err(None))
    }

    pub(super) fn drop_lease(&self, worker: &str, leased: &Leased) {
        self.with_known(worker, |pool, _| drop(pool.drop_lease(&leased.item, leased.fence.number)));
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    fn enter(&self, worker: &str, ask: Ask) -> Queued {
        let bell = Arc::new(Notify::new());
        let mut state = self.lock();
        state.claims += 1;
        let (number, is_closed) = (state.claims, state.is_closed);
        let now = self.0.clock.elapsed();
        let pool = state.pools.entry(worker.into()).or_default();
        pool.touch(&ask.host, now);
        let wanted = if is_closed { 0 } else { ask.limit };
        pool.waiting.insert(number, Waiting { wanted, ask, coming: 0, got: Vec::new(), bell: bell.clone() });
        let bells = pool.bells();
        drop(state);
        ring(bells);
        Queued { board: self.clone(), worker: worker.into(), number, bell }
    }

    /// A worker that nobody knows is not made known by its leftovers.
    fn with_known<T>(&self, worker: &str, change: impl FnOnce(&mut Pool, Duration) -> T) -> Option<T> {
        let now = self.0.clock.elapsed();
        Some(change(self.lock().pools.get_mut(worker)?, now))
    }

    fn with<T>(&self, worker: &str, change: impl FnOnce(&mut Pool, Duration) -> T) -> T {
        let now = self.0.clock.elapsed();
        let mut state = self.lock();
        match state.pools.get_mut(worker) {
            Some(pool) => change(pool, now),
            None => change(state.pools.entry(worker.into()).or_default(), now),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run that has begun, whatever it still has to do.
pub(super) struct Begun(Board);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.lock().runs -= 1;
    }
}

/// A host's place in the line. Dropped, what it was lent goes back.
struct Queued {
    board: Board,
    worker: Arc<str>,
    number: u64,
    bell: Arc<Notify>,
}

impl Queued {
    /// Whether it has all that it will get, and how much is on its way.
    fn look(&self) -> (bool, usize) {
        let state = self.board.lock();
        let waiting = state.pools.get(&self.worker).and_then(|it| it.waiting.get(&self.number));
        waiting.map_or((true, 0), |it| (it.is_served() || state.is_closed, it.coming))
    }

    fn leave(self) -> Vec<Claimed> {
        self.take()
    }

    fn take(&self) -> Vec<Claimed> {
        let mut state = self.board.lock();
        let pool = state.pools.get_mut(&self.worker);
        pool.and_then(|it| it.waiting.remove(&self.number)).map(|it| it.got).unwrap_or_default()
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let lost = self.take();
        if !lost.is_empty() {
            self.board.with_known(&self.worker, |pool, _| {
                lost.iter().for_each(|it| pool.unlend(&it.item, it.fence));
            });
        }
    }
}

impl std::fmt::Debug for Board {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.lock().pools.keys()).finish()
    }
}
