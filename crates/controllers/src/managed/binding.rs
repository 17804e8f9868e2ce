//! What managed resources have on top that claims can be bound to: a phase, and a word on what becomes of
//! the external thing.

use concert_model::Object;
use concert_model::condition::{self, Status};
use concert_provider::Served;
use serde_json::{Value, json};

use super::decide::Rules;
use super::policy::{Policy, PolicyError};
use super::vocabulary::condition as kinds;

const PHASE: &str = "bindingPhase";
/// Free to be bound.
const UNBOUND: &str = "Unbound";
/// Says as much as nothing.
const UNBINDABLE: &str = "Unbindable";

/// Whether claims can be bound to the object: by its kind, or because one says that it will be.
pub fn is_bindable(object: &Object, served: &Served) -> bool {
    let schema = served.schema.as_ref();
    let has_phase =
        schema.is_some_and(|it| it.pointer("/properties/status/properties/bindingPhase").is_some());
    has_phase || object.spec().get("claimRef").is_some_and(|it| !it.is_null())
}

/// What may be done to the external thing of an object.
///
/// # Errors
/// As [`Policy::of`].
pub fn policy_of(object: &Object, rules: &Rules) -> Result<Policy, PolicyError> {
    let policy = Policy::of(object, rules.has_policies, rules.served.policies.as_deref())?;
    if !is_bindable(object, &rules.served) {
        return Ok(policy);
    }
    let text = |field: &str| object.spec().get(field).and_then(Value::as_str);
    Ok(match (text("reclaimPolicy"), text("deletionPolicy")) {
        (Some("Delete"), _) => policy.deleting(true),
        (None | Some(""), Some(deletion)) if deletion != "Orphan" => policy,
        // Who says nothing keeps what is there.
        _ => policy.deleting(false),
    })
}

/// Says that what is ready can be bound, unless it is, or was. The phase is that of `stored`: whoever binds
/// writes it too, also while a pass waits for its provider.
pub fn offer(stored: &Value, status: &mut Value) {
    let is_ready = condition::find(status, kinds::READY).is_some_and(|it| it.status == Status::True);
    let phase = stored.get(PHASE).and_then(Value::as_str).unwrap_or_default();
    if is_ready && matches!(phase, "" | UNBINDABLE) {
        status[PHASE] = json!(UNBOUND);
    } else if !phase.is_empty() {
        status[PHASE] = json!(phase);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use concert_model::GroupKind;

    use super::*;

    fn rules(is_bindable: bool) -> Rules {
        let mut served = Served::new(GroupKind::new("x.dev", "Store").at_version("v1"));
        let phase = json!({"properties": {"status": {"properties": {"bindingPhase": {"type": "string"}}}}});
        served.schema = is_bindable.then_some(phase);
        Rules {
            served,
            can_look_up: true,
            names_by_object: true,
            has_policies: true,
            creation_grace: Duration::ZERO,
            timeout: Duration::ZERO,
        }
    }

    fn object(spec: Value) -> Object {
        Object::from_value(json!({"apiVersion": "x.dev/v1", "kind": "Store", "metadata": {"name": "a"},
            "spec": spec}))
        .unwrap()
    }

    #[test]
    fn reclaiming_says_what_becomes_of_the_external_thing() {
        let claimed = json!({"name": "c"});
        for (is_bindable, spec, deletes) in [
            (true, json!({"reclaimPolicy": "Delete"}), true),
            (true, json!({"reclaimPolicy": "Delete", "deletionPolicy": "Orphan"}), true),
            (true, json!({"reclaimPolicy": "Retain", "deletionPolicy": "Delete"}), false),
            (true, json!({"reclaimPolicy": "Retain"}), false),
            (true, json!({"reclaimPolicy": ""}), false),
            (true, json!({}), false),
            (true, json!({"deletionPolicy": "Delete"}), true),
            (true, json!({"deletionPolicy": "Orphan"}), false),
            (true, json!({"deletionPolicy": "Orphan", "managementPolicies": ["Observe", "Delete"]}), true),
            (false, json!({}), true),
            (false, json!({"deletionPolicy": "Orphan"}), false),
            (false, json!({"claimRef": claimed}), false),
            (false, json!({"claimRef": claimed, "reclaimPolicy": "Delete"}), true),
        ] {
            let policy = policy_of(&object(spec.clone()), &rules(is_bindable)).unwrap();
            assert_eq!(policy.deletes(), deletes, "{is_bindable} {spec}");
        }
    }

    #[test]
    fn what_is_ready_is_offered_once() {
        let status = |ready: &str, phase: &str| {
            let mut status =
                json!({"conditions": [{"type": "Ready", "status": ready}], "bindingPhase": phase});
            let stored = status.clone();
            offer(&stored, &mut status);
            status["bindingPhase"].as_str().unwrap().to_owned()
        };
        assert_eq!(status("True", ""), "Unbound");
        assert_eq!(status("True", "Unbindable"), "Unbound");
        assert_eq!(status("False", ""), "");
        for phase in ["Unbound", "Bound", "Released"] {
            assert_eq!(status("True", phase), phase);
        }
        let mut nothing = json!(null);
        offer(&json!(null), &mut nothing);
        assert_eq!(nothing, json!(null));
    }

    #[test]
    fn what_was_written_meanwhile_is_not_undone() {
        let ready = json!([{"type": "Ready", "status": "True"}]);
        for (stored, seen) in [("Released", ""), ("Released", "Bound"), ("Bound", "Unbound")] {
            let mut status = json!({"conditions": ready, "bindingPhase": seen});
            offer(&json!({"bindingPhase": stored}), &mut status);
            assert_eq!(status["bindingPhase"], stored);
        }
    }
}
