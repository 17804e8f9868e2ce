//! What holds for server-side apply whatever is applied, and whatever was there before.

use concert_model::time::Timestamp;
use concert_schema::Schema;
use concert_schema::apply::{ApplyError, Manager, Operation, apply, track};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

fn schema() -> Schema {
    let leaf = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    Schema::compile(&json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "a": leaf,
            "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
            "map": { "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"],
                "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "required": ["a"], "properties": { "a": { "type": "string" } } } },
            "whole": { "type": "object", "x-kubernetes-map-type": "atomic",
                "x-kubernetes-preserve-unknown-fields": true },
        }},
    }}))
    .expect("the schema is structural")
}

fn object(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Object(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn any_json() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 8] = ["a", "b", "spec", "set", "map", "metadata", "managedFields", "f:a"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        Just(json!(1.0)),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(select(NAMES.to_vec()), inner, 0..4).prop_map(object),
        ]
    })
}

/// A spec that fits the schema.
fn any_spec() -> impl Strategy<Value = Value> {
    let names = || select(vec!["x", "y", "z"]);
    let set = proptest::sample::subsequence(vec!["p", "q", "r", "s"], 0..4).prop_shuffle();
    let elements = btree_map(select(vec!["p", "q", "r"]), btree_map(names(), any_json(), 0..2), 0..3);
    let map = elements.prop_map(|elements| {
        let element = |(key, fields)| {
            let mut element = object(fields);
            element["a"] = json!(key);
            element
        };
        elements.into_iter().map(element).collect::<Vec<Value>>()
    });
    let field = prop_oneof![
        btree_map(names(), any_json(), 0..3).prop_map(|fields| ("a", object(fields))),
        set.prop_map(|set| ("set", json!(set))),
        map.prop_shuffle().prop_map(|map| ("map", json!(map))),
        btree_map(names(), any_json(), 0..3).prop_map(|fields| ("whole", object(fields))),
        any_json().prop_map(|value| ("free", value)),
    ];
    vec(field, 0..5).prop_map(object)
}

fn bucket(spec: Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Bucket", "metadata": { "name": "b" }, "spec": spec })
}

fn manager(name: &'static str, operation: Operation, second: i64) -> Manager<'static> {
    let time = Timestamp::from_second(1_794_774_600 + second).expect("the second is near ours");
    Manager { name, operation, api_version: "example.com/v1", subresource: "", time }
}

/// What happens to an object, one after the other.
fn any_story() -> impl Strategy<Value = Vec<(&'static str, bool, Value)>> {
    vec((select(vec!["one", "two", "three"]), any::<bool>(), any_spec()), 0..5)
}

fn told(story: Vec<(&'static str, bool, Value)>) -> Option<Value> {
    let mut live: Option<Value> = None;
    for (index, (name, is_apply, spec)) in story.into_iter().enumerate() {
        let second = index as i64;
        if is_apply {
            let wanted = bucket(spec);
            let writer = manager(name, Operation::Apply, second);
            live =
                Some(apply(&schema(), live.as_ref(), &wanted, &writer, true).expect("it fits and is forced"));
        } else {
            let mut new = bucket(spec);
            track(&schema(), live.as_ref(), &mut new, &manager(name, Operation::Update, second));
            live = Some(new);
        }
    }
    live
}

fn spec_of(object: &Value) -> Map<String, Value> {
    object["spec"].as_object().cloned().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn applying_twice_is_applying_once(story in any_story(), spec in any_spec()) {
        let live = told(story);
        let wanted = bucket(spec);
        let once = apply(&schema(), live.as_ref(), &wanted, &manager("one", Operation::Apply, 50), true).unwrap();
        let twice = apply(&schema(), Some(&once), &wanted, &manager("one", Operation::Apply, 60), false);
        prop_assert_eq!(twice.unwrap(), once);
    }

    #[test]
    fn a_write_of_nothing_keeps_ownership(story in any_story()) {
        if let Some(live) = told(story) {
            let mut new = live.clone();
            track(&schema(), Some(&live), &mut new, &manager("four", Operation::Update, 50));
            prop_assert_eq!(&new, &live);
        }
    }

    /// Values that are atomic or scalar arrive exactly; nothing of an own first apply is lost.
    #[test]
    fn the_first_apply_arrives_whole(spec in any_spec()) {
        let wanted = bucket(spec.clone());
        let live = apply(&schema(), None, &wanted, &manager("one", Operation::Apply, 0), false).unwrap();
        prop_assert_eq!(&live["spec"], &spec);
    }

    #[test]
    fn applying_nothing_takes_back_everything(spec in any_spec()) {
        let writer = manager("one", Operation::Apply, 0);
        let live = apply(&schema(), None, &bucket(spec), &writer, false).unwrap();
        let live = apply(&schema(), Some(&live), &bucket(json!({})), &writer, false).unwrap();
        prop_assert!(spec_of(&live).is_empty(), "{}", live);
    }

    #[test]
    fn without_force_everybody_keeps_what_they_own(story in any_story(), spec in any_spec()) {
        let Some(live) = told(story) else { return Ok(()) };
        let writer = manager("five", Operation::Apply, 50);
        match apply(&schema(), Some(&live), &bucket(spec), &writer, false) {
            Err(ApplyError::Conflicts(conflicts)) => prop_assert!(!conflicts.is_empty()),
            Err(error) => panic!("{error}"),
            Ok(after) => {
                let names = |object: &Value| -> Vec<Value> {
                    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
                    entries.into_iter().filter(|entry| entry["manager"] != "five" && entry["manager"] != "before-first-apply").collect()
                };
                prop_assert_eq!(names(&after), names(&live));
            }
        }
    }

    #[test]
    fn hostile_input_does_no_harm(live in any_json(), applied in any_json(), managed in any_json()) {
        let mut live = live;
        if let Some(fields) = live.as_object_mut() {
            fields.insert("metadata".to_owned(), json!({ "managedFields": managed }));
        }
        let writer = manager("one", Operation::Apply, 0);
        if let Ok(after) = apply(&schema(), Some(&live), &applied, &writer, true) {
            prop_assert_eq!(apply(&schema(), Some(&after), &applied, &writer, false).unwrap(), after);
        }
        let mut new = applied;
        track(&schema(), Some(&live), &mut new, &manager("two", Operation::Update, 0));
    }
}
