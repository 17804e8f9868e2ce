//! Watches: one JSON line for each change, until the client has had enough.

mod lines;
mod standing;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concert_store::{Events, Store};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream;
use http::Response;
use http_body::Frame;
use tokio::sync::OwnedSemaphorePermit;

pub(crate) use lines::Lines;

use self::lines::Writer;
use self::standing::Standing;
use super::accept::{Accepted, Media};
use super::answer::{Body, streamed, text};
use super::api::{Call, Inner};
use super::list::{self, ListOptions, is_later, newest};
use super::table::Include;
use crate::error::Error;

/// The parameter that makes a list a watch.
pub(crate) const PARAM: &str = "watch";

/// How long a watch lasts if the client does not say: up to twice this, so that not all end at once.
const DURATION_MIN: Duration = Duration::from_secs(30 * 60);

/// Events that are ready together go out together, up to so many bytes.
const FRAME_BYTES_MAX: usize = 64 * 1024;

/// `GET` of a collection or of one object, with `watch=true`.
pub(crate) async fn watch(call: &Call<'_>, accepted: Accepted) -> Result<Response<Body>, Error> {
    if accepted.media == Media::Yaml {
        return Err(Error::not_acceptable(&["application/json"]));
    }
    call.params.check(list::PARAMS)?;
    let options = ListOptions::read(call, true)?;
    if options.limit.is_some() || options.token.is_some() {
        return Err(Error::bad_request("a watch has no pages: limit and continue are not supported"));
    }
    let include = Include::read(call.params)?;
    let Ok(permit) = call.api.watches.clone().try_acquire_owned() else {
        return Err(Error::too_many("too many watches are open, please try again later", RETRY_AFTER));
    };
    let writer = Writer::new(call, &options, accepted.form, include);
    let seconds = options.timeout_seconds.map(Duration::from_secs);
    let duration = seconds.unwrap_or_else(|| DURATION_MIN.mul_f64(1.0 + call.api.chance.fraction()));
    let (events, failure) = match start(call, &options).await {
        Ok(events) => (Some(events), None),
        // The position is a matter of the stream: clients expect to hear of it there.
        Err(error) if error.reason == crate::error::Reason::Expired => (None, Some(error_line(&error))),
        Err(error) => return Err(error),
    };
    let watching = Watching {
        api: call.api.clone(),
        events,
        writer,
        failure,
        standing: Standing::new(call),
        look: call.api.clock.sleep(standing::EVERY),
        end: call.api.clock.sleep(duration),
        closing: call.api.closing.subscribe(),
        asked: options.resource_version.map(|version| version.0),
        _permit: permit,
    };
    let frames = stream::unfold(watching, |mut watching| async move {
        let bytes = watching.next().await?;
        Some((Ok(Frame::data(bytes)), watching))
    });
    Ok(streamed("application/json", Box::pin(frames)))
}

const RETRY_AFTER: Duration = Duration::from_secs(5);

async fn start(call: &Call<'_>, options: &ListOptions) -> Result<Events, Error> {
    let (store, query) = (&call.api.store, &options.query);
    let latest;
    let from = match (&options.resource_version, options.send_initial_events) {
        (None, Some(false)) => {
            latest = newest(call.api, query).await?;
            Some(&latest)
        }
        (None, _) => None,
        (Some(version), Some(true)) => {
            let newest = newest(call.api, query).await?;
            if is_later(version, &newest) {
                return Err(Error::version_too_large(&version.0, &newest.0));
            }
            None
        }
        (Some(version), _) => Some(version),
    };
    match store.watch(query, from).await {
        Ok(events) => Ok(events),
        Err(concert_store::Error::Expired) => {
            Err(Error::expired_watch(from.map_or("0", |version| &*version.0)))
        }
        Err(concert_store::Error::Invalid { errors, .. })
            if errors.iter().any(|error| error.field.as_str() == "resourceVersion") =>
        {
            let newest = newest(call.api, query).await?;
            Err(Error::version_too_large(from.map_or("0", |version| &*version.0), &newest.0))
        }
        Err(error) => Err(Error::of_read(error, &call.naming())),
    }
}

fn error_line(error: &Error) -> Bytes {
    let mut line = br#"{"type":"ERROR","object":"#.to_vec();
    line.extend_from_slice(&text(&error.to_status()));
    line.extend_from_slice(b"}\n");
    line.into()
}

/// What a watch goes on with.
enum Woken {
    /// The next event; none at the end.
    By(Option<concert_store::Result<concert_store::Event>>),
    /// It is time to see whether it may go on.
    ToLook,
}

struct Watching {
    api: Arc<Inner>,
    /// None when there is nothing more to come.
    events: Option<Events>,
    writer: Writer,
    /// The last line.
    failure: Option<Bytes>,
    /// Whether it may go on, and when that is looked at next.
    standing: Standing,
    look: BoxFuture<'static, ()>,
    end: BoxFuture<'static, ()>,
    closing: tokio::sync::watch::Receiver<bool>,
    asked: Option<Arc<str>>,
    _permit: OwnedSemaphorePermit,
}

impl Watching {
    /// The next lines; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(events) = &mut self.events else { return self.failure.take() };
            let woken = tokio::select! { biased;
                _ = self.closing.wait_for(|is_closing| *is_closing) => Woken::By(None),
                () = &mut self.end => Woken::By(None),
                () = &mut self.look => Woken::ToLook,
                event = events.next() => Woken::By(event),
            };
            let Woken::By(event) = woken else {
                self.look_again().await;
                continue;
            };
            let Some(line) = self.take(event) else { continue };
            return Some(self.gather(line));
        }
    }

    /// Ends the watch if it may not go on.
    async fn look_again(&mut self) {
        self.look = self.api.clock.sleep(standing::EVERY);
        if let Err(end) = self.standing.check(&self.api, &self.writer.resource).await {
            self.events = None;
            self.failure = end.as_ref().map(error_line);
        }
    }

    /// Adds what is ready at this moment.
    fn gather(&mut self, first: Bytes) -> Bytes {
        let mut all: Option<Vec<u8>> = None;
        while all.as_ref().map_or(first.len(), Vec::len) < FRAME_BYTES_MAX
            && let Some(events) = &mut self.events
            && let Some(event) = events.next().now_or_never()
        {
            if let Some(line) = self.take(event) {
                all.get_or_insert_with(|| first.to_vec()).extend_from_slice(&line);
            }
        }
        all.map_or(first, Bytes::from)
    }

    /// The line of an event; none for those that the client does not want, and at the end.
    fn take(&mut self, event: Option<concert_store::Result<concert_store::Event>>) -> Option<Bytes> {
        match event {
            None => self.events = None,
            Some(Ok(event)) => return self.writer.line(&self.api, event),
            Some(Err(error)) => {
                self.events = None;
                let error = match error {
                    concert_store::Error::Expired => {
                        Error::expired_watch(self.asked.as_deref().unwrap_or("0"))
                    }
                    other => Error::of_read(other, &self.writer.naming()),
                };
                self.failure = Some(error_line(&error));
            }
        }
        None
    }
}
