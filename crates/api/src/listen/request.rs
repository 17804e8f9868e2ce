//! What every request goes through before the service sees it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use concert_engine::Shutdown;
use concert_store::Clock;
use futures_util::FutureExt;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;

use super::body::{Hold, Inbound, Outbound};
use super::browser;
use super::limits::Limits;
use super::pace::Pace;
use super::quota::{Quota, What};
use super::refuse::Form;
use crate::kube::params;

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where it calls from.
    pub address: SocketAddr,
    /// Whether nobody on the way can read along.
    pub is_encrypted: bool,
}

/// What all connections of a listener share.
pub(super) struct Shared<S> {
    pub(super) service: S,
    pub(super) limits: Arc<Limits>,
    pub(super) quota: Quota,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) shutdown: Shutdown,
    /// The port of a server in development mode.
    pub(super) development_port: Option<u16>,
}

impl<S> Shared<S> {
    pub(super) async fn answer<F, B>(
        &self,
        request: Request<Incoming>,
        peer: Peer,
        pace: &Arc<Pace>,
    ) -> Result<Response<Outbound<B>>, Infallible>
    where
        S: Fn(Request<Inbound>, Peer) -> F,
        F: Future<Output = Response<B>>,
        B: Body<Data = Bytes>,
    {
        let form = Form::of(&request);
        let mut response = match self.admit(&request, form, peer, pace) {
            Err(refusal) => (*refusal).map(Outbound::own),
            Ok((hold, is_watch)) => {
                let request = request.map(|body| {
                    let limits = &self.limits;
                    Inbound::new(body, limits.body_bytes_max, limits.body_time, self.clock.clone())
                });
                // A panic is a bug of ours; it costs this request and nothing else.
                match AssertUnwindSafe((self.service)(request, peer)).catch_unwind().await {
                    Ok(response) => response.map(|body| {
                        let shutdown = self.shutdown.clone();
                        let until = is_watch.then(|| async move { shutdown.requested().await }.boxed());
                        Outbound::service(body, hold, until)
                    }),
                    Err(_) => {
                        tracing::error!("a request was answered with a panic");
                        let message = "an error of the server; see its log";
                        let code = StatusCode::INTERNAL_SERVER_ERROR;
                        form.refuse(code, "InternalError", message).map(Outbound::own)
                    }
                }
            }
        };
        harden(response.headers_mut());
        Ok(response)
    }

    fn admit(
        &self,
        request: &Request<Incoming>,
        form: Form,
        peer: Peer,
        pace: &Arc<Pace>,
    ) -> Result<(Hold, bool), Box<Response<Bytes>>> {
        let is_watch = is_watch(request);
        let turn = pace.begin(is_watch);
        if let Some(port) = self.development_port {
            let rebuff = browser::check(request, port);
            rebuff.map_err(|it| Box::new(form.refuse(it.code, it.reason, it.message)))?;
        }
        let length =
            request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
        let max = self.limits.body_bytes_max;
        if length.is_some_and(|length| length > max) {
            let message = format!("Request entity too large: limit is {max}");
            let code = StatusCode::PAYLOAD_TOO_LARGE;
            return Err(Box::new(form.refuse(code, "RequestEntityTooLarge", &message)));
        }
        let what = if is_watch { What::Watch } else { What::Request };
        let permit = self.quota.take(what, peer.address.ip(), self.clock.elapsed());
        let permit = permit.map_err(|too_many| Box::new(form.too_many(too_many.0)))?;
        Ok((Hold { _turn: turn, _permit: permit }, is_watch))
    }
}

/// Whether the answer has no end of its own.
fn is_watch<B>(request: &Request<B>) -> bool {
    let uri = request.uri();
    uri.query().is_some_and(|query| params::sets(query, "watch"))
        || crate::rest::is_stream(request.method(), uri, request.headers())
}

/// Nothing of ours is to be kept by caches or guessed at by browsers.
fn harden(headers: &mut HeaderMap) {
    let fixed = HeaderValue::from_static;
    headers.entry(CACHE_CONTROL).or_insert_with(|| fixed("no-cache, private"));
    headers.insert(HeaderName::from_static("x-content-type-options"), fixed("nosniff"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_known_by_its_query() {
        for (query, expected) in [
            ("/a?watch=true", true),
            ("/a?limit=1&watch=1", true),
            ("/a?watch", true),
            ("/a?watch=", true),
            ("/a?%77atch=%31", true),
            ("/a?watch=false", false),
            ("/a?watch=0", false),
            ("/a?awatch=1", false),
            ("/a", false),
            ("/api/v1/events", true),
            ("/api/v1/events?limit=1", false),
            ("/api/v1/resources/7/events", true),
            ("/api/v1/resources/7/history", false),
            ("/inventory/v1/watch?entry=a", true),
            ("/inventory/v1/entries", false),
        ] {
            let request = Request::builder().uri(query).body(()).unwrap();
            assert_eq!(is_watch(&request), expected, "{query}");
        }
    }
}
