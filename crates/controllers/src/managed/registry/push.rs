//! Changes that a provider pushes wake the objects concerned at once.
//!
//! What was to be pushed while nobody listened is told to nobody. So after a gap everything is looked at once,
//! as if it were time for a poll.

use std::sync::Arc;
use std::time::Duration;

use concert_engine::{Backoff, Handle, Lane, OnExit, Tasks};
use concert_model::{GroupVersionKind, ObjectKey};
use concert_provider::{Changes, Class, Connector, Moved};
use concert_store::{Chance, Clock, PageRequest, Query, Store};
use futures_util::StreamExt;
use tracing::{debug, warn};

use super::super::vocabulary::annotation;

/// Between tries to listen.
const RETRY: Backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_secs(30) };

/// A stream that has not ended after so long has begun. Servers need not say so before the first change.
const LASTING: Duration = Duration::from_secs(1);

/// Objects looked at in one go when only an external name is known.
const PAGE: usize = 500;

/// What listens for one kind.
pub(super) struct Pushing {
    pub connector: Arc<dyn Connector>,
    pub kind: GroupVersionKind,
    pub handle: Handle,
    /// Whether somebody has listened to this provider before, until its connection was lost.
    pub is_back: bool,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub chance: Chance,
}

/// Starts to listen, until `tasks` stop.
pub(super) fn start(pushing: Pushing, tasks: &Tasks) {
    let shutdown = tasks.shutdown().clone();
    tasks.spawn(format!("push/{}", pushing.kind.group_kind), OnExit::Log, async move {
        tokio::select! {
            biased;
            () = shutdown.requested() => {}
            () = pushing.listen() => {}
        }
    });
}

impl Pushing {
    async fn listen(&self) {
        let (mut failures, mut has_gap) = (0, self.is_back);
        loop {
            match self.connector.watch(&self.kind).await {
                Ok(changes) => self.follow(changes, &mut failures, &mut has_gap).await,
                Err(error) if error.class == Class::NotServed => {
                    debug!(kind = %self.kind, "changes are not pushed");
                    return;
                }
                Err(error) => {
                    warn!(kind = %self.kind, %error, "cannot listen for changes");
                    has_gap = true;
                }
            }
            failures += 1;
            self.clock.sleep(RETRY.delay(failures, &self.chance)).await;
        }
    }

    /// Wakes what one stream tells of, until it ends. `has_gap`: there was a time when nobody listened; cleared
    /// once everything was looked at, and set when this one ends, even before it has begun.
    async fn follow(&self, mut changes: Changes, failures: &mut u32, has_gap: &mut bool) {
        let mut lasting = self.clock.sleep(LASTING);
        let mut has_begun = false;
        loop {
            let change = tokio::select! {
                biased;
                change = changes.next() => Some(change),
                () = &mut lasting, if !has_begun => None,
            };
            if !has_begun && !matches!(change, Some(None | Some(Err(_)))) {
                has_begun = true;
                if std::mem::take(has_gap) {
                    self.wake_all().await;
                }
            }
            match change {
                // It lasts.
                None => {}
                Some(None) => break,
                Some(Some(Ok(moved))) => {
                    *failures = 0;
                    self.wake(&moved).await;
                }
                Some(Some(Err(error))) => debug!(kind = %self.kind, %error, "pushed changes end"),
            }
        }
        *has_gap = true;
    }

    /// Looks at all objects, behind whatever is more urgent.
    async fn wake_all(&self) {
        // Before, those that are at rest are not known yet, and would stay so until their poll.
        self.handle.ready().await;
        for state in self.handle.states() {
            self.handle.wake(&state.key, Lane::Poll, "external", Duration::ZERO);
        }
    }

    async fn wake(&self, moved: &Moved) {
        let key = match self.find(moved).await {
            Ok(Some(key)) => key,
            Ok(None) => {
                debug!(kind = %self.kind, external_name = %moved.external_name,
                    "a change of what nobody declared");
                return;
            }
            Err(error) => {
                warn!(kind = %self.kind, %error, "cannot find out whom a change is about: all are looked at");
                return self.wake_all().await;
            }
        };
        if let Err(error) = self.handle.enqueue(&key, Lane::Event, "external") {
            debug!(%key, %error, "cannot look at what was pushed");
        }
    }

    /// The object that a change is about; none if nobody declared such a thing.
    async fn find(&self, moved: &Moved) -> Result<Option<ObjectKey>, concert_store::Error> {
        let kind = self.kind.group_kind.clone();
        if !moved.object.is_empty() {
            let (namespace, name) = moved.object.split_once('/').unwrap_or(("", &moved.object));
            return Ok(Some(ObjectKey::namespaced(kind, namespace, name)));
        }
        let mut page = PageRequest { limit: Some(PAGE), token: None };
        loop {
            let found = self.store.list(&Query::all(kind.clone()), &page).await?;
            let is_it = |object: &concert_model::Object| {
                object.annotation(annotation::EXTERNAL_NAME) == Some(&moved.external_name)
            };
            if let Some(object) = found.items.iter().find(|it| is_it(&it.decode())) {
                return Ok(Some(object.key().clone()));
            }
            let Some(next) = found.next else { return Ok(None) };
            page.token = Some(next);
        }
    }
}
