//! Changes as server-sent events.
//!
//! The log of the store is read with one cursor, so an event's id says what was seen of all kinds, and
//! `Last-Event-ID` goes on from there without a gap. What an event says, and to whom, is for a [`Reader`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use concert_model::{GroupKind, ResourceVersion};
use concert_store::Clock;
use concert_store::local::{Change, Changes};
use futures_util::future::BoxFuture;
use futures_util::stream;
use http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use http::{HeaderMap, Response};
use http_body::Frame;
use tokio::sync::OwnedSemaphorePermit;

use super::call::Call;
use super::door::{Inner, base};
use super::error::Error;
use crate::auth::{User, credentials};
use crate::kube::Body;
use crate::kube::answer::streamed;

/// How often a quiet stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A comment without a blank line: some clients take a blank line for an event.
const ALIVE: &[u8] = b": heartbeat\n";
/// What a stream begins with, so that a client knows at once that it is heard.
const HELLO: &[u8] = b": connected\n";

/// How long a stream may go on after its token was taken away. Rights are asked for with each event.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long a stream may stand while the store cannot be asked.
const UNASKED_MAX: Duration = Duration::from_secs(60);

/// How long a stream lasts: clients come back by themselves.
const DURATION_MAX: Duration = Duration::from_secs(60 * 60);
const TOO_MANY_RETRY: Duration = Duration::from_secs(5);

/// Who reads, and what.
#[async_trait]
pub(crate) trait Reader: Send + Sync + 'static {
    /// The event of a change, as it is sent; none if it is not for this stream.
    async fn frame(&self, change: &Change) -> Option<Bytes>;

    /// Whether nothing can come after this change.
    fn is_last(&self, change: &Change) -> bool;
}

/// One event.
pub(crate) fn event(change: &Change, kind: &str, data: &serde_json::Value) -> Bytes {
    format!("id: {}\nevent: {kind}\ndata: {data}\n\n", change.revision).into()
}

/// Answers with the changes of the kinds that are meant, from now or from where the client says it was.
pub(crate) async fn start(
    call: &Call<'_>,
    is_meant: impl Fn(&GroupKind) -> bool + Send + Sync + 'static,
    reader: impl Reader,
) -> Result<Response<Body>, Error> {
    let Ok(permit) = call.door.watches.clone().try_acquire_owned() else {
        let error = Error::new(http::StatusCode::TOO_MANY_REQUESTS, "too many streams are open");
        return Err(Error { retry_after: Some(TOO_MANY_RETRY), ..error });
    };
    let last =
        call.head.headers.get("last-event-id").and_then(|it| it.to_str().ok()).unwrap_or_default().trim();
    let from = (!last.is_empty()).then(|| ResourceVersion(last.into()));
    let changes = call.store().changes(from.as_ref(), is_meant).await.map_err(|error| match error {
        concert_store::Error::Expired => {
            Error::new(http::StatusCode::GONE, "what happened after Last-Event-ID is no longer known")
        }
        concert_store::Error::Invalid { .. } => {
            Error::bad_request("Last-Event-ID is not one of this server's")
        }
        other => other.into(),
    })?;
    let clock = &call.door.clock;
    let streaming = Streaming {
        reader: Box::new(reader),
        changes,
        standing: Standing::new(call),
        look: clock.sleep(LOOK_EVERY),
        heartbeat: clock.sleep(HEARTBEAT),
        end: clock.sleep(DURATION_MAX),
        clock: clock.clone(),
        closing: call.door.closing.subscribe(),
        is_new: true,
        is_over: false,
        _permit: permit,
    };
    let frames = stream::unfold(streaming, |mut streaming| async move {
        let bytes = streaming.next().await?;
        Some((Ok(Frame::data(bytes)), streaming))
    });
    let mut response = streamed("text/event-stream", Box::pin(frames));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

/// What a stream rests on: that whoever asked for it still is who they were.
struct Standing {
    door: Arc<Inner>,
    base: &'static str,
    headers: HeaderMap,
    user: User,
    /// When the store was last asked and answered.
    asked: Duration,
}

impl Standing {
    fn new(call: &Call<'_>) -> Self {
        Self {
            door: call.door.clone(),
            base: base(call.head.uri.path()).unwrap_or_default(),
            headers: credentials(&call.head.headers),
            user: call.user.clone(),
            asked: call.door.clock.elapsed(),
        }
    }

    async fn holds(&mut self) -> bool {
        // What other replicas were told counts as well. While none of it can be heard nothing comes here either.
        let now = self.door.clock.elapsed();
        if self.door.store.refresh().await.is_err() {
            return now.saturating_sub(self.asked) < UNASKED_MAX;
        }
        self.asked = now;
        self.door.identify(self.base, &self.headers).await.is_ok_and(|user| user == self.user)
    }
}

struct Streaming {
    reader: Box<dyn Reader>,
    changes: Changes,
    standing: Standing,
    clock: Arc<dyn Clock>,
    look: BoxFuture<'static, ()>,
    heartbeat: BoxFuture<'static, ()>,
    end: BoxFuture<'static, ()>,
    closing: tokio::sync::watch::Receiver<bool>,
    is_new: bool,
    /// Nothing more can come.
    is_over: bool,
    _permit: OwnedSemaphorePermit,
}

impl Streaming {
    /// The next bytes; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_new) {
            return Some(Bytes::from_static(HELLO));
        }
        if self.is_over {
            return None;
        }
        loop {
            let change = tokio::select! { biased;
                _ = self.closing.wait_for(|is_closing| *is_closing) => return None,
                () = &mut self.end => return None,
                () = &mut self.look => None,
                change = self.changes.next() => Some(change?),
                () = &mut self.heartbeat => {
                    self.heartbeat = self.clock.sleep(HEARTBEAT);
                    return Some(Bytes::from_static(ALIVE));
                }
            };
            let Some(change) = change else {
                self.look = self.clock.sleep(LOOK_EVERY);
                // The client comes back and is told why.
                if !self.standing.holds().await {
                    return None;
                }
                continue;
            };
            // Too slow, or the store is gone: the client comes back with the last id it has.
            let change = change.ok()?;
            if let Some(frame) = self.reader.frame(&change).await {
                self.is_over = self.reader.is_last(&change);
                self.heartbeat = self.clock.sleep(HEARTBEAT);
                return Some(frame);
            }
        }
    }
}
