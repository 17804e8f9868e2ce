//! Answers of the listener itself, in the form that clients of the path read.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use serde_json::{Value, json};

/// How a refusal is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As Kubernetes does.
    Status,
    /// As the REST door does: `{"detail": …}`.
    Detail,
}

impl Form {
    /// The form of the door that a request is for.
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        match crate::rest::is_for_us(request.method(), request.uri(), request.headers()) {
            true => Self::Detail,
            false => Self::Status,
        }
    }

    /// A refusal with this code.
    pub(super) fn refuse(self, code: StatusCode, reason: &str, message: &str) -> Response<Bytes> {
        self.answer(code, reason, message, None)
    }

    /// Too much is asked for: come back later.
    pub(super) fn too_many(self, after: Duration) -> Response<Bytes> {
        // Whole seconds are all that the header can say.
        let seconds = after.as_secs_f64().ceil().max(1.0) as u64;
        let message = "too many requests, please try again later";
        self.answer(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message, Some(seconds))
    }

    fn answer(
        self,
        code: StatusCode,
        reason: &str,
        message: &str,
        retry_after: Option<u64>,
    ) -> Response<Bytes> {
        let body = match self {
            Self::Detail => json!({"detail": message}),
            Self::Status => status(code, reason, message, retry_after),
        };
        let mut response = Response::new(Bytes::from(body.to_string()));
        *response.status_mut() = code;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

fn status(code: StatusCode, reason: &str, message: &str, retry_after: Option<u64>) -> Value {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    if let Some(seconds) = retry_after {
        status["details"] = json!({"retryAfterSeconds": seconds});
    }
    status
}
