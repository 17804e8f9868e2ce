//! What a provider may change of an object, and nothing else of it.

use concert_model::condition::{self, Condition};
use concert_model::{Object, Timestamp};
use concert_provider::Delta;
use serde_json::{Map, Value};

use super::vocabulary::annotation;

/// Annotations that speak to us, or that only we write.
const RESERVED: [&str; 8] = [
    annotation::EXTERNAL_NAME,
    annotation::CREATE_PENDING,
    annotation::CREATE_SUCCEEDED,
    annotation::CREATE_FAILED,
    annotation::CREATE_TOKEN,
    annotation::PAUSED,
    annotation::RECONCILE_REQUESTED_AT,
    annotation::DELETE_WHILE_PAUSED,
];

/// Fields of the status that are not a provider's to replace.
const OURS: [&str; 3] = ["conditions", "lastHandledReconcileAt", "bindingPhase"];

/// The annotations that `delta` sets, its external name among them.
pub fn annotations(delta: &Delta) -> impl Iterator<Item = (&str, &str)> {
    let name = delta.external_name.as_deref().filter(|it| !it.is_empty());
    let name = name.map(|name| (annotation::EXTERNAL_NAME, name));
    let others = delta.annotations.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    others.filter(|(name, _)| !RESERVED.contains(name)).chain(name)
}

/// Puts the annotations of `delta` on `object`; says whether that changed anything.
pub fn annotate(object: &mut Object, delta: &Delta) -> bool {
    let mut has_changed = false;
    for (name, value) in annotations(delta) {
        if object.annotation(name) != Some(value) {
            object.set_annotation(name, value);
            has_changed = true;
        }
    }
    has_changed
}

/// Fills what `delta` late-initialises; says whether that changed anything. What is set stays.
pub fn late_initialise(object: &mut Object, delta: &Delta) -> bool {
    let Some(fields) = &delta.spec else { return false };
    match object.get_mut("spec") {
        Value::Object(spec) => fill(spec, fields),
        _ => false,
    }
}

fn fill(into: &mut Map<String, Value>, from: &Map<String, Value>) -> bool {
    let mut has_changed = false;
    for (field, value) in from {
        match into.get_mut(field) {
            None | Some(Value::Null) if value.is_null() => {}
            None | Some(Value::Null) => {
                into.insert(field.clone(), value.clone());
                has_changed = true;
            }
            Some(Value::Object(inner)) => {
                if let Value::Object(value) = value {
                    has_changed |= fill(inner, value);
                }
            }
            Some(_) => {}
        }
    }
    has_changed
}

/// Puts the status of `delta` in the place of `status`: conditions merge by type, all else is replaced.
pub fn restate(status: &mut Value, delta: &Delta, generation: i64, now: Timestamp) {
    let Some(fields) = &delta.status else { return };
    let mut next = Map::new();
    let kept = OURS.iter().filter_map(|field| Some(((*field).to_owned(), status.get(*field)?.clone())));
    next.extend(kept);
    let others = fields.iter().filter(|(field, _)| !OURS.contains(&field.as_str()));
    next.extend(others.map(|(field, value)| (field.clone(), value.clone())));
    *status = Value::Object(next);
    let theirs = fields.get("conditions").and_then(Value::as_array);
    for value in theirs.into_iter().flatten() {
        // A provider need not know of times and generations; those are ours to keep.
        if let Ok(theirs) = serde_json::from_value::<Condition>(value.clone()) {
            condition::set(status, theirs.observed(generation), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Object {
        Object::from_value(json!({"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": "a"}, "spec": {"forProvider": {"size": 3, "zone": null}}}))
        .unwrap()
    }

    fn map(value: Value) -> Option<Map<String, Value>> {
        value.as_object().cloned()
    }

    #[test]
    fn late_initialisation_fills_and_never_overwrites() {
        let mut object = object();
        let spec = map(json!({"forProvider": {"size": 9, "tier": "standard", "zone": "b"}, "other": null}));
        let delta = Delta { spec, ..Delta::default() };
        assert!(late_initialise(&mut object, &delta));
        assert_eq!(object.spec(), &json!({"forProvider": {"size": 3, "tier": "standard", "zone": "b"}}));
        assert!(!late_initialise(&mut object, &delta));
    }

    #[test]
    fn annotations_that_speak_to_us_are_not_the_providers() {
        let mut object = object();
        let annotations = [(annotation::PAUSED, "true"), ("example.com/note", "x")];
        let delta = Delta {
            annotations: annotations.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            external_name: Some("bkt-1".into()),
            ..Delta::default()
        };
        assert!(annotate(&mut object, &delta));
        assert_eq!(object.annotation(annotation::PAUSED), None);
        assert_eq!(object.annotation("example.com/note"), Some("x"));
        assert_eq!(object.annotation(annotation::EXTERNAL_NAME), Some("bkt-1"));
        assert!(!annotate(&mut object, &delta));
    }

    #[test]
    fn a_status_is_replaced_but_for_conditions_and_what_is_ours() {
        let mut status = json!({"atProvider": {"old": 1}, "lastHandledReconcileAt": "x",
            "conditions": [{"type": "Synced", "status": "True"}]});
        let new = map(json!({"atProvider": {"id": 9_007_199_254_740_993_i64},
            "lastHandledReconcileAt": "forged", "conditions": [{"type": "Ready", "status": "True", "reason": "Available"}]}));
        let delta = Delta { status: new, ..Delta::default() };
        restate(&mut status, &delta, 4, Timestamp::UNIX_EPOCH);
        assert_eq!(status["atProvider"], json!({"id": 9_007_199_254_740_993_i64}));
        assert_eq!(status["lastHandledReconcileAt"], "x");
        assert_eq!(status["conditions"].as_array().unwrap().len(), 2);
        assert_eq!(condition::find(&status, "Ready").unwrap().observed_generation, Some(4));
    }

    #[test]
    fn no_status_leaves_it_alone() {
        let mut status = json!({"atProvider": {"old": 1}});
        restate(&mut status, &Delta::default(), 1, Timestamp::UNIX_EPOCH);
        assert_eq!(status, json!({"atProvider": {"old": 1}}));
    }
}
