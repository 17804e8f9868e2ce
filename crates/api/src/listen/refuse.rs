//! Answers of the listener itself, in the form that clients of Kubernetes read.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::json;

/// A `Status` with this code.
pub(super) fn status(code: StatusCode, reason: &str, message: &str) -> Response<Bytes> {
    answer(code, reason, message, None)
}

/// Too much is asked for: come back later.
pub(super) fn too_many(after: Duration) -> Response<Bytes> {
    // Whole seconds are all that the header can say.
    let seconds = after.as_secs_f64().ceil().max(1.0) as u64;
    let message = "too many requests, please try again later";
    answer(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message, Some(seconds))
}

fn answer(code: StatusCode, reason: &str, message: &str, retry_after: Option<u64>) -> Response<Bytes> {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    if let Some(seconds) = retry_after {
        status["details"] = json!({"retryAfterSeconds": seconds});
    }
    let mut response = Response::new(Bytes::from(status.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}
