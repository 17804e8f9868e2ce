//! Changes of resources as they happen: server-sent events.
//!
//! The log of the store is read with one cursor, so an event's id says what was seen of all types, and
//! `Last-Event-ID` goes on from there without a gap. Each event is for those who may read resources of
//! its type at that moment, and carries no secrets.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concert_model::no8s::{Phase, Resource, is_ours, names};
use concert_model::{GroupKind, ResourceVersion, time};
use concert_store::backend::Act;
use concert_store::local::{Change, Changes};
use futures_util::future::BoxFuture;
use futures_util::stream;
use http::header::{ACCEPT, CACHE_CONTROL, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Response, Uri};
use http_body::Frame;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::call::{Call, access};
use super::door::Inner;
use super::error::Error;
use super::{draft7, index, resources, view};
use crate::auth::User;
use crate::kube::Body;
use crate::kube::answer::streamed;

/// How often a quiet stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A comment without a blank line: some clients take a blank line for an event.
const ALIVE: &[u8] = b": heartbeat\n";
/// What a stream begins with, so that a client knows at once that it is heard.
const HELLO: &[u8] = b": connected\n";

/// How long a stream lasts: clients come back by themselves, and rights given by a token that has ended
/// are not used for ever.
const DURATION_MAX: Duration = Duration::from_secs(60 * 60);
const TOO_MANY_RETRY: Duration = Duration::from_secs(5);

/// Parameters that only a list or watch of Kubernetes' events has.
const KUBERNETES: [&str; 8] = [
    "watch",
    "limit",
    "continue",
    "fieldSelector",
    "labelSelector",
    "resourceVersion",
    "timeoutSeconds",
    "allowWatchBookmarks",
];

/// Whether `GET /api/v1/events` means this stream rather than Kubernetes' events: who takes JSON, YAML or
/// protobuf means those, who takes anything at all or a stream means this.
pub(crate) fn is_asked_for(method: &Method, query: Option<&str>, headers: &HeaderMap) -> bool {
    let mut names =
        query.unwrap_or_default().split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    if *method != Method::GET || names.any(|name| KUBERNETES.contains(&name)) {
        return false;
    }
    let mut is_silent = true;
    let mut takes_anything = false;
    for header in headers.get_all(ACCEPT) {
        let Ok(header) = header.to_str() else { return false };
        for clause in header.split(',') {
            is_silent = false;
            match clause.split(';').next().unwrap_or_default().trim() {
                "text/event-stream" => return true,
                "*/*" | "text/*" | "" => takes_anything = true,
                _ => return false,
            }
        }
    }
    takes_anything || is_silent
}

/// Whether a request gets an answer that has no end of its own.
pub(crate) fn is_stream(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let path: Vec<&str> = uri.path().split('/').collect();
    match path[..] {
        ["", "api", "v1", "resources", _, "events"] => *method == Method::GET,
        ["", "api", "v1", "events"] => is_asked_for(method, uri.query(), headers),
        _ => false,
    }
}

/// `GET /events`.
pub(crate) async fn of_all(call: &Call<'_>) -> Result<Response<Body>, Error> {
    let mut query = call.query(&["resource_type"]);
    query.check()?;
    let type_name = query.text("resource_type").map(str::to_owned);
    start(call, Filter { type_name, id: None }).await
}

/// `GET /resources/{id}/events`.
pub(crate) async fn of_resource(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let found = resources::find(call, id, "get").await?;
    start(call, Filter { type_name: None, id: Some(found.id) }).await
}

/// Which events.
struct Filter {
    type_name: Option<String>,
    id: Option<u64>,
}

impl Filter {
    fn takes(&self, change: &Change, id: u64) -> bool {
        let kind = &change.object.key().kind.kind;
        self.type_name.as_deref().is_none_or(|name| name == &**kind) && self.id.is_none_or(|it| it == id)
    }
}

async fn start(call: &Call<'_>, filter: Filter) -> Result<Response<Body>, Error> {
    let Ok(permit) = call.door.watches.clone().try_acquire_owned() else {
        let error = Error::new(http::StatusCode::TOO_MANY_REQUESTS, "too many streams are open");
        return Err(Error { retry_after: Some(TOO_MANY_RETRY), ..error });
    };
    let last =
        call.head.headers.get("last-event-id").and_then(|it| it.to_str().ok()).unwrap_or_default().trim();
    let from = (!last.is_empty()).then(|| ResourceVersion(last.into()));
    let is_meant = |kind: &GroupKind| is_ours(&kind.group);
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
        reader: Reader { door: call.door.clone(), user: call.user.clone(), filter },
        changes,
        heartbeat: clock.sleep(HEARTBEAT),
        end: clock.sleep(DURATION_MAX),
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

/// Who reads, and what.
struct Reader {
    door: Arc<Inner>,
    user: User,
    filter: Filter,
}

struct Streaming {
    reader: Reader,
    changes: Changes,
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
                change = self.changes.next() => change?,
                () = &mut self.heartbeat => {
                    self.heartbeat = self.reader.door.clock.sleep(HEARTBEAT);
                    return Some(Bytes::from_static(ALIVE));
                }
            };
            // Too slow, or the store is gone: the client comes back with the last id it has.
            let change = change.ok()?;
            if let Some(frame) = self.reader.frame(&change).await {
                self.is_over = self.reader.filter.id.is_some() && change.act == Act::Removed;
                self.heartbeat = self.reader.door.clock.sleep(HEARTBEAT);
                return Some(frame);
            }
        }
    }
}

impl Reader {
    /// The event of a change; none if it is not for this stream.
    async fn frame(&self, change: &Change) -> Option<Bytes> {
        let id = index::id_of(&change.object)?;
        if !self.filter.takes(change, id) || !self.may_read(&change.object.key().kind).await {
            return None;
        }
        let kind = event_type(change);
        let data = self.data(kind, id, change).await;
        Some(format!("id: {}\nevent: {kind}\ndata: {data}\n\n", change.revision).into())
    }

    async fn may_read(&self, kind: &GroupKind) -> bool {
        // A kind that is gone meanwhile was called this.
        let plural = self
            .door
            .store
            .card(kind)
            .map_or_else(|_| names::plural(&kind.kind), |card| card.kind.plural.to_string());
        self.door.gate.authorise(&self.user, &access("list", kind, &plural, "")).await.is_ok()
    }

    async fn data(&self, event: &str, id: u64, change: &Change) -> Value {
        let object = change.object.decode();
        let it = Resource(&object);
        let mut shown = view::resource(&object);
        let typed = self.door.kept.of(&self.door.store, &change.object.key().kind).await.ok().flatten();
        match typed.as_ref().and_then(|typed| typed.schema.as_ref()) {
            Some(schema) => schema.without_secrets(&mut shown["spec"]),
            None => draft7::without_secrets(&mut shown["spec"]),
        }
        for field in ["outputs", "metadata"] {
            draft7::without_secrets(&mut shown[field]);
        }
        if let Some(shown) = shown.as_object_mut() {
            shown.remove("plugin_config");
        }
        let at = view::updated(&object).unwrap_or_else(|| self.door.clock.now());
        json!({
            "event_type": event, "resource_id": id, "resource_name": object.name(),
            "resource_type_name": it.type_name(), "resource_type_version": it.type_version(),
            "resource_data": shown, "timestamp": time::micros(at),
        })
    }
}

fn event_type(change: &Change) -> &'static str {
    match change.act {
        Act::Created => "CREATED",
        Act::Removed => "DELETED",
        Act::Updated => {
            let object = change.object.decode();
            let before = change.previous.as_ref().map(concert_model::Encoded::decode);
            let is_later = before.is_some_and(|before| Resource(&before).last() < Resource(&object).last());
            if is_later && Resource(&object).phase() == Phase::Ready { "RECONCILED" } else { "MODIFIED" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ours_for(uri: &str, accept: Option<&str>) -> bool {
        let mut request = http::Request::builder().uri(uri);
        if let Some(accept) = accept {
            request = request.header(ACCEPT, accept);
        }
        {
            let request = request.body(()).unwrap();
            is_asked_for(request.method(), request.uri().query(), request.headers())
        }
    }

    #[test]
    fn one_path_is_shared_by_what_the_client_takes() {
        for (uri, accept, expected) in [
            ("/api/v1/events", Some("text/event-stream"), true),
            ("/api/v1/events", Some("*/*"), true),
            ("/api/v1/events", None, true),
            ("/api/v1/events?resource_type=A", Some("*/*"), true),
            ("/api/v1/events", Some("application/json"), false),
            ("/api/v1/events", Some("application/json, */*"), false),
            ("/api/v1/events", Some("application/yaml"), false),
            ("/api/v1/events", Some("application/vnd.kubernetes.protobuf"), false),
            ("/api/v1/events", Some("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"), false),
            ("/api/v1/events?watch=true", Some("*/*"), false),
            ("/api/v1/events?limit=500", Some("*/*"), false),
        ] {
            assert_eq!(is_ours_for(uri, accept), expected, "{uri} {accept:?}");
        }
    }
}
