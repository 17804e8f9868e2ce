//! What a client of the REST door is told when a request is refused: `{"detail": …}`.
//!
//! One sentence, or for what is wrong with the fields of a request a list of them, in the shape that
//! FastAPI's clients read: `type`, `loc`, `msg`, `input` and, where there is more to say, `ctx`.

use std::time::Duration;

use concert_model::FieldError;
use http::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::auth::Refusal;
use crate::error::FULL;
use crate::kube::Body;
use crate::kube::answer::{text, whole};
use crate::write::{Denied, Refused};

/// What answers a request without a token where one is needed.
pub(crate) const NO_TOKEN: &str = "Missing or invalid Authorization header";
/// What answers somebody who may not.
pub(crate) const NOT_PERMITTED: &str = "Insufficient permissions";
/// What answers somebody who is no administrator.
pub(crate) const NOT_ADMIN: &str = "Admin role required";

/// A refused request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{detail}")]
pub struct Error {
    /// The HTTP status.
    pub code: StatusCode,
    /// Why: a sentence, or a list of fields.
    pub detail: Value,
    /// When to try again.
    pub retry_after: Option<Duration>,
    /// Methods that the path does have.
    pub allow: Option<&'static str>,
}

/// One field of a request that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// One word: `missing`, `string_type`, `value_error`, …
    pub kind: &'static str,
    /// Where: `["body", "name"]`.
    pub place: Vec<Value>,
    /// In words.
    pub message: String,
    /// What was sent.
    pub input: Value,
    /// The bound that it breaks.
    pub context: Option<Value>,
}

impl Wrong {
    /// A value that breaks a rule of ours.
    pub fn value(place: Vec<Value>, rule: &str, input: Value) -> Self {
        let (kind, message) = ("value_error", format!("Value error, {rule}"));
        Self { kind, place, message, input, context: Some(json!({"error": {}})) }
    }

    /// The same, with the bound that was broken.
    #[must_use]
    pub fn with_context(self, context: Value) -> Self {
        Self { context: Some(context), ..self }
    }

    fn into_json(self) -> Value {
        let mut wrong = Map::new();
        wrong.insert("type".into(), self.kind.into());
        wrong.insert("loc".into(), self.place.into());
        wrong.insert("msg".into(), self.message.into());
        wrong.insert("input".into(), self.input);
        if let Some(context) = self.context {
            wrong.insert("ctx".into(), context);
        }
        Value::Object(wrong)
    }
}

impl Error {
    /// A refusal in one sentence.
    pub fn new(code: StatusCode, detail: impl Into<String>) -> Self {
        Self { code, detail: Value::String(detail.into()), retry_after: None, allow: None }
    }

    /// 400.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 401.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    /// 403.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// 403 for what only administrators may do.
    pub fn not_admin() -> Self {
        Self::forbidden(NOT_ADMIN)
    }

    /// 403 for what a role does not allow.
    pub fn not_permitted() -> Self {
        Self::forbidden(NOT_PERMITTED)
    }

    /// 404 for a thing: `Resource not found`.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 404 for a path behind which nothing is served.
    pub fn unknown_path() -> Self {
        Self::not_found("Not Found")
    }

    /// 405.
    pub fn method_not_allowed(allow: &'static str) -> Self {
        let error = Self::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
        Self { allow: Some(allow), ..error }
    }

    /// 409.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// 422 in one sentence.
    pub fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// 422 for these fields.
    pub fn fields(wrong: Vec<Wrong>) -> Self {
        let detail = wrong.into_iter().map(Wrong::into_json).collect();
        Self { detail, ..Self::unprocessable("") }
    }

    /// 503.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        Self { retry_after: Some(Duration::from_secs(1)), ..error }
    }

    /// A refusal of the gate; `otherwise` is what somebody is told who is known and may not.
    pub fn refused(refusal: Refusal, otherwise: &str) -> Self {
        match refusal {
            Refusal::Unauthenticated(why) => Self::unauthorized(why),
            Refusal::Forbidden(_) => Self::forbidden(otherwise),
            Refusal::Unavailable(why) => Self::unavailable(why),
        }
    }

    /// The sentence, or all sentences of the list.
    pub fn text(&self) -> String {
        match &self.detail {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// The answer that tells a client.
    pub(crate) fn response(&self) -> Response<Body> {
        let mut response = whole(self.code, "application/json", text(&json!({"detail": self.detail})));
        let headers = response.headers_mut();
        if let Some(after) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if self.code == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// What the store says. Nothing of how it is made is told to clients.
impl From<concert_store::Error> for Error {
    fn from(error: concert_store::Error) -> Self {
        use concert_store::Error as Store;
        match error {
            Store::NotFound { key } => Self::not_found(format!("{} not found", key.name)),
            Store::AlreadyExists { key } => Self::conflict(format!("{} already exists", key.name)),
            Store::Conflict { .. } => Self::conflict("the object was changed by somebody else meanwhile"),
            Store::Contested { .. } | Store::Fenced { .. } => Self::conflict(error.to_string()),
            Store::Invalid { errors, .. } => Self::unprocessable(joined(&errors)),
            Store::Unknown { .. } => Self::unprocessable(error.to_string()),
            Store::Forbidden { why, .. } => Self::conflict(why),
            Store::UnknownKind { .. } => Self::not_found("Not Found"),
            Store::Expired => Self::new(StatusCode::GONE, "the requested position is too old"),
            Store::Full => Self::unavailable(FULL),
            Store::Unavailable(source) => {
                tracing::error!(error = %source, "the store failed");
                Self::unavailable("the store is unavailable")
            }
        }
    }
}

fn joined(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Gate(refusal) => Self::refused(refusal, NOT_PERMITTED),
            Refused::Denied(denied) => denied.into(),
            Refused::Store(error) => error.into(),
        }
    }
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::BadRequest(detail) | Denied::Invalid { detail, .. } => Self::bad_request(detail),
            Denied::Forbidden(detail) => Self::forbidden(detail),
            Denied::Store(error) => error.into(),
        }
    }
}

/// What both doors refuse in the same place, such as a body that is too large.
impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        let retry_after = error.details.retry_after;
        Self { retry_after, ..Self::new(error.reason.code(), error.message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_fields_has_the_shape_clients_know() {
        let place = vec![json!("body"), json!("name")];
        let error = Error::fields(vec![Wrong::value(place, "name must be short", json!("API"))]);
        assert_eq!(error.code, 422);
        assert_eq!(
            error.detail,
            json!([{"type": "value_error", "loc": ["body", "name"], "msg": "Value error, name must be short",
                "input": "API", "ctx": {"error": {}}}])
        );
    }

    #[test]
    fn who_is_not_known_hears_why_and_no_more() {
        let said = |why: &str| Error::refused(Refusal::Unauthenticated(why.into()), "").text();
        assert_eq!(said("Token has expired"), "Token has expired");
        assert_eq!(said("Invalid token: signature"), "Invalid token: signature");
        let forbidden = Error::refused(Refusal::Forbidden("User jane cannot".into()), NOT_PERMITTED);
        assert_eq!((forbidden.code.as_u16(), forbidden.text().as_str()), (403, NOT_PERMITTED));
    }

    #[test]
    fn the_store_keeps_its_secrets() {
        let error = concert_store::Error::Unavailable("disk /dev/sda is on fire".into());
        assert_eq!(Error::from(error).text(), "the store is unavailable");
    }
}
