//! A resource as REST shows it.

use concert_model::no8s::{Phase, Resource, names};
use concert_model::{Object, Timestamp, time};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::draft7::dumps;

/// All that is to be known of a resource.
pub fn resource(object: &Object) -> Value {
    let it = Resource(object);
    let updated = updated(object);
    let next = match it.shown_phase() {
        // Due since it was written: that is what no time means here.
        Phase::Pending | Phase::Deleting => it.next().or(updated),
        Phase::Reconciling | Phase::Ready | Phase::Failed => it.next(),
    };
    json!({
        "id": it.id(),
        "name": object.name(),
        "resource_type_name": it.type_name(),
        "resource_type_version": it.type_version(),
        "action_plugin": it.action(),
        "spec": or_empty(object.spec()),
        "plugin_config": or_empty(it.config()),
        "metadata": or_empty(it.details()),
        "labels": labels(object),
        "status": it.shown_phase().to_string(),
        "status_message": it.message(),
        "generation": object.generation(),
        "observed_generation": it.observed_generation(),
        "spec_hash": spec_hash(object.spec()),
        "retry_count": it.retry_count(),
        "finalizers": object.finalizers(),
        "conditions": conditions(object),
        "outputs": or_empty(it.outputs()),
        "created_at": object.created_at().map(naive),
        "updated_at": updated.map(naive),
        "deleted_at": object.deleted_at().map(naive),
        "last_reconcile_time": it.last().map(naive),
        "next_reconcile_time": next.map(naive),
    })
}

/// `2026-11-15T20:31:16.710423`: UTC, without saying so.
pub fn naive(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string()
}

/// When anything of it last changed, as far as it tells.
pub fn updated(object: &Object) -> Option<Timestamp> {
    let it = Resource(object);
    let transitions = it.conditions();
    let transitions = transitions.iter().filter_map(|it| time::parse(&it.last_transition_time));
    let written = object.annotation(names::UPDATED_AT).and_then(time::parse);
    [object.created_at(), object.deleted_at(), it.last(), written]
        .into_iter()
        .flatten()
        .chain(transitions)
        .max()
}

/// The digest of a spec, as Python programs compute it: SHA-256 of `json.dumps(spec, sort_keys=True)`.
pub fn spec_hash(spec: &Value) -> String {
    let empty = json!({});
    let spec = if spec.is_null() { &empty } else { spec };
    let hash = digest(&SHA256, dumps(spec).as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn or_empty(value: &Value) -> Value {
    if value.is_null() { json!({}) } else { value.clone() }
}

/// Those that people gave it.
fn labels(object: &Object) -> Value {
    let own =
        object.labels().into_iter().filter(|(name, _)| !matches!(name.as_str(), names::ID | names::ACTION));
    own.map(|(name, value)| (name, Value::String(value))).collect::<serde_json::Map<_, _>>().into()
}

fn conditions(object: &Object) -> Value {
    let shown = |it: concert_model::Condition| {
        let since = time::parse(&it.last_transition_time)
            .map(|at| at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string());
        json!({
            "type": it.kind, "status": it.status, "reason": it.reason, "message": it.message,
            "lastTransitionTime": since, "observedGeneration": it.observed_generation.unwrap_or_default(),
        })
    };
    Resource(object).conditions().into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_python() {
        // hashlib.sha256(json.dumps({"ttl": 300, "domain": "ä"}, sort_keys=True).encode()).hexdigest()
        let text = r#"{"domain": "\u00e4", "ttl": 300}"#;
        let expected: String =
            digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(spec_hash(&json!({"ttl": 300, "domain": "ä"})), expected);
        assert_eq!(
            spec_hash(&Value::Null),
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }

    #[test]
    fn a_new_resource_is_pending_and_due() {
        let object = Object::from_value(json!({
            "apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord",
            "metadata": {"name": "a", "generation": 1, "creationTimestamp": "2026-11-15T20:31:16Z",
                "labels": {names::ID: "7", "team": "x"}, "finalizers": ["dns_record"]},
            "spec": {"domain": "a"},
        }))
        .unwrap();
        let shown = resource(&object);
        let expected = [
            ("id", json!(7)),
            ("resource_type_name", json!("DnsRecord")),
            ("resource_type_version", json!("v1")),
            ("action_plugin", json!("")),
            ("status", json!("pending")),
            ("labels", json!({"team": "x"})),
            ("plugin_config", json!({})),
            ("outputs", json!({})),
            ("created_at", json!("2026-11-15T20:31:16.000000")),
            ("next_reconcile_time", json!("2026-11-15T20:31:16.000000")),
            ("last_reconcile_time", Value::Null),
            ("deleted_at", Value::Null),
        ];
        for (field, value) in expected {
            assert_eq!(shown[field], value, "{field}");
        }
    }
}
