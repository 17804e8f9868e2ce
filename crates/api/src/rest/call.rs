//! One request at the REST door, after it is known who sends it.

use std::sync::Arc;

use bytes::Bytes;
use concert_model::GroupKind;
use concert_store::{By, Clock, Local};
use http::header::{ETAG, HeaderValue, IF_MATCH};
use http::request::Parts as Head;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::{Value, json};

use super::door::Inner;
use super::error::{Error, NOT_ADMIN, NOT_PERMITTED, Wrong};
use super::ids::Ids;
use super::query::Query;
use crate::auth::{Access, Gate, User};
use crate::kube::Body;
use crate::kube::answer::{text, whole};
use crate::kube::params::Params;
use crate::listen::Peer;
use crate::write::{Operation, Refused, Writer, Written};

/// One request.
pub struct Call<'a> {
    pub(crate) door: &'a Arc<Inner>,
    /// Who asks.
    pub user: &'a User,
    /// Method, headers and so on.
    pub head: &'a Head,
    /// The path behind `/api/v1`, by segments.
    pub path: &'a [&'a str],
    pub(crate) params: &'a Params<'a>,
    /// What was sent.
    pub bytes: &'a Bytes,
}

impl<'a> Call<'a> {
    /// `GET`, `POST`, ….
    pub fn method(&self) -> &Method {
        &self.head.method
    }

    /// Where the objects are.
    pub fn store(&self) -> &Local {
        &self.door.store
    }

    /// Who may do what.
    pub fn gate(&self) -> &Gate {
        &self.door.gate
    }

    /// The one way in for every write.
    pub fn writer(&self) -> &Writer {
        &self.door.writer
    }

    /// Where time comes from.
    pub fn clock(&self) -> &dyn Clock {
        &*self.door.clock
    }

    /// Where numbers come from.
    pub fn ids(&self) -> &Ids {
        &self.door.ids
    }

    /// Who is at the other end, where that is known.
    pub fn peer(&self) -> Option<&Peer> {
        self.head.extensions.get::<Peer>()
    }

    /// What was sent, as JSON; null if nothing was.
    ///
    /// # Errors
    /// 422 for what is not JSON.
    pub fn body(&self) -> Result<Value, Error> {
        super::body::parse(&self.head.headers, self.bytes)
    }

    /// The parameters of the query, of which only these are known.
    pub fn query(&self, known: &[&str]) -> Query<'a> {
        Query::new(self.params, known)
    }

    /// The number in a path; 0, which nothing has, for one that is out of all bounds.
    ///
    /// # Errors
    /// 422 for what is no number; `name` is what the route calls it.
    pub fn id(&self, name: &str, text: &str) -> Result<u64, Error> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::fields(vec![Wrong {
                kind: "int_parsing",
                place: vec![json!("path"), json!(name)],
                message: "Input should be a valid integer, unable to parse string as an integer".into(),
                input: json!(text),
                context: None,
            }]));
        }
        Ok(text.parse().unwrap_or_default())
    }

    /// Lets administrators pass: those who may do this to definitions of kinds.
    ///
    /// # Errors
    /// 403 for everybody else.
    pub async fn admin(&self, verb: &str) -> Result<(), Error> {
        let kind = super::types::definition_kind();
        let access = access(verb, &kind, "customresourcedefinitions", "");
        self.gate().authorise(self.user, &access).await.map_err(|it| Error::refused(it, NOT_ADMIN))
    }

    /// Lets those pass who may do this to objects of a kind.
    ///
    /// # Errors
    /// 403 for everybody else.
    pub async fn permit(&self, verb: &str, kind: &GroupKind, plural: &str, name: &str) -> Result<(), Error> {
        let access = access(verb, kind, plural, name);
        self.gate().authorise(self.user, &access).await.map_err(|it| Error::refused(it, NOT_PERMITTED))
    }

    /// Writes something for who asks.
    ///
    /// # Errors
    /// As the write path refuses it.
    pub async fn write(&self, operation: Operation) -> Result<Written, Error> {
        Ok(self.try_write(operation).await?)
    }

    /// The same, for who wants to know why not.
    ///
    /// # Errors
    /// As the write path refuses it.
    pub async fn try_write(&self, operation: Operation) -> Result<Written, Refused> {
        let reason = match operation {
            Operation::Create(_) => "create",
            Operation::Delete(..) => "delete",
            Operation::Update(..) | Operation::Patch(..) | Operation::Apply { .. } => "update",
        };
        let actor = self.user.name.clone();
        let by = By { actor, reason: reason.into(), manager: "rest".into(), ..By::default() };
        self.writer().write(self.user, operation, &by).await
    }

    /// Whether the caller's `If-Match` lets a state with this version be changed.
    ///
    /// # Errors
    /// 412 if it does not.
    pub fn check_match(&self, version: &str) -> Result<(), Error> {
        IfMatch::of(&self.head.headers).check(version)
    }

    /// True if the caller named the state that may be changed.
    pub fn has_match(&self) -> bool {
        self.head.headers.contains_key(IF_MATCH)
    }
}

/// Which states of a thing may be changed: those that `If-Match` names, or any.
#[derive(Clone, Copy, Debug, Default)]
pub struct IfMatch<'a>(pub(crate) Option<&'a str>);

impl<'a> IfMatch<'a> {
    /// What these headers say.
    pub fn of(headers: &'a HeaderMap) -> Self {
        // What is no text names no state.
        Self(headers.get(IF_MATCH).map(|it| it.to_str().unwrap_or_default()))
    }

    /// Whether a state with this version may be changed.
    ///
    /// # Errors
    /// 412 if it may not.
    pub fn check(self, version: &str) -> Result<(), Error> {
        let Some(header) = self.0 else { return Ok(()) };
        let is_meant = header
            .split(',')
            .map(str::trim)
            .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"') == version);
        if is_meant {
            return Ok(());
        }
        let detail = format!("If-Match does not name the current state, which is \"{version}\"");
        Err(Error::new(StatusCode::PRECONDITION_FAILED, detail))
    }
}

/// What the gate is asked about cluster-scoped objects.
pub(crate) fn access<'a>(verb: &'a str, kind: &'a GroupKind, plural: &'a str, name: &'a str) -> Access<'a> {
    Access::Resource { verb, group: &kind.group, resource: plural, subresource: "", namespace: "", name }
}

/// JSON.
pub fn answer(code: StatusCode, value: &Value) -> Response<Body> {
    whole(code, "application/json", text(value))
}

/// JSON that is the state of one thing.
pub(crate) fn tagged(code: StatusCode, value: &Value, version: &str) -> Response<Body> {
    let mut response = answer(code, value);
    if let Ok(tag) = HeaderValue::try_from(format!("\"{version}\"")) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// Done, and nothing to say.
pub fn no_content() -> Response<Body> {
    let mut response = Response::new(http_body_util::Either::Left(http_body_util::Full::new(Bytes::new())));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
