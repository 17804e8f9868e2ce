//! One watch: a cursor, a filter, and a sense of time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use concert_model::{Encoded, FieldError, FieldPath, ResourceVersion, Revision};
use futures_util::future::BoxFuture;
use futures_util::stream;

use super::hub::{Batch, Found, Published};
use super::{Inner, Shared, revision_of};
use crate::backend::{Act, Backend, Failure};
use crate::clock::Clock;
use crate::contract::{Event, Events, PageRequest, Query, Result};
use crate::error::Error;

/// Log rows read at once by a watch that has fallen behind the ring.
const TAIL_ROWS: usize = 500;

pub(super) async fn start(
    inner: &Arc<Inner>,
    query: &Query,
    from: Option<&ResourceVersion>,
) -> Result<Events> {
    inner.check_query(query).await?;
    let (cursor, initial) = match from {
        Some(version) => (inner.check_position(version).await?, Vec::new()),
        None => {
            let page = inner.list(query, &PageRequest::whole(), None).await?;
            let cursor = revision_of(&page.position).unwrap_or_default();
            (cursor, page.items)
        }
    };
    let mut initial = initial;
    initial.reverse();
    let watch = Watch {
        backend: inner.backend.clone(),
        is_inline: inner.driver.is_inline(),
        shared: inner.shared.clone(),
        clock: inner.clock.clone(),
        query: query.clone(),
        initial,
        is_initial_end_due: from.is_none(),
        cursor,
        announced: cursor,
        batch: None,
        bookmark_every: inner.bookmark_every,
        bookmark: inner.clock.sleep(inner.bookmark_every),
        has_ended: false,
    };
    let next = |mut watch: Watch| async move {
        if watch.has_ended {
            return None;
        }
        let event = watch.next().await?;
        watch.has_ended = event.is_err();
        Some((event, watch))
    };
    Ok(Events::new(stream::unfold(watch, next)))
}

impl Inner {
    /// The revision of a position that a watch may start from.
    pub(super) async fn check_position(&self, version: &ResourceVersion) -> Result<Revision> {
        let invalid = |detail: &str| {
            let field = FieldPath::new("resourceVersion");
            Error::invalid("watch", FieldError::invalid_text(field, &version.0, detail))
        };
        let revision = revision_of(version).ok_or_else(|| invalid("is not one of this store's"))?;
        let bounds = self.read_one(Backend::bounds).await?;
        if revision > bounds.newest {
            return Err(invalid("lies in the future of this store"));
        }
        if revision < bounds.compacted {
            return Err(Error::Expired);
        }
        Ok(revision)
    }
}

struct Watch {
    backend: Arc<dyn Backend>,
    is_inline: bool,
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    query: Query,
    /// Current objects still to be sent, last first.
    initial: Vec<Encoded>,
    is_initial_end_due: bool,
    /// Everything up to here was looked at.
    cursor: Revision,
    /// The last position the reader knows.
    announced: Revision,
    batch: Option<(Batch, usize)>,
    bookmark_every: Duration,
    bookmark: BoxFuture<'static, ()>,
    has_ended: bool,
}

impl Watch {
    async fn next(&mut self) -> Option<Result<Event>> {
        if let Some(object) = self.initial.pop() {
            return Some(Ok(Event::Added(object)));
        }
        if std::mem::take(&mut self.is_initial_end_due) {
            return Some(Ok(self.bookmark(true)));
        }
        loop {
            if let Some(event) = self.next_of_batch() {
                return Some(Ok(event));
            }
            let shared = self.shared.clone();
            // Before looking, so that what is published after the look is noticed.
            let mut more = pin!(shared.hub.more());
            more.as_mut().enable();
            match shared.hub.after(self.cursor) {
                Found::Batch(batch) => self.batch = Some((batch, 0)),
                Found::TooOld => {
                    match read_log(self.backend.clone(), shared.clone(), self.cursor, self.is_inline).await {
                        Ok(batch) => self.batch = Some((batch, 0)),
                        Err(error) => return Some(Err(error)),
                    }
                }
                Found::Nothing if shared.hub.is_closed() => return None,
                Found::Nothing => tokio::select! { biased;
                    () = more => {}
                    () = &mut self.bookmark => {
                        self.bookmark = self.clock.sleep(self.bookmark_every);
                        if self.cursor > self.announced {
                            return Some(Ok(self.bookmark(false)));
                        }
                    }
                },
            }
        }
    }

    fn bookmark(&mut self, is_initial_end: bool) -> Event {
        self.announced = self.cursor;
        Event::Bookmark { position: self.cursor.into(), is_initial_end }
    }

    fn next_of_batch(&mut self) -> Option<Event> {
        let (batch, next) = self.batch.as_mut()?;
        while let Some(change) = batch.get(*next) {
            *next += 1;
            if change.revision <= self.cursor {
                continue;
            }
            self.cursor = change.revision;
            if let Some(event) = event_of(&self.query, change) {
                self.announced = self.cursor;
                return Some(event);
            }
        }
        self.batch = None;
        None
    }
}

/// What the log has after `cursor`.
pub(super) async fn read_log(
    backend: Arc<dyn Backend>,
    shared: Arc<Shared>,
    cursor: Revision,
    is_inline: bool,
) -> Result<Batch> {
    let read = move || -> Result<Batch, Failure> {
        let changes = backend.tail(cursor, TAIL_ROWS)?;
        changes.into_iter().map(|change| Published::from_change(&shared, change)).collect()
    };
    if is_inline {
        return Ok(read()?);
    }
    let task = tokio::task::spawn_blocking(read);
    Ok(task.await.map_err(|e| Error::Unavailable(e.into()))??)
}

/// What `change` looks like through the selectors of `query`.
fn event_of(query: &Query, change: &Published) -> Option<Event> {
    if change.object.key().kind != query.kind {
        return None;
    }
    let is_seen = |object: &Encoded| query.selects(object.key(), object.head());
    let was_seen = change.previous.as_ref().is_some_and(&is_seen);
    match change.act {
        Act::Removed if was_seen => Some(Event::Deleted(change.object.clone())),
        Act::Removed => None,
        Act::Created | Act::Updated => match (was_seen, is_seen(&change.object)) {
            (false, true) => Some(Event::Added(change.object.clone())),
            (true, true) => Some(Event::Modified(change.object.clone())),
            // It left: the state that was seen last, at the position of the change that took it away.
            (true, false) => {
                let last = change.previous.as_ref()?;
                Some(Event::Deleted(Encoded::new(last.body().clone(), change.revision.into())))
            }
            (false, false) => None,
        },
    }
}
