//! What an object is told of its thing.

use concert_model::Object;
use concert_provider::Delta;
use serde_json::{Map, Value, json};

/// Whether a thing can be used, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// It is on its way.
    Creating(String),
    Unavailable(String),
}

impl Readiness {
    fn condition(&self) -> Value {
        let (status, reason, message) = match self {
            Self::Ready => ("True", "Available", ""),
            Self::Creating(why) => ("False", "Creating", why.as_str()),
            Self::Unavailable(why) => ("False", "Unavailable", why.as_str()),
        };
        json!({"type": "Ready", "status": status, "reason": reason, "message": message})
    }
}

/// A delta with the whole status. Nothing in it moves while the thing stays as it is.
pub(crate) fn delta(object: &Object, name: &str, at_provider: Value, ready: &Readiness) -> Delta {
    let mut status = Map::new();
    status.insert("atProvider".to_owned(), at_provider);
    status.insert("conditions".to_owned(), json!([ready.condition()]));
    // A status replaces the one before; whether the object is bound is not ours to forget.
    if let Some(phase) = object.status().get("bindingPhase") {
        status.insert("bindingPhase".to_owned(), phase.clone());
    }
    Delta { status: Some(status), external_name: Some(name.to_owned()), ..Delta::default() }
}
