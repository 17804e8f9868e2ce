//! A watch that never ends: lists, watches, resumes, lists again.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use concert_model::{Encoded, ResourceVersion};
use concert_store::{Chance, Clock, Error, Event, Events, Query, Store};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tracing::{debug, warn};

use crate::alarm::yield_now;
use crate::backoff::Backoff;
use crate::queue::Full;
use crate::shutdown::Shutdown;

/// Between tries to reach a store that does not answer.
const RETRY: Backoff = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(10) };

/// When somebody who could make room forgets to say so.
const ROOM_RETRY: Duration = Duration::from_secs(1);

/// Events that are handed on before others get a turn.
const EVENTS_AT_ONCE: usize = 256;

/// What happens to the objects of a query.
pub enum Change {
    /// All objects follow, as [`Change::Present`] in a list.
    ListBegins,
    /// It is there in this state.
    Present {
        /// The state.
        object: Encoded,
        /// Part of a list, and not of the changes after it.
        is_listed: bool,
    },
    /// It is gone; this was its final state.
    Gone(Encoded),
    /// All objects there are have been told; from here on no change is missed.
    ListEnds,
    /// Their kind is not there any more, and so none of them is.
    Unserved,
}

/// Follows one query.
pub struct Follow {
    /// Where the objects are.
    pub store: Arc<dyn Store>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes jitter.
    pub chance: Chance,
    /// Which objects.
    pub query: Query,
    /// How often to list again although nothing says so.
    pub relist: Option<Duration>,
}

/// Where a watch stopped.
enum Stop {
    /// It ended; it may go on from where it was.
    Ended,
    /// It is time to list again.
    Due,
    Failed(Error),
}

impl Follow {
    /// Tells `tell` everything, until asked to stop. When there is no room for a change, waits until
    /// `room` rings and tells it again.
    pub async fn run(
        &self,
        shutdown: &Shutdown,
        room: &Notify,
        mut tell: impl FnMut(&Change) -> Result<(), Full> + Send,
    ) {
        let mut stop = pin!(shutdown.requested());
        tokio::select! {
            biased;
            () = &mut stop => {}
            () = self.follow(room, &mut tell) => {}
        }
    }

    async fn follow(&self, room: &Notify, tell: &mut (impl FnMut(&Change) -> Result<(), Full> + Send)) {
        let mut position = None;
        let mut failures = 0;
        let mut due = self.due();
        loop {
            if position.is_none() {
                self.tell(&Change::ListBegins, room, tell).await;
            }
            let mut has_news = false;
            let stop = match self.store.watch(&self.query, position.as_ref()).await {
                Ok(events) => self.drain(events, &mut due, &mut position, &mut has_news, room, tell).await,
                Err(error) => Stop::Failed(error),
            };
            failures = if has_news { 0 } else { failures + 1 };
            match stop {
                Stop::Ended => debug!(kind = %self.query.kind, "watch ended"),
                Stop::Due => (position, failures) = (None, 0),
                // An invalid position is one of a store that was put back to an earlier day.
                Stop::Failed(Error::Expired | Error::Invalid { .. }) if position.is_some() => {
                    debug!(kind = %self.query.kind, "watch position expired");
                    position = None;
                }
                Stop::Failed(error) => {
                    if matches!(error, Error::UnknownKind { .. }) && position.take().is_some() {
                        self.tell(&Change::Unserved, room, tell).await;
                    }
                    warn!(kind = %self.query.kind, %error, failures, "watch failed");
                    failures = failures.max(1);
                }
            }
            if failures > 0 {
                self.clock.sleep(RETRY.delay(failures, &self.chance)).await;
            }
        }
    }

    /// When to list again, at the latest.
    fn due(&self) -> BoxFuture<'static, ()> {
        match self.relist {
            Some(interval) => self.clock.sleep(interval),
            None => Box::pin(std::future::pending()),
        }
    }

    async fn drain(
        &self,
        mut events: Events,
        due: &mut BoxFuture<'static, ()>,
        position: &mut Option<ResourceVersion>,
        has_news: &mut bool,
        room: &Notify,
        tell: &mut (impl FnMut(&Change) -> Result<(), Full> + Send),
    ) -> Stop {
        let mut is_listed = position.is_none();
        let mut count = 0;
        loop {
            let event = tokio::select! {
                biased;
                event = events.next() => match event {
                    Some(Ok(event)) => event,
                    Some(Err(error)) => return Stop::Failed(error),
                    None => return Stop::Ended,
                },
                () = &mut *due => {
                    *due = self.due();
                    return Stop::Due;
                }
            };
            *has_news = true;
            let is_end_of_list = matches!(event, Event::Bookmark { is_initial_end: true, .. });
            // Objects of a list come in the order of their names: none of them is a place to resume at.
            let at = (!is_listed || is_end_of_list).then(|| event.position().clone());
            let change = match event {
                Event::Added(object) | Event::Modified(object) => Change::Present { object, is_listed },
                Event::Deleted(object) => Change::Gone(object),
                Event::Bookmark { .. } if is_end_of_list && is_listed => Change::ListEnds,
                Event::Bookmark { .. } => {
                    *position = at.or(position.take());
                    continue;
                }
            };
            self.tell(&change, room, tell).await;
            is_listed &= !is_end_of_list;
            *position = at.or(position.take());
            count += 1;
            if count % EVENTS_AT_ONCE == 0 {
                yield_now().await;
            }
        }
    }

    async fn tell(
        &self,
        change: &Change,
        room: &Notify,
        tell: &mut (impl FnMut(&Change) -> Result<(), Full> + Send),
    ) {
        loop {
            let mut ring = pin!(room.notified());
            ring.as_mut().enable();
            let Err(full) = tell(change) else { return };
            warn!(kind = %self.query.kind, capacity = full.capacity, "no room for a change");
            tokio::select! {
                biased;
                () = ring => {}
                () = self.clock.sleep(ROOM_RETRY) => {}
            }
        }
    }
}
