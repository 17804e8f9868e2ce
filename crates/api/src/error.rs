//! What a client is told when a request is refused: code, reason, words and causes.
//!
//! The HTTP status of everything that can go wrong is decided here, once. Texts and reasons are those
//! that Kubernetes' clients switch on.

use std::time::Duration;

use concert_model::{FieldError, GroupKind, ObjectKey};
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::auth::Refusal;

/// What is said of a write for which the store has no room. Whoever reads it may have nobody else to ask.
pub(crate) const FULL: &str = "the disk is full: make room where the store is; reading goes on meanwhile";

/// One word for why: the `reason` of a Status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
    RequestTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
}

impl Reason {
    /// The HTTP status that goes with it.
    pub fn code(self) -> StatusCode {
        match self {
            Reason::BadRequest => StatusCode::BAD_REQUEST,
            Reason::Unauthorized => StatusCode::UNAUTHORIZED,
            Reason::Forbidden => StatusCode::FORBIDDEN,
            Reason::NotFound => StatusCode::NOT_FOUND,
            Reason::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Reason::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Reason::AlreadyExists | Reason::Conflict => StatusCode::CONFLICT,
            Reason::Expired => StatusCode::GONE,
            Reason::RequestEntityTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Reason::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Reason::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Reason::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Reason::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Reason::ServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Reason::Timeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Why, in one word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub message: String,
    /// What it is about.
    pub details: Box<Details>,
}

/// What a refusal is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The plural of the resource; for invalid objects, the kind.
    pub kind: String,
    /// Each single thing that is wrong.
    pub causes: Vec<Cause>,
    /// When to try again.
    pub retry_after: Option<Duration>,
    /// Where a list that is too old can go on, inconsistently.
    pub next: Option<String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueInvalid`, `FieldManagerConflict`, …
    pub reason: String,
    /// In words.
    pub message: String,
    /// Where in the object.
    pub field: String,
}

/// What is spoken of: one resource, and one object of it if there is a name.
#[derive(Clone, Copy, Debug)]
pub struct Naming<'a> {
    /// Group and kind.
    pub kind: &'a GroupKind,
    /// The plural of the resource.
    pub plural: &'a str,
    /// The object; may be empty.
    pub name: &'a str,
}

impl Naming<'_> {
    /// `widgets.example.com`.
    fn resource(&self) -> String {
        qualified(self.plural, &self.kind.group)
    }

    fn details(&self) -> Details {
        let (name, group, kind) = (self.name.into(), (&*self.kind.group).into(), self.plural.into());
        Details { name, group, kind, ..Details::default() }
    }

    /// The same for `key`, which may be of another kind: the namespace that is missing.
    fn for_key<'b>(&'b self, key: &'b ObjectKey, plural: &'b str) -> Naming<'b> {
        let plural = if key.kind == *self.kind { self.plural } else { plural };
        Naming { kind: &key.kind, plural, name: &key.name }
    }
}

fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

impl Error {
    /// A refusal without details.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), details: Box::default() }
    }

    /// A request that cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// A path behind which nothing is served.
    pub fn unknown_path() -> Self {
        Self::new(Reason::NotFound, "the server could not find the requested resource")
    }

    /// A method that the resource does not have.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(Reason::MethodNotAllowed, message)
    }

    /// An object that is not there.
    pub fn not_found(naming: &Naming<'_>) -> Self {
        let message = format!("{} {:?} not found", naming.resource(), naming.name);
        Self::new(Reason::NotFound, message).with(naming.details())
    }

    /// A body of a type that is not taken here.
    pub fn unsupported_media(accepted: &[&str]) -> Self {
        let message = "the body of the request was in an unknown format - accepted media types include";
        Self::new(Reason::UnsupportedMediaType, format!("{message}: {}", accepted.join(", ")))
    }

    /// An answer in none of the accepted types.
    pub fn not_acceptable(offered: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", offered.join(", "));
        Self::new(Reason::NotAcceptable, message)
    }

    /// A body with more than `bytes_max` bytes.
    pub fn too_large(bytes_max: usize) -> Self {
        let message = format!("Request entity too large: limit is {bytes_max}");
        Self::new(Reason::RequestEntityTooLarge, message)
    }

    /// Too much at once; `after` is when to try again.
    pub fn too_many(message: impl Into<String>, after: Duration) -> Self {
        let details = Details { retry_after: Some(after), ..Details::default() };
        Self::new(Reason::TooManyRequests, message).with(details)
    }

    /// A resource version that this store has not reached.
    pub fn version_too_large(asked: &str, newest: &str) -> Self {
        let message = format!("Too large resource version: {asked}, current: {newest}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: String::new(),
        };
        let retry_after = Some(Duration::from_secs(1));
        Self::new(Reason::Timeout, message).with(Details {
            causes: vec![cause],
            retry_after,
            ..Details::default()
        })
    }

    /// A watch position that is compacted away.
    pub fn expired_watch(asked: &str) -> Self {
        Self::new(Reason::Expired, format!("too old resource version: {asked}"))
    }

    /// Options of a request that break rules: `ListOptions`, `PatchOptions`, ….
    pub fn invalid_options(kind: &str, errors: Vec<FieldError>) -> Self {
        let kind = GroupKind::new("meta.k8s.io", kind);
        Self::invalid(&Naming { kind: &kind, plural: "", name: "" }, &errors)
    }

    /// An object that breaks rules.
    pub fn invalid(naming: &Naming<'_>, errors: &[FieldError]) -> Self {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let listed = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
        let kind = qualified(&naming.kind.kind, &naming.kind.group);
        let message = format!("{kind} {:?} is invalid: {listed}", naming.name);
        let details = Details {
            kind: (&*naming.kind.kind).into(),
            causes: errors.iter().map(cause).collect(),
            ..naming.details()
        };
        Self::new(Reason::Invalid, message).with(details)
    }

    /// Somebody may not.
    pub fn forbidden(naming: &Naming<'_>, why: &str) -> Self {
        let named = if naming.name.is_empty() { String::new() } else { format!(" {:?}", naming.name) };
        let message = format!("{}{named} is forbidden: {why}", naming.resource());
        Self::new(Reason::Forbidden, message).with(naming.details())
    }

    /// A refusal of the gate, spoken about `naming` where one resource is concerned.
    pub fn refused(refusal: Refusal, naming: Option<&Naming<'_>>) -> Self {
        match (refusal, naming) {
            (Refusal::Unauthenticated(_), _) => Self::new(Reason::Unauthorized, "Unauthorized"),
            (Refusal::Forbidden(why), naming) => {
                let details = naming.map(Naming::details).unwrap_or_default();
                Self::new(Reason::Forbidden, why).with(details)
            }
            (Refusal::Unavailable(why), _) => Self::unavailable(why),
        }
    }

    /// What the store says about a read. What it calls invalid is then a part of the query.
    pub fn of_read(error: concert_store::Error, naming: &Naming<'_>) -> Self {
        match error {
            concert_store::Error::Invalid { errors, .. } => {
                let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                Self::bad_request(texts.join(", "))
            }
            other => Self::of_store(other, naming),
        }
    }

    /// What the store says about a write.
    pub fn of_store(error: concert_store::Error, naming: &Naming<'_>) -> Self {
        use concert_store::Error as Store;
        match error {
            Store::NotFound { key } => Self::not_found(&naming.for_key(&key, "namespaces")),
            Store::AlreadyExists { key } => {
                let naming = naming.for_key(&key, naming.plural);
                let message = format!("{} {:?} already exists", naming.resource(), naming.name);
                Self::new(Reason::AlreadyExists, message).with(naming.details())
            }
            Store::Conflict { .. } => {
                let why = "the object has been modified; please apply your changes to the latest version and \
                           try again";
                Self::conflict(naming, why)
            }
            Store::Invalid { errors, .. } => Self::invalid(naming, &errors),
            unknown @ Store::Unknown { .. } => Self::bad_request(unknown.to_string()),
            Store::Contested { ref conflicts, .. } => contested(naming, conflicts, error.to_string()),
            Store::Forbidden { key, why } => closed(naming, &key, &why),
            Store::UnknownKind { .. } => Self::unknown_path(),
            Store::Expired => Self::new(Reason::Expired, "the requested position is too old"),
            fenced @ Store::Fenced { .. } => Self::conflict(naming, &fenced.to_string()),
            Store::Full => Self::unavailable(FULL),
            Store::Unavailable(source) => {
                tracing::error!(error = %source, "the store failed");
                Self::unavailable("the store is unavailable")
            }
        }
    }

    /// Something that works again later.
    pub fn unavailable(message: impl Into<String>) -> Self {
        let details = Details { retry_after: Some(Duration::from_secs(1)), ..Details::default() };
        Self::new(Reason::ServiceUnavailable, message).with(details)
    }

    fn conflict(naming: &Naming<'_>, why: &str) -> Self {
        let what = format!("{} {:?}", naming.resource(), naming.name);
        Self::new(Reason::Conflict, format!("Operation cannot be fulfilled on {what}: {why}"))
            .with(naming.details())
    }

    /// The same, about this.
    pub fn with(mut self, details: Details) -> Self {
        *self.details = details;
        self
    }

    /// The Status object that tells a client.
    pub fn to_status(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(next) = &self.details.next {
            metadata.insert("continue".into(), json!(next));
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "reason": format!("{:?}", self.reason), "code": self.reason.code().as_u16(),
        });
        let details = self.details.to_json();
        if !details.is_empty() {
            status["details"] = Value::Object(details);
        }
        status
    }
}

impl Details {
    fn to_json(&self) -> Map<String, Value> {
        let mut details = Map::new();
        for (field, text) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind)] {
            if !text.is_empty() {
                details.insert(field.into(), json!(text));
            }
        }
        if !self.causes.is_empty() {
            details.insert("causes".into(), self.causes.iter().map(Cause::to_json).collect());
        }
        if let Some(after) = self.retry_after {
            details.insert("retryAfterSeconds".into(), json!(after.as_secs()));
        }
        details
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let mut cause = Map::new();
        for (name, text) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !text.is_empty() {
                cause.insert(name.into(), json!(text));
            }
        }
        Value::Object(cause)
    }
}

fn cause(error: &FieldError) -> Cause {
    let reason = serde_json::to_value(error.rule).ok();
    let reason = reason.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    let whole = error.to_string();
    let message = whole.strip_prefix(&format!("{}: ", error.field)).unwrap_or(&whole).to_owned();
    Cause { reason, message, field: error.field.to_string() }
}

fn contested(naming: &Naming<'_>, conflicts: &[concert_schema::apply::Conflict], message: String) -> Error {
    let cause = |conflict: &concert_schema::apply::Conflict| Cause {
        reason: "FieldManagerConflict".into(),
        message: format!("conflict with {}", conflict.manager),
        field: conflict.field.clone(),
    };
    let causes = conflicts.iter().map(cause).collect();
    Error::new(Reason::Conflict, message).with(Details { causes, ..naming.details() })
}

/// The store refuses the object as things are now.
fn closed(naming: &Naming<'_>, key: &ObjectKey, why: &str) -> Error {
    let namespace = &key.namespace;
    if why != format!("namespace {namespace} is being deleted") {
        return Error::forbidden(naming, why);
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut error = Error::forbidden(naming, &why);
    error.details.causes.push(Cause {
        reason: "NamespaceTerminating".into(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    });
    error
}
