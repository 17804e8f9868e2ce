//! Refusals of the API server, as errors of the contract.

use concert_model::{FieldError, FieldPath, GroupKind, ObjectKey, Rule};
use http::StatusCode;
use serde::Deserialize;

use super::transport::Answer;
use crate::error::Error;

/// What the server says before it names unknown fields.
const STRICT: &str = "strict decoding error: ";

/// What the API server says when it does not do what it was asked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    reason: String,
    message: String,
    code: u16,
    details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    name: String,
    /// The plural, in spite of its name.
    kind: String,
    causes: Vec<Cause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
    field: String,
}

/// What a request was about, for the error to name.
#[derive(Clone, Copy, Debug)]
pub(super) enum About<'a> {
    Object(&'a ObjectKey),
    /// Lists and watches.
    Kind(&'a GroupKind),
}

/// Why a request was refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// There is no such path: the kind is gone, or not served yet.
    NotServed,
    Error(Error),
}

impl Status {
    /// The status in an answer; what is no status at all (a proxy's page) is taken by its code.
    pub(super) fn of(answer: &Answer) -> Self {
        let code = answer.status.as_u16();
        let mut status = serde_json::from_slice(&answer.bytes).unwrap_or_else(|_| Self {
            message: String::from_utf8_lossy(&answer.bytes[..answer.bytes.len().min(200)]).trim().to_owned(),
            ..Self::default()
        });
        if status.code == 0 {
            status.code = code;
        }
        status
    }

    /// The status in the last line of a watch.
    pub(super) fn of_line(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    pub(super) fn refusal(self, about: About<'_>) -> Refusal {
        let code = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let key = match about {
            About::Object(key) => key.clone(),
            About::Kind(kind) => ObjectKey::cluster(kind.clone(), self.details.name.as_str()),
        };
        Refusal::Error(match (code, self.reason.as_str()) {
            (StatusCode::NOT_FOUND, _) if self.is_about_a_namespace(about) => {
                let key = ObjectKey::cluster(GroupKind::new("", "Namespace"), self.details.name.as_str());
                Error::NotFound { key }
            }
            (StatusCode::NOT_FOUND, _) if self.details.name.is_empty() => return Refusal::NotServed,
            (StatusCode::NOT_FOUND, _) => Error::NotFound { key },
            (StatusCode::CONFLICT, "AlreadyExists") => Error::AlreadyExists { key },
            (StatusCode::CONFLICT, _) => Error::Conflict { key },
            (StatusCode::FORBIDDEN, _) => Error::Forbidden { key, why: self.message },
            (StatusCode::GONE, _) => Error::Expired,
            // The second for patches, of whose result it says so.
            (StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY, _)
                if self.message.contains(STRICT) =>
            {
                self.unknown(about)
            }
            _ if self.is_no_position() => self.invalid(about, "resourceVersion"),
            // etcd says so only after everything else went well.
            _ if self.message.contains("etcdserver: request is too large") => self.invalid(about, ""),
            (StatusCode::UNPROCESSABLE_ENTITY, _) => self.invalid(about, "patch"),
            (
                StatusCode::BAD_REQUEST
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::UNSUPPORTED_MEDIA_TYPE,
                _,
            ) => self.invalid(about, ""),
            _ => Error::unavailable(format!("{code}: {}", self.message)),
        })
    }

    fn is_about_a_namespace(&self, about: About<'_>) -> bool {
        let is_own = matches!(about, About::Object(key) if key.kind == GroupKind::new("", "Namespace"));
        self.details.kind == "namespaces" && !self.details.name.is_empty() && !is_own
    }

    /// A position that this server has not reached, where it waits a moment and says that it timed out,
    /// or that no server has ever given out, which it takes for an error of its own.
    fn is_no_position(&self) -> bool {
        self.message.starts_with("resourceVersion: Invalid value")
            || self.details.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || self.message.contains("Too large resource version")
    }

    /// Fields that the server does not know, where it was asked to refuse them.
    fn unknown(self, about: About<'_>) -> Error {
        let told = self.message.rsplit_once(STRICT).map_or("", |(_, told)| told);
        let names = told.split("unknown field \"").skip(1).filter_map(|rest| rest.split_once('"'));
        let fields: Vec<FieldPath> = names.map(|(name, _)| FieldPath::new(name)).collect();
        match about {
            About::Object(key) if !fields.is_empty() => Error::Unknown { what: key.to_string(), fields },
            // It is strict about more than that: fields that come twice, say.
            _ => self.invalid(about, ""),
        }
    }

    /// `field` is where the fault lies if the server does not name any.
    fn invalid(self, about: About<'_>, field: &str) -> Error {
        let what = match about {
            About::Object(key) => key.to_string(),
            About::Kind(kind) => kind.to_string(),
        };
        let mut errors: Vec<FieldError> = self.details.causes.into_iter().map(field_error).collect();
        // Metadata of custom objects is checked twice or thrice, and complained of each time.
        errors.dedup();
        if errors.is_empty() {
            let field = FieldPath::new(field);
            errors.push(FieldError { field, rule: Rule::Invalid, value: None, detail: self.message });
        }
        Error::Invalid { what, errors }
    }
}

fn field_error(cause: Cause) -> FieldError {
    let Cause { reason, message, field } = cause;
    // Rules that we do not know are still invalid values.
    let rule = serde_json::from_value(reason.into()).unwrap_or(Rule::Invalid);
    let field = FieldPath::new(if field == "<nil>" { String::new() } else { field });
    // The text starts with the rule, as ours does when it is printed.
    let detail = message.split_once(": ").map_or(message.as_str(), |(_, rest)| rest).to_owned();
    FieldError { field, rule, value: None, detail }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn error(code: u16, status: &Value) -> Error {
        let answer = Answer {
            status: StatusCode::from_u16(code).unwrap(),
            bytes: status.to_string().into(),
            ..Answer::default()
        };
        let key = ObjectKey::namespaced(GroupKind::new("a.dev", "Widget"), "here", "a");
        match Status::of(&answer).refusal(About::Object(&key)) {
            Refusal::Error(error) => error,
            Refusal::NotServed => panic!("not served"),
        }
    }

    #[test]
    fn a_missing_namespace_is_told_from_a_missing_object() {
        let missing = |kind: &str, name: &str| json!({"reason": "NotFound", "code": 404, "details": {"kind": kind, "name": name}});
        let space = error(404, &missing("namespaces", "here"));
        assert_eq!(space.to_string(), "Namespace here does not exist");
        let object = error(404, &missing("widgets", "a"));
        assert_eq!(object.to_string(), "Widget.a.dev here/a does not exist");
    }

    #[test]
    fn causes_become_fields() {
        let causes = json!([
            {"reason": "FieldValueTypeInvalid", "field": "spec.n", "message": "Invalid value: \"string\": must be integer"},
            {"reason": "SomethingNew", "field": "<nil>", "message": "odd"}]);
        let Error::Invalid { errors, .. } =
            error(422, &json!({"reason": "Invalid", "code": 422, "details": {"causes": causes}}))
        else {
            panic!()
        };
        assert_eq!((errors[0].field.as_str(), errors[0].rule), ("spec.n", Rule::Type));
        assert_eq!(errors[0].detail, "\"string\": must be integer");
        assert_eq!(
            (errors[1].field.as_str(), errors[1].rule, errors[1].detail.as_str()),
            ("", Rule::Invalid, "odd")
        );
    }

    #[test]
    fn unknown_fields_are_named() {
        let message = "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown \
                       field \"spec.a\", unknown field \"x\"";
        let refusal = error(400, &json!({"code": 400, "reason": "BadRequest", "message": message}));
        assert_eq!(
            refusal.to_string(),
            "strict decoding error: unknown field \"spec.a\", unknown field \"x\""
        );
        let patch = "patch: Invalid value: \"{}\": strict decoding error: unknown field \"spec.a\"";
        let refusal = error(422, &json!({"code": 422, "reason": "Invalid", "message": patch}));
        assert!(matches!(refusal, Error::Unknown { .. }), "{refusal}");
        let twice = json!({"code": 400, "message": "strict decoding error: duplicate field \"spec.a\""});
        assert!(matches!(error(400, &twice), Error::Invalid { .. }));
    }

    #[test]
    fn what_cannot_be_read_is_taken_by_its_code() {
        let answer = Answer { status: StatusCode::BAD_GATEWAY, bytes: "<html>".into(), ..Answer::default() };
        let kind = GroupKind::new("a.dev", "Widget");
        let Refusal::Error(error) = Status::of(&answer).refusal(About::Kind(&kind)) else { panic!() };
        assert!(error.is_transient(), "{error}");
        let answer =
            Answer { status: StatusCode::NOT_FOUND, bytes: "404 page not found".into(), ..Answer::default() };
        assert!(matches!(Status::of(&answer).refusal(About::Kind(&kind)), Refusal::NotServed));
    }

    #[test]
    fn busy_and_broken_servers_are_unavailable() {
        for code in [401, 429, 500, 503, 504] {
            let status = json!({"code": code, "message": "later"});
            assert!(matches!(error(code, &status), Error::Unavailable(_)), "{code}");
        }
        let future = json!({"code": 504, "message": "Too large resource version: 9, current: 1"});
        assert!(matches!(error(504, &future), Error::Invalid { .. }));
        let odd = json!({"code": 500, "message": "resourceVersion: Invalid value: \"x\": strconv.ParseUint"});
        assert!(matches!(error(500, &odd), Error::Invalid { .. }));
        assert!(matches!(error(410, &json!({"code": 410, "reason": "Expired"})), Error::Expired));
    }
}
