//! What can go wrong between a client and a server, and what to try.

use serde_json::Value;

/// Why there is no answer, or not the one that was hoped for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot reach {server}")]
    Unreachable {
        server: String,
        #[source]
        why: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{server} has not answered within {seconds} s")]
    Silent { server: String, seconds: u64 },
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
    #[error("{server} answered with something that is not JSON")]
    Odd { server: String },
}

/// A Status of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: u16,
    /// One word for programs: `NotFound`.
    pub reason: String,
    pub message: String,
    /// The address of the server.
    pub server: String,
    /// Whether the message speaks of an object, and not of a path that is not there.
    pub is_about_object: bool,
}

impl Refusal {
    /// Reads the answer to a request that failed, whatever it is.
    pub fn of(server: &str, code: u16, body: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        let mut message = text("message");
        if message.is_empty() {
            let start = String::from_utf8_lossy(&body[..body.len().min(200)]).trim().to_owned();
            message = format!("{server} answered {code}{}{start}", if start.is_empty() { "" } else { ": " });
        }
        let is_about_object = status["details"]["name"].as_str().is_some_and(|it| !it.is_empty());
        Self { code, reason: text("reason"), message, server: server.to_owned(), is_about_object }
    }
}

impl Error {
    fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    pub fn is_not_found(&self) -> bool {
        self.refusal().is_some_and(|it| it.code == 404)
    }

    /// The path is not served at all, or not this way.
    pub fn is_not_served(&self) -> bool {
        self.refusal().is_some_and(|it| matches!(it.code, 404 | 405 | 501) && !it.is_about_object)
    }

    /// It is known who asks, and that they may not.
    pub fn is_forbidden(&self) -> bool {
        self.refusal().is_some_and(|it| it.code == 403)
    }

    /// Somebody else has written, or has the fields.
    pub fn is_conflict(&self) -> bool {
        self.refusal().is_some_and(|it| it.code == 409 && it.reason == "Conflict")
    }

    /// A position in the past that the server has forgotten.
    pub fn is_expired(&self) -> bool {
        self.refusal().is_some_and(|it| it.code == 410)
    }

    /// A command to try.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreachable { .. } | Self::Silent { .. } => {
                "start a server with `concert serve --dev`, or say which with --server URL or --kubeconfig FILE".into()
            }
            Self::Odd { server } => {
                format!("is {server} the address of an API server? try `concert api-resources --server URL`")
            }
            Self::Refused(refusal) => match (refusal.code, refusal.reason.as_str()) {
                (401, _) => format!("concert login --server {} --token TOKEN", refusal.server),
                (403, _) => "ask for a role that allows it, or use another identity with --token or --context".into(),
                (404, _) if refusal.is_about_object => "concert get KIND --all-namespaces shows what there is".into(),
                (404 | 405, _) => "concert api-resources shows what this server has".into(),
                (409, "AlreadyExists") => "concert apply -f FILE changes what is there".into(),
                (409, _) => "read it again with `concert get KIND/NAME -o yaml`; to take fields over from others, --force-conflicts".into(),
                (410, _) => "the list has moved on: run the same command again".into(),
                (413, _) => "send less at once".into(),
                (415 | 406, _) => "concert --version; is the server older than this command?".into(),
                (400 | 422, _) => "concert explain KIND/NAME, or correct the fields that are named".into(),
                (429 | 503, _) => "the server is busy: run the same command again in a moment".into(),
                _ => "the server's log says more; concert api-resources tells whether it works at all".into(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(code: u16, body: &Value) -> Error {
        Error::Refused(Box::new(Refusal::of("https://s", code, body.to_string().as_bytes())))
    }

    #[test]
    fn a_missing_object_is_not_a_missing_path() {
        let object = json!({"kind": "Status", "reason": "NotFound", "message": "buckets \"a\" not found",
            "details": {"name": "a", "kind": "buckets"}});
        let path = json!({"kind": "Status", "reason": "NotFound", "message": "the server could not find the requested resource",
            "details": {}});
        assert!(refused(404, &object).is_not_found() && !refused(404, &object).is_not_served());
        assert!(refused(404, &path).is_not_served());
        assert_eq!(refused(404, &object).to_string(), "buckets \"a\" not found");
    }

    #[test]
    fn every_refusal_has_a_hint_and_a_message() {
        for code in [400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 503] {
            let error = refused(code, &Value::Null);
            assert!(!error.hint().is_empty() && error.to_string().contains(&code.to_string()), "{code}");
        }
        assert_eq!(refused(401, &Value::Null).hint(), "concert login --server https://s --token TOKEN");
    }

    #[test]
    fn what_is_no_status_is_quoted() {
        let refusal = Refusal::of("http://s", 502, b"<html>bad gateway");
        assert_eq!(refusal.message, "http://s answered 502: <html>bad gateway");
    }
}
