//! Answers on their way out.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{Either, Full, StreamBody};
use serde_json::Value;

use super::accept::Media;
use crate::error::Error;

/// The frames of an answer that goes on.
pub type Frames = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>;

/// The body of an answer: known as a whole, or a watch.
pub type Body = Either<Full<Bytes>, StreamBody<Frames>>;

/// Longest warning, in bytes, and all of them together: headers are small.
const WARNING_BYTES_MAX: usize = 1024;
const WARNINGS_BYTES_MAX: usize = 8 * 1024;

/// An answer before it is written in the form the client asked for.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    /// JSON.
    pub(crate) bytes: Bytes,
    pub(crate) warnings: Vec<String>,
    /// What was made, if its name was not part of the path.
    pub(crate) made: Option<Made>,
}

/// The name of what a request has made: it goes along with the answer, for whoever takes note of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made(pub(crate) Arc<str>);

impl Answer {
    pub(crate) fn ok(bytes: impl Into<Bytes>) -> Self {
        Self { code: StatusCode::OK, bytes: bytes.into(), warnings: Vec::new(), made: None }
    }

    pub(crate) fn created(bytes: impl Into<Bytes>) -> Self {
        Self { code: StatusCode::CREATED, ..Self::ok(bytes) }
    }

    pub(crate) fn value(value: &Value) -> Self {
        Self::ok(text(value))
    }

    pub(crate) fn warning(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// Written as `media`, for people if `is_pretty`.
    pub(crate) fn write(self, media: Media, is_pretty: bool) -> Response<Body> {
        let (bytes, content_type) = match media {
            Media::Json if is_pretty => (pretty(&self.bytes), "application/json"),
            Media::Json => (self.bytes, "application/json"),
            Media::Yaml => (yaml(&self.bytes), "application/yaml"),
        };
        let mut response = whole(self.code, content_type, bytes);
        if let Some(made) = self.made {
            response.extensions_mut().insert(made);
        }
        let mut left = WARNINGS_BYTES_MAX;
        for warning in &self.warnings {
            let header = warning_header(warning);
            left = left.saturating_sub(header.len());
            if left == 0 {
                break;
            }
            if let Ok(header) = HeaderValue::try_from(header) {
                response.headers_mut().append(WARNING, header);
            }
        }
        response
    }
}

/// A whole body of any type.
pub(crate) fn whole(code: StatusCode, content_type: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(bytes.into())));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A body that goes on.
pub(crate) fn streamed(content_type: &'static str, frames: Frames) -> Response<Body> {
    let mut response = Response::new(Either::Right(StreamBody::new(frames)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A refusal.
pub(crate) fn refusal(error: &Error) -> Response<Body> {
    let mut response = whole(error.reason.code(), "application/json", text(&error.to_status()));
    if let Some(after) = error.details.retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
    }
    response
}

/// JSON text of a tree.
pub(crate) fn text(value: &Value) -> Vec<u8> {
    // Writing a tree into memory cannot fail: its keys are strings and its numbers finite.
    serde_json::to_vec(value).unwrap_or_default()
}

fn pretty(json: &Bytes) -> Bytes {
    let read = serde_json::from_slice::<Value>(json).and_then(|value| serde_json::to_vec_pretty(&value));
    read.map_or_else(
        |_| json.clone(),
        |mut text| {
            text.push(b'\n');
            text.into()
        },
    )
}

fn yaml(json: &Bytes) -> Bytes {
    let value = serde_json::from_slice::<Value>(json).unwrap_or_default();
    serde_saphyr::to_string(&value).unwrap_or_default().into()
}

/// `299 - "text"`, as RFC 7234 writes it.
fn warning_header(warning: &str) -> String {
    let mut header = String::from("299 - \"");
    for character in warning.chars() {
        if header.len() > WARNING_BYTES_MAX {
            break;
        }
        match character {
            '"' | '\\' => header.extend(['\\', character]),
            // Headers are Latin at best, and a line break would end them.
            c if c.is_ascii_graphic() || c == ' ' => header.push(c),
            _ => header.push('?'),
        }
    }
    header.push('"');
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_quoted_and_cannot_break_out() {
        assert_eq!(warning_header("unknown field \"spec.a\""), r#"299 - "unknown field \"spec.a\"""#);
        assert_eq!(warning_header("a\r\nX: y"), r#"299 - "a??X: y""#);
        assert!(warning_header(&"a".repeat(10_000)).len() < 1100);
        let answer = Answer::ok("{}").warning((0..100).map(|_| "a".repeat(1000)));
        assert!(answer.write(Media::Json, false).headers().get_all(WARNING).iter().count() < 9);
    }
}
