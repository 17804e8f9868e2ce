//! The task behind parked items: keeps the watches they need and compares what they read.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use concert_model::ObjectKey;
use concert_store::{Chance, Error};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tracing::warn;

use crate::alarm::Alarm;
use crate::backoff::Backoff;
use crate::follow::{Change, Follow};
use crate::outcome::Wait;
use crate::shutdown::Shutdown;

use super::park::Unverified;
use super::shared::Shared;
use super::waits::Scope;

/// How long a watch is kept that nobody needs: items often wait for the same thing again.
const LINGER: Duration = Duration::from_secs(60);

/// Items that are compared at a time: after a restart there may be very many.
const CHECKS_MAX: usize = 64;

/// Between tries to compare while the store does not answer.
const RETRY: Backoff = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(10) };

pub(super) async fn run(shared: Arc<Shared>, chance: Chance, shutdown: Shutdown) {
    let mut stop = pin!(shutdown.requested());
    let mut lot =
        Lot { shared: shared.clone(), chance, shutdown: shutdown.clone(), watches: BTreeMap::new() };
    let mut follows: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    let mut checks: FuturesUnordered<BoxFuture<'static, Option<Verify>>> = FuturesUnordered::new();
    // At most one for each parked item, of which there are no more than the queue may know.
    let mut rests: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    let mut alarm = Alarm::new(shared.clock.clone());
    loop {
        follows.extend(lot.start_watches());
        alarm.set(lot.end_unused());
        checks.extend(lot.verifications(CHECKS_MAX - checks.len()));
        tokio::select! {
            biased;
            () = &mut stop => return,
            Some(()) = follows.next() => {}
            Some(failed) = checks.next() => rests.extend(failed.map(Verify::rest)),
            Some(()) = rests.next() => {}
            () = shared.bells.parking.notified() => {}
            () = alarm.ring() => {}
        }
    }
}

struct Lot {
    shared: Arc<Shared>,
    chance: Chance,
    shutdown: Shutdown,
    watches: BTreeMap<Scope, Watch>,
}

struct Watch {
    end: Shutdown,
    unused_since: Option<Duration>,
}

impl Lot {
    fn start_watches(&mut self) -> Vec<BoxFuture<'static, ()>> {
        let wanted: Vec<Scope> = self.shared.with(|core| core.waits.scopes().cloned().collect());
        let mut started = Vec::new();
        for scope in wanted {
            if self.watches.contains_key(&scope) {
                continue;
            }
            let end = self.shutdown.child();
            self.watches.insert(scope.clone(), Watch { end: end.clone(), unused_since: None });
            started.push(self.watch(scope, end));
        }
        started
    }

    /// Ends watches that nobody needed for a while; says when to look again.
    fn end_unused(&mut self) -> Option<Duration> {
        let now = self.shared.now();
        let wanted: Vec<Scope> = self.shared.with(|core| core.waits.scopes().cloned().collect());
        self.watches.retain(|scope, watch| {
            if wanted.binary_search(scope).is_ok() {
                watch.unused_since = None;
                return true;
            }
            let since = *watch.unused_since.get_or_insert(now);
            if now.saturating_sub(since) < LINGER {
                return true;
            }
            watch.end.request();
            self.shared.with(|core| core.scope_unwatched(scope));
            false
        });
        self.watches.values().filter_map(|it| it.unused_since).min().map(|since| since + LINGER)
    }

    fn watch(&self, scope: Scope, end: Shutdown) -> BoxFuture<'static, ()> {
        let shared = self.shared.clone();
        let (store, clock, chance) = (shared.store.clone(), shared.clock.clone(), self.chance.clone());
        let follow = Follow { store, clock, chance, query: scope.query(), relist: shared.relist };
        Box::pin(async move {
            let tell = |change: &Change| {
                let now = shared.now();
                shared.with(|core| match change {
                    // Lists are compared item by item, once they are complete.
                    Change::ListBegins | Change::Present { is_listed: true, .. } => {}
                    Change::Present { object, .. } => core.object_changed(object.key(), Some(object), now),
                    Change::Gone(object) => core.object_changed(object.key(), None, now),
                    Change::ListEnds | Change::Unserved => core.scope_watched(&scope),
                });
                Ok(())
            };
            follow.run(&end, &shared.bells.room, tell).await;
        })
    }

    fn verifications(&self, max: usize) -> Vec<BoxFuture<'static, Option<Verify>>> {
        let ripe = self.shared.with(|core| core.take_unverified(max));
        let begin = |(item, unverified, waits)| {
            let (shared, chance) = (self.shared.clone(), self.chance.clone());
            let verify = Verify { shared, chance, item, unverified };
            Box::pin(verify.run(waits)) as BoxFuture<'static, Option<Verify>>
        };
        ripe.into_iter().map(begin).collect()
    }
}

/// Compares what one item read with what is now.
struct Verify {
    shared: Arc<Shared>,
    chance: Chance,
    item: ObjectKey,
    unverified: Unverified,
}

impl Verify {
    /// Returns itself if it must be tried again.
    async fn run(self, waits: Vec<Wait>) -> Option<Self> {
        let mut has_failed = false;
        for wait in &waits {
            match self.is_outdated(wait).await {
                Ok(false) => {}
                Ok(true) => {
                    let now = self.shared.now();
                    self.shared.with(|core| core.wake_item(&self.item, now));
                    return None;
                }
                Err(error) => {
                    has_failed = true;
                    warn!(item = %self.item, %wait, %error, "cannot compare what is waited for");
                }
            }
        }
        has_failed.then_some(self)
    }

    /// Stands in line again after a while. Not one of the checks: others need not wait for what fails.
    fn rest(mut self) -> BoxFuture<'static, ()> {
        self.unverified.failures = self.unverified.failures.saturating_add(1);
        Box::pin(async move {
            self.shared.clock.sleep(RETRY.delay(self.unverified.failures, &self.chance)).await;
            self.shared.with(|core| core.verify(self.item, self.unverified));
        })
    }

    async fn is_outdated(&self, wait: &Wait) -> Result<bool, Error> {
        let has_gap = self.unverified.has_gap;
        match wait {
            Wait::Object { key, .. } => match self.shared.store.get(key).await {
                Ok(object) => Ok(wait.is_outdated(Some(&object), has_gap)),
                Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => {
                    Ok(wait.is_outdated(None, has_gap))
                }
                Err(error) => Err(error),
            },
            Wait::Label { label, seen } => match &self.shared.versions {
                Some(versions) => versions.version(label).await.map(|now| now != *seen),
                None => Ok(has_gap),
            },
        }
    }
}
