//! What an object is told of its thing.

use concert_model::{Timestamp, time};
use concert_provider::conventions::detail;
use concert_provider::{Delta, Details};
use serde_json::{Map, Value, json};

use crate::cloud::{State, Thing};

/// Status, external name and late-initialised fields.
pub(super) fn delta(thing: &Thing, spec: &Value, now: Timestamp) -> Delta {
    Delta {
        status: Some(status(thing, now)),
        external_name: Some(thing.key.id.clone()),
        spec: late_initialised(thing, spec),
        ..Delta::default()
    }
}

/// How to connect to a thing.
pub(super) fn connection(thing: &Thing) -> Details {
    Details::new()
        .with(detail::ENDPOINT, thing.endpoint())
        .with(detail::USERNAME, "admin")
        .with(detail::PASSWORD, thing.password.as_str())
}

/// Nothing in it moves while the thing stays as it is, so that looking again writes nothing.
fn status(thing: &Thing, now: Timestamp) -> Map<String, Value> {
    let state = thing.state(now);
    let (status, reason) = match state {
        State::Ready => ("True", "Available"),
        State::Creating => ("False", "Creating"),
        State::Unavailable => ("False", "Unavailable"),
    };
    let mut at_provider = json!({
        "id": thing.key.id,
        "state": state.as_str(),
        "endpoint": thing.endpoint(),
        "createdAt": time::seconds(thing.created_at),
    });
    for field in ["region", "size"] {
        if let Some(value) = thing.properties.get(field) {
            at_provider[field] = value.clone();
        }
    }
    let whole = json!({
        "atProvider": at_provider,
        "conditions": [{"type": "Ready", "status": status, "reason": reason}],
    });
    whole.as_object().cloned().unwrap_or_default()
}

fn late_initialised(thing: &Thing, spec: &Value) -> Option<Map<String, Value>> {
    let tier = thing.properties.get("tier")?;
    if spec.pointer("/forProvider/tier").is_some_and(|it| !it.is_null()) {
        return None;
    }
    json!({"forProvider": {"tier": tier}}).as_object().cloned()
}
