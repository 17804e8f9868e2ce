//! Watches of the server: one line for each event.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use concert_model::{Encoded, ResourceVersion};
use futures_util::stream;
use http_body_util::BodyExt;
use kube::client::Body;

use super::cache::subscribe;
use super::codec;
use super::kinds::Resource;
use super::read::address_of;
use super::requests::Verb;
use super::server::Server;
use super::status::{About, Refusal, Status};
use super::transport::Ask;
use crate::contract::{Event, Events, Query, Result};
use crate::error::Error;

/// How long the server lets a watch go on: short enough that a connection which died unnoticed does not
/// stay dead for long, long enough that opening it again costs nothing.
const WATCH_SECONDS: u64 = 290;
/// Longest silence. The server sends a bookmark about once a minute, and ends the watch after its time.
const SILENCE_MAX: Duration = Duration::from_secs(WATCH_SECONDS + 30);
/// Longest line: an event with the largest object, and the escapes of JSON.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How often a path that should be there is tried again.
const OPEN_TRIES: usize = 5;
/// How often a watch of its own is opened again before its reader hears that the server is away.
const RESUME_TRIES: u32 = 5;
/// Before the first of those tries; doubled for each further one.
const RESUME_WAIT: Duration = Duration::from_millis(100);

/// A watch as the contract has it: shared if it can be, else one of its own.
pub(super) async fn start(
    server: &Arc<Server>,
    query: &Query,
    from: Option<&ResourceVersion>,
) -> Result<Events> {
    server.resource(&query.kind).await?;
    match subscribe(server, query, from).await? {
        Some(events) => Ok(events),
        None => Direct::start(server, query, from).await,
    }
}

/// One connection on which the server tells changes.
pub(super) struct ServerWatch {
    server: Arc<Server>,
    resource: Arc<Resource>,
    body: Body,
    buffer: BytesMut,
    /// Up to here there is no line end in the buffer.
    searched: usize,
}

impl ServerWatch {
    /// Opens a watch of what comes after `position`.
    ///
    /// # Errors
    /// The server's refusal; [`Error::Expired`] may also come as the first event.
    pub(super) async fn open(
        server: &Arc<Server>,
        query: &Query,
        position: &ResourceVersion,
    ) -> Result<Self> {
        let mut tries = OPEN_TRIES;
        loop {
            let resource = server.resource(&query.kind).await?;
            let address = address_of(&resource, query)?
                .with("watch", "true")
                .with("allowWatchBookmarks", "true")
                .with("timeoutSeconds", &WATCH_SECONDS.to_string())
                .with("resourceVersion", &position.0);
            let (path, name) = (address.into_path(), resource.name.clone());
            let ask =
                Ask { verb: Verb::Watch, resource: name, path, content: super::transport::Content::None };
            let response = server.transport.open(&ask).await?;
            if response.status().is_success() {
                let (server, body) = (server.clone(), response.into_body());
                return Ok(Self { server, resource, body, buffer: BytesMut::new(), searched: 0 });
            }
            let answer = server.transport.rest(response).await?;
            tries -= 1;
            match Status::of(&answer).refusal(About::Kind(&query.kind)) {
                Refusal::Error(error) => return Err(error),
                Refusal::NotServed => server.wait_until_served(&query.kind, tries).await?,
            }
        }
    }

    /// The next event; none when the server, or the connection, has ended the watch.
    pub(super) async fn next(&mut self) -> Option<Result<Event>> {
        loop {
            if let Some(line) = self.take_line() {
                match self.read_line(&line) {
                    Ok(None) => continue,
                    Ok(Some(event)) => return Some(Ok(event)),
                    Err(error) => return Some(Err(error)),
                }
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Some(Err(Error::unavailable("an event of the watch is too long")));
            }
            let frame = tokio::select! {
                biased;
                frame = self.body.frame() => frame,
                () = self.server.transport.clock.sleep(SILENCE_MAX) => None,
            };
            // A connection that breaks is a watch that ends: it goes on from where it was.
            let data = frame?.ok()?.into_data().unwrap_or_default();
            self.buffer.extend_from_slice(&data);
        }
    }

    fn take_line(&mut self) -> Option<BytesMut> {
        let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = found else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + end + 1);
        self.searched = 0;
        Some(line)
    }

    fn read_line(&self, line: &[u8]) -> Result<Option<Event>> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let broken = |e: serde_json::Error| Error::Unavailable(e.into());
        let line: codec::Line<'_> = serde_json::from_slice(line).map_err(broken)?;
        let object = line.object.get().as_bytes();
        Ok(Some(match line.what {
            "ADDED" => Event::Added(codec::object(&self.resource, object)?),
            "MODIFIED" => Event::Modified(codec::object(&self.resource, object)?),
            "DELETED" => Event::Deleted(codec::object(&self.resource, object)?),
            "BOOKMARK" => {
                let bookmark: codec::Bookmark = serde_json::from_slice(object).map_err(broken)?;
                let position = ResourceVersion(bookmark.metadata.resource_version.into());
                Event::Bookmark { position, is_initial_end: false }
            }
            "ERROR" => {
                let kind = &self.resource.kind.group_kind;
                return Err(match Status::of_line(object).refusal(About::Kind(kind)) {
                    Refusal::Error(error) => error,
                    Refusal::NotServed => Error::UnknownKind { kind: kind.clone() },
                });
            }
            // New sorts of events must be asked for.
            _ => return Ok(None),
        }))
    }
}

/// A watch that has the server's attention for itself.
struct Direct {
    server: Arc<Server>,
    query: Query,
    /// Where it goes on when the connection ends.
    position: ResourceVersion,
    watch: Option<ServerWatch>,
    /// Current objects still to be sent, last first.
    initial: Vec<Encoded>,
    is_initial_end_due: bool,
    failures: u32,
    has_ended: bool,
}

impl Direct {
    async fn start(server: &Arc<Server>, query: &Query, from: Option<&ResourceVersion>) -> Result<Events> {
        let (position, mut initial) = match from {
            Some(position) => (position.clone(), Vec::new()),
            None => {
                let page = server.list_all(query, None).await?;
                (page.position, page.items)
            }
        };
        // To Kubernetes no position and 0 mean any: whoever says where they are must get what follows.
        if matches!(&*position.0, "" | "0") {
            let field = concert_model::FieldPath::new("resourceVersion");
            let error =
                concert_model::FieldError::invalid_text(field, &position.0, "is not one of this store's");
            return Err(Error::invalid("watch", error));
        }
        initial.reverse();
        let watch = ServerWatch::open(server, query, &position).await?;
        let direct = Self {
            server: server.clone(),
            query: query.clone(),
            position,
            watch: Some(watch),
            initial,
            is_initial_end_due: from.is_none(),
            failures: 0,
            has_ended: false,
        };
        Ok(Events::new(stream::unfold(direct, |mut direct| async move {
            if direct.has_ended {
                return None;
            }
            let event = direct.next().await;
            direct.has_ended = event.is_err();
            Some((event, direct))
        })))
    }

    async fn next(&mut self) -> Result<Event> {
        if let Some(object) = self.initial.pop() {
            self.server.answered(&object);
            return Ok(Event::Added(object));
        }
        if std::mem::take(&mut self.is_initial_end_due) {
            return Ok(Event::Bookmark { position: self.position.clone(), is_initial_end: true });
        }
        loop {
            let Some(watch) = &mut self.watch else {
                self.reopen().await?;
                continue;
            };
            let Some(event) = watch.next().await else {
                self.watch = None;
                continue;
            };
            let event = event?;
            self.failures = 0;
            self.position = event.position().clone();
            self.server.see(&self.position);
            match &event {
                Event::Added(object) | Event::Modified(object) => self.server.answered(object),
                // Gone, or only no longer selected: a shared watch of the kind will tell.
                Event::Deleted(object) => self.server.doubted(object.key()),
                Event::Bookmark { .. } => {}
            }
            return Ok(event);
        }
    }

    async fn reopen(&mut self) -> Result<()> {
        // The server ends watches now and then, and whenever a definition is changed.
        self.server.kinds.doubt(&self.query.kind);
        match ServerWatch::open(&self.server, &self.query, &self.position).await {
            Ok(watch) => self.watch = Some(watch),
            Err(Error::Unavailable(_)) if self.failures < RESUME_TRIES => {
                self.server.transport.clock.sleep(RESUME_WAIT * 2_u32.pow(self.failures)).await;
                self.failures += 1;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
