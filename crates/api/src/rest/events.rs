//! Changes of resources as they happen: server-sent events.
//!
//! Each event is for those who may read resources of its type at that moment, and carries no secrets.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use concert_model::no8s::{Phase, Resource, is_ours, names};
use concert_model::{GroupKind, time};
use concert_store::backend::Act;
use concert_store::local::Change;
use http::header::ACCEPT;
use http::{HeaderMap, Method, Response, Uri};
use serde_json::{Value, json};

use super::call::{Call, access};
use super::door::Inner;
use super::error::Error;
use super::{draft7, index, resources, stream, view};
use crate::auth::User;
use crate::kube::Body;

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
    // One slash at the end makes no difference to where a request goes.
    let path = uri.path().strip_suffix('/').unwrap_or(uri.path());
    let path: Vec<&str> = path.split('/').collect();
    match path[..] {
        ["", "api", "v1", "resources", _, "events"] => *method == Method::GET,
        ["", "api", "v1", "events"] => is_asked_for(method, uri.query(), headers),
        ["", "inventory", "v1", "watch"] => *method == Method::GET,
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
    let reader = Reader { door: call.door.clone(), user: call.user.clone(), filter };
    stream::start(call, |kind: &GroupKind| is_ours(&kind.group), reader).await
}

/// Who reads, and what.
struct Reader {
    door: Arc<Inner>,
    user: User,
    filter: Filter,
}

#[async_trait]
impl stream::Reader for Reader {
    async fn frame(&self, change: &Change) -> Option<Bytes> {
        let id = index::id_of(&change.object)?;
        if !self.filter.takes(change, id) || !self.may_read(&change.object.key().kind).await {
            return None;
        }
        let kind = event_type(change);
        Some(stream::event(change, kind, &self.data(kind, id, change).await))
    }

    fn is_last(&self, change: &Change) -> bool {
        self.filter.id.is_some() && change.act == Act::Removed
    }
}

impl Reader {
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
    fn a_slash_at_the_end_does_not_make_a_stream_a_request_that_ends() {
        for path in ["/api/v1/events", "/api/v1/resources/7/events", "/inventory/v1/watch"] {
            for uri in [path.to_owned(), format!("{path}/")] {
                let uri: Uri = uri.parse().unwrap();
                assert!(is_stream(&Method::GET, &uri, &HeaderMap::new()), "{uri}");
            }
        }
        assert!(!is_stream(&Method::GET, &"/api/v1/resources/7/".parse().unwrap(), &HeaderMap::new()));
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
