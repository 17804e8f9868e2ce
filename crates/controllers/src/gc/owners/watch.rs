//! One watch per kind, started and stopped as kinds come and go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use concert_engine::{Backoff, EnqueueError, Lane, OnExit, Reason};
use concert_model::{GroupKind, ObjectKey, ResourceVersion};
use concert_store::{Error, Event, PageRequest, Query};
use tracing::{debug, warn};

use super::index::Ticket;
use super::run::Owners;

/// Between tries to watch a kind.
const RETRY: Backoff = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(10) };

/// When the queue is full.
const ROOM_RETRY: Duration = Duration::from_secs(1);

/// Objects of a list that are in memory at a time.
const PAGE_OBJECTS: usize = 500;

/// Events that are taken before others get a turn.
const EVENTS_AT_ONCE: usize = 256;

/// How long a watch may take to notice that it is to end.
const PATIENCE: Duration = Duration::from_secs(5);

impl Owners {
    /// Makes what is watched match what is served.
    pub(super) async fn watch_kinds(self: &Arc<Self>) {
        if self.handle().is_none() {
            // Nobody could be told yet, or any more. Whoever sets the handle asks again.
            return;
        }
        let (mut wakes, mut ended) = (Vec::new(), Vec::new());
        {
            let mut watches = self.watches();
            // Only now: whoever asked earlier and comes later would end the watch of a kind that is new since.
            let wanted: BTreeSet<GroupKind> = self.collected_kinds().into_iter().collect();
            let unwanted: Vec<_> = watches.keys().filter(|kind| !wanted.contains(kind)).cloned().collect();
            for kind in unwanted {
                wakes.extend(self.index().close(&kind));
                ended.extend(watches.remove(&kind));
            }
            for kind in wanted {
                if !watches.contains_key(&kind) {
                    let tasks = self.tasks.group();
                    let ticket = self.index().open(kind.clone());
                    let (owners, shutdown) = (self.clone(), tasks.shutdown().clone());
                    tasks.spawn(format!("gc/watch/{kind}"), OnExit::Log, async move {
                        tokio::select! {
                            biased;
                            () = shutdown.requested() => {}
                            () = owners.follow(&ticket) => {}
                        }
                    });
                    watches.insert(kind, tasks);
                }
            }
        }
        for tasks in ended {
            tasks.stop(PATIENCE).await;
        }
        self.wake(wakes, Lane::Event, "kind").await;
    }

    async fn follow(&self, ticket: &Ticket) {
        let (kind, mut position, mut failures) = (&ticket.kind, None, 0);
        loop {
            let result = async {
                if position.is_none() {
                    position = Some(self.list(ticket).await?);
                }
                self.drain(ticket, &mut position, &mut failures).await
            };
            match result.await {
                Ok(()) => debug!(%kind, "watch ended"),
                // An invalid position is one of a store that was put back to an earlier day.
                Err(Error::Expired | Error::Invalid { .. }) => position = None,
                Err(error) => warn!(%kind, %error, failures, "watch failed"),
            }
            failures += 1;
            self.clock.sleep(RETRY.delay(failures, &self.chance)).await;
        }
    }

    /// Tells the index all objects there are, page by page: only what has owners stays in memory.
    async fn list(&self, ticket: &Ticket) -> Result<ResourceVersion, Error> {
        self.index().list_begins(ticket);
        let query = Query::all(ticket.kind.clone());
        let mut page = PageRequest { limit: Some(PAGE_OBJECTS), token: None };
        loop {
            let listed = self.store.list(&query, &page).await?;
            for object in &listed.items {
                let wakes = self.index().present(ticket, object);
                self.wake(wakes, Lane::Poll, "listed").await;
            }
            if listed.next.is_none() {
                let wakes = self.index().list_ends(ticket);
                self.wake(wakes, Lane::Poll, "listed").await;
                self.lists.change(|count| *count += 1);
                return Ok(listed.position);
            }
            page.token = listed.next;
            tokio::task::yield_now().await;
        }
    }

    async fn drain(
        &self,
        ticket: &Ticket,
        position: &mut Option<ResourceVersion>,
        failures: &mut u32,
    ) -> Result<(), Error> {
        let query = Query::all(ticket.kind.clone());
        let mut events = self.store.watch(&query, position.as_ref()).await?;
        let mut count = 0;
        while let Some(event) = events.next().await {
            let event = event?;
            let wakes = match &event {
                Event::Added(object) | Event::Modified(object) => self.index().present(ticket, object),
                Event::Deleted(object) => self.index().gone(ticket, object),
                Event::Bookmark { .. } => Vec::new(),
            };
            self.wake(wakes, Lane::Event, "changed").await;
            *position = Some(event.position().clone());
            *failures = 0;
            count += 1;
            if count % EVENTS_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Has somebody look at these objects.
    pub(super) async fn wake(&self, keys: Vec<ObjectKey>, lane: Lane, reason: Reason) {
        if keys.is_empty() {
            return;
        }
        let Some(handle) = self.handle() else { return };
        for key in keys {
            while let Err(EnqueueError::Full(full)) = handle.enqueue(&key, lane, reason) {
                warn!(capacity = full.capacity, "no room for an object to collect");
                self.clock.sleep(ROOM_RETRY).await;
            }
        }
    }
}
