//! One watch of many that share the server's.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use concert_model::{Encoded, ResourceVersion};
use futures_util::stream;

use super::super::Server;
use super::Order;
use super::reflector::{Reflector, Watcher};
use super::state::{Cursor, End, Next};
use crate::contract::{Event, Events, Query, Result};
use crate::error::Error;

/// Longest that a new watch waits for the shared one to tell what this store was answered before.
const CATCH_UP: Duration = Duration::from_secs(5);

/// A watch that shares the server's. None if that cannot serve it: then it needs one of its own.
///
/// # Errors
/// As [`crate::Store::watch`].
pub(in super::super) async fn subscribe(
    server: &Arc<Server>,
    query: &Query,
    from: Option<&ResourceVersion>,
) -> Result<Option<Events>> {
    if !query.labels.is_everything() || !query.fields.is_everything() {
        return Ok(None);
    }
    let place = from.map(Order::of);
    // Positions that this store did not give out are the server's to judge.
    if place.is_some_and(|order| order.is_none_or(|order| !server.has_seen(order))) {
        return Ok(None);
    }
    // One namespace alone is no reason to read all of them.
    let watcher = match &query.namespace {
        None => Some(server.registry.enter(&query.kind)),
        Some(_) => server.registry.join(&query.kind),
    };
    let Some(watcher) = watcher else { return Ok(None) };
    let reflector = watcher.reflector().clone();
    if let Err(error) = reflector.start(server, from).await {
        drop(watcher);
        server.registry.leave(&reflector, false);
        return Err(error);
    }
    let namespace = query.namespace.clone();
    let start = match place {
        Some(order) => {
            let cursor = reflector.state().resume(order.unwrap_or_default(), namespace);
            cursor.map(|cursor| (Vec::new(), None, cursor))
        }
        None if !is_caught_up(server, &reflector).await => None,
        None => {
            let start = reflector.state().start(namespace);
            start.map(|(objects, position, cursor)| (objects, Some(position), cursor))
        }
    };
    let Some((mut initial, initial_end, cursor)) = start else { return Ok(None) };
    initial.reverse();
    let subscription = Subscription { watcher, cursor, initial, initial_end, has_ended: false };
    Ok(Some(Events::new(stream::unfold(subscription, |mut subscription| async move {
        let event = subscription.next().await?;
        Some((event, subscription))
    }))))
}

/// Waits until the watch has told everything that this store was answered. False if it takes too long.
async fn is_caught_up(server: &Server, reflector: &Reflector) -> bool {
    let catch_up = async {
        loop {
            let mut news = pin!(reflector.news.notified());
            news.as_mut().enable();
            if reflector.state().is_caught_up() {
                return true;
            }
            news.await;
        }
    };
    tokio::select! {
        biased;
        done = catch_up => done,
        () = server.transport.clock.sleep(CATCH_UP) => false,
    }
}

struct Subscription {
    watcher: Watcher,
    cursor: Cursor,
    /// Current objects still to be sent, last first.
    initial: Vec<Encoded>,
    /// The position of what was current, until it is told.
    initial_end: Option<ResourceVersion>,
    has_ended: bool,
}

impl Subscription {
    async fn next(&mut self) -> Option<Result<Event>> {
        if self.has_ended {
            return None;
        }
        if let Some(object) = self.initial.pop() {
            return Some(Ok(Event::Added(object)));
        }
        if let Some(position) = self.initial_end.take() {
            return Some(Ok(Event::Bookmark { position, is_initial_end: true }));
        }
        let reflector = self.watcher.reflector().clone();
        loop {
            // Before looking, so that what is told after the look is noticed.
            let mut news = pin!(reflector.news.notified());
            news.as_mut().enable();
            let next = reflector.state().next(&mut self.cursor);
            self.has_ended = matches!(next, Next::Expired | Next::Ended(_));
            match next {
                Next::Event(event) => return Some(Ok(event)),
                Next::Nothing => news.await,
                Next::Expired => return Some(Err(Error::Expired)),
                Next::Ended(End::Closed) => return None,
                Next::Ended(End::UnknownKind) => {
                    let kind = self.watcher.kind().clone();
                    return Some(Err(Error::UnknownKind { kind }));
                }
            }
        }
    }
}
