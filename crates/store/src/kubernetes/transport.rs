//! Requests and answers, as bytes.
//!
//! Bounded in time and size. What the server certainly did not do (it was too busy to start) is sent
//! again when it asks for that; everything else is the caller's to decide.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;

use super::requests::{Requests, Verb};
use crate::clock::Clock;
use crate::contract::Result;
use crate::error::{BoxError, Error};

/// Longest answer to a question about one object: twice what etcd takes, for the escapes of JSON.
const OBJECT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest page of a list.
const PAGE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How often a busy server is asked again.
const BUSY_TRIES: usize = 6;
/// Longest that a busy server is waited for: its own longest wish is seldom more than a second.
const BUSY_WAIT_MAX: Duration = Duration::from_secs(10);

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) verb: Verb,
    /// What it is counted under: `widgets.example.com`.
    pub(super) resource: Arc<str>,
    /// Path and query.
    pub(super) path: String,
    pub(super) content: Content,
}

/// What is sent along.
#[derive(Clone, Debug)]
pub(super) enum Content {
    None,
    Json(Bytes),
    JsonPatch(Bytes),
    MergePatch(Bytes),
}

/// One whole answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) bytes: Bytes,
    /// What the server wants to be heard although it did what was asked.
    pub(super) warnings: Vec<String>,
}

/// A connection to one API server.
#[derive(Clone)]
pub(super) struct Transport {
    pub(super) client: Client,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) requests: Requests,
    pub(super) timeout: Duration,
}

impl Transport {
    /// Sends `ask` and reads the whole answer, whatever it says.
    pub(super) async fn send(&self, ask: &Ask) -> Result<Answer> {
        let bytes_max = if ask.verb == Verb::List { PAGE_BYTES_MAX } else { OBJECT_BYTES_MAX };
        let mut tries = BUSY_TRIES;
        loop {
            let whole = async { read(self.call(ask).await?, bytes_max).await };
            let (answer, wish) = self.within_time(whole).await?;
            tries -= 1;
            match wish.filter(|_| tries > 0 && is_undone(ask.verb, answer.status)) {
                Some(wait) => self.clock.sleep(wait).await,
                None => return Ok(answer),
            }
        }
    }

    /// Sends `ask` and answers as soon as the answer begins: the body goes on as long as the server has
    /// something to say.
    pub(super) async fn open(&self, ask: &Ask) -> Result<http::Response<Body>> {
        let mut tries = BUSY_TRIES;
        loop {
            let response = self.within_time(self.call(ask)).await?;
            tries -= 1;
            let wish = retry_after(&response);
            match wish.filter(|_| tries > 0 && is_undone(ask.verb, response.status())) {
                Some(wait) => self.clock.sleep(wait).await,
                None => return Ok(response),
            }
        }
    }

    /// Reads the rest of an answer that turned out to be a refusal.
    pub(super) async fn rest(&self, response: http::Response<Body>) -> Result<Answer> {
        self.within_time(read(response, OBJECT_BYTES_MAX)).await.map(|(answer, _)| answer)
    }

    async fn call(&self, ask: &Ask) -> Result<http::Response<Body>> {
        self.requests.count(ask.verb, &ask.resource);
        let (content_type, bytes) = match &ask.content {
            Content::None => ("", Bytes::new()),
            Content::Json(bytes) => ("application/json", bytes.clone()),
            Content::JsonPatch(bytes) => ("application/json-patch+json", bytes.clone()),
            Content::MergePatch(bytes) => ("application/merge-patch+json", bytes.clone()),
        };
        let mut request = http::Request::builder().method(ask.verb.method()).uri(&ask.path);
        request = request.header(ACCEPT, "application/json");
        if !content_type.is_empty() {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let request = request.body(Body::from(bytes)).map_err(|e| Error::Unavailable(e.into()))?;
        self.client.send(request).await.map_err(|e| Error::Unavailable(e.into()))
    }

    async fn within_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            result = work => result,
            () = self.clock.sleep(self.timeout) => {
                let why = format!("no answer after {} s", self.timeout.as_secs());
                Err(Error::Unavailable(BoxError::from(why)))
            }
        }
    }
}

/// A whole answer, and how long the server would like to be left alone.
async fn read(response: http::Response<Body>, bytes_max: usize) -> Result<(Answer, Option<Duration>)> {
    let wish = retry_after(&response);
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, bytes_max).collect().await.map_err(Error::Unavailable)?;
    let warnings = parts.headers.get_all(WARNING).iter().filter_map(|value| warning(value.to_str().ok()?));
    Ok((Answer { status: parts.status, bytes: body.to_bytes(), warnings: warnings.collect() }, wish))
}

/// The text of a `Warning` header: `299 - "unknown field \"spec.x\""`.
fn warning(header: &str) -> Option<String> {
    let text = header.split_once('"')?.1.rsplit_once('"')?.0;
    Some(text.replace("\\\"", "\"").replace("\\\\", "\\"))
}

fn retry_after(response: &http::Response<Body>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|wait| *wait <= BUSY_WAIT_MAX)
}

/// True if the server turned a request away before it did anything. It does so with the watches of a
/// kind that was just defined, while it gets ready for them.
fn is_undone(verb: Verb, status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE && !verb.writes()
}

impl Verb {
    fn method(self) -> Method {
        match self {
            Verb::Get | Verb::List | Verb::Watch | Verb::Discover => Method::GET,
            Verb::Create => Method::POST,
            Verb::Update => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        }
    }

    fn writes(self) -> bool {
        !matches!(self, Verb::Get | Verb::List | Verb::Watch | Verb::Discover)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_read_out_of_their_headers() {
        let header = r#"299 - "unknown field \"spec.x\"""#;
        assert_eq!(warning(header).as_deref(), Some(r#"unknown field "spec.x""#));
        assert_eq!(warning("299 - nothing"), None);
    }
}
