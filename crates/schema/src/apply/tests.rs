//! Stories of managers and the objects they share.

use concert_model::time;
use serde_json::{Value, json};

use super::*;

fn schema() -> Schema {
    Schema::compile(&json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "size": { "type": "integer" },
            "tier": { "type": "string" },
            "inner": { "type": "object", "properties": {
                "a": { "type": "string" }, "b": { "type": "string" },
            }},
            "tags": { "type": "object", "additionalProperties": { "type": "string" } },
            "whole": { "type": "object", "x-kubernetes-map-type": "atomic",
                       "additionalProperties": { "type": "string" } },
            "plain": { "type": "array", "items": { "type": "string" } },
            "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
            "ports": { "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": { "type": "object", "required": ["port"], "properties": {
                    "port": { "type": "integer" },
                    "protocol": { "type": "string", "default": "TCP" },
                    "name": { "type": "string" },
                    "target": { "type": "integer" },
                }}},
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        }},
        "status": { "type": "object", "properties": { "phase": { "type": "string" } } },
    }}))
    .unwrap()
}

fn object(spec: Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Bucket", "metadata": { "name": "b" }, "spec": spec })
}

fn manager(name: &str, operation: Operation, second: i64) -> Manager<'_> {
    let time = Timestamp::from_second(1_794_774_600 + second).unwrap();
    Manager { name, operation, api_version: "example.com/v1", subresource: "", time }
}

fn try_apply(
    live: Option<&Value>,
    spec: Value,
    name: &str,
    at: i64,
    force: bool,
) -> Result<Value, ApplyError> {
    apply(&schema(), live, &object(spec), &manager(name, Operation::Apply, at), force)
}

fn applied(live: Option<&Value>, spec: Value, name: &str) -> Value {
    try_apply(live, spec, name, 0, false).unwrap()
}

fn updated(live: Option<&Value>, spec: Value, name: &str) -> Value {
    let mut new = live.cloned().unwrap_or_else(|| object(json!({})));
    new["spec"] = spec;
    track(&schema(), live, &mut new, &manager(name, Operation::Update, 0));
    new
}

/// What `name` owns in spec.
fn owned(object: &Value, name: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let entry = entries.iter().find(|entry| entry["manager"] == name);
    entry.map_or(Value::Null, |entry| entry["fieldsV1"]["f:spec"].clone())
}

fn contested_fields(result: Result<Value, ApplyError>) -> Vec<String> {
    match result {
        Err(ApplyError::Conflicts(conflicts)) => conflicts.into_iter().map(|found| found.field).collect(),
        other => panic!("expected conflicts, found {other:?}"),
    }
}

#[test]
fn creating_owns_what_was_applied_in_the_format_of_kubernetes() {
    let mut wanted = object(json!({
        "size": 1, "tags": { "a": "1" }, "whole": { "x": "y" }, "plain": ["p"], "set": ["s"],
        "ports": [{ "port": 80, "target": 8080 }], "free": { "x": { "y": 1 } }, "inner": {},
    }));
    wanted["metadata"]["labels"] = json!({ "app": "web" });
    let created = apply(&schema(), None, &wanted, &manager("me", Operation::Apply, 0), false).unwrap();
    assert_eq!(created["spec"], wanted["spec"]);
    assert_eq!(
        created["metadata"]["managedFields"],
        json!([{
            "apiVersion": "example.com/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": { "f:labels": { "f:app": {} } },
                "f:spec": {
                    "f:free": { "f:x": { ".": {}, "f:y": {} } },
                    "f:inner": {},
                    "f:plain": {},
                    "f:ports": { "k:{\"port\":80,\"protocol\":\"TCP\"}": {
                        ".": {}, "f:port": {}, "f:target": {},
                    }},
                    "f:set": { "v:\"s\"": {} },
                    "f:size": {},
                    "f:tags": { "f:a": {} },
                    "f:whole": {},
                },
            },
            "manager": "me",
            "operation": "Apply",
            "time": time::seconds(manager("me", Operation::Apply, 0).time),
        }])
    );
}

#[test]
fn applying_the_same_again_changes_nothing_not_even_a_time() {
    let live = applied(None, json!({ "size": 1, "set": ["a", "b"] }), "me");
    let again = try_apply(Some(&live), json!({ "size": 1, "set": ["a", "b"] }), "me", 100, false).unwrap();
    assert_eq!(again, live);
    let changed = try_apply(Some(&live), json!({ "size": 2, "set": ["a", "b"] }), "me", 100, false).unwrap();
    assert_ne!(changed["metadata"]["managedFields"][0]["time"], live["metadata"]["managedFields"][0]["time"]);
}

#[test]
fn another_manager_adds_fields_of_its_own() {
    let live = applied(None, json!({ "size": 1 }), "one");
    let live = applied(Some(&live), json!({ "tier": "small" }), "two");
    assert_eq!(live["spec"], json!({ "size": 1, "tier": "small" }));
    assert_eq!(owned(&live, "one"), json!({ "f:size": {} }));
    assert_eq!(owned(&live, "two"), json!({ "f:tier": {} }));
}

#[test]
fn equal_values_are_shared_and_stay_until_the_last_owner_leaves() {
    let live = applied(None, json!({ "size": 1 }), "one");
    let live = applied(Some(&live), json!({ "size": 1, "tier": "t" }), "two");
    let live = applied(Some(&live), json!({}), "one");
    assert_eq!(live["spec"], json!({ "size": 1, "tier": "t" }));
    assert_eq!(owned(&live, "one"), json!({}));
    let live = applied(Some(&live), json!({ "tier": "t" }), "two");
    assert_eq!(live["spec"], json!({ "tier": "t" }));
}

#[test]
fn changing_what_others_own_is_a_conflict() {
    let live = applied(None, json!({ "size": 1 }), "one");
    let error = try_apply(Some(&live), json!({ "size": 2 }), "two", 0, false).unwrap_err();
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"one\": .spec.size");
    let live = updated(Some(&live), json!({ "size": 3, "tier": "t" }), "kubectl-client-side-apply");
    let error = try_apply(Some(&live), json!({ "size": 2 }), "one", 0, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using example.com/v1: \
         .spec.size"
    );
    let error = try_apply(Some(&live), json!({ "size": 2, "tier": "u" }), "one", 0, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"kubectl-client-side-apply\" using \
         example.com/v1:\n- .spec.size\n- .spec.tier"
    );
}

#[test]
fn several_managers_in_conflict_are_named_one_by_one() {
    let live = applied(None, json!({ "size": 1 }), "one");
    let live = applied(Some(&live), json!({ "tier": "t" }), "two");
    let error = try_apply(Some(&live), json!({ "size": 2, "tier": "u" }), "three", 0, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.size\nconflicts with \"two\":\n- \
         .spec.tier"
    );
}

#[test]
fn force_takes_over() {
    let live = applied(None, json!({ "size": 1, "tier": "t" }), "one");
    let live = try_apply(Some(&live), json!({ "size": 2 }), "two", 0, true).unwrap();
    assert_eq!(live["spec"], json!({ "size": 2, "tier": "t" }));
    assert_eq!(owned(&live, "one"), json!({ "f:tier": {} }));
    assert_eq!(owned(&live, "two"), json!({ "f:size": {} }));
}

#[test]
fn elements_with_keys_are_merged_by_them() {
    let live = applied(
        None,
        json!({ "ports": [{ "port": 1, "name": "one" }, { "port": 2, "name": "two" }] }),
        "one",
    );
    let live = applied(
        Some(&live),
        json!({ "ports": [{ "port": 3 }, { "port": 2, "protocol": "TCP", "target": 22 }] }),
        "two",
    );
    assert_eq!(
        live["spec"]["ports"],
        json!([
            { "port": 1, "name": "one" },
            { "port": 3 },
            { "port": 2, "name": "two", "protocol": "TCP", "target": 22 },
        ])
    );
    let live = applied(Some(&live), json!({ "ports": [{ "port": 2, "name": "two" }] }), "one");
    assert_eq!(
        live["spec"]["ports"],
        json!([{ "port": 3 }, { "port": 2, "name": "two", "protocol": "TCP", "target": 22 }])
    );
    let conflict = try_apply(Some(&live), json!({ "ports": [{ "port": 2, "name": "x" }] }), "two", 0, false);
    assert_eq!(contested_fields(conflict), [".spec.ports[port=2,protocol=\"TCP\"].name"]);
}

#[test]
fn elements_of_a_set_have_owners_one_by_one() {
    let live = applied(None, json!({ "set": ["a", "b"] }), "one");
    let live = applied(Some(&live), json!({ "set": ["c", "b"] }), "two");
    assert_eq!(live["spec"]["set"], json!(["a", "c", "b"]));
    let live = applied(Some(&live), json!({ "set": [] }), "one");
    assert_eq!(live["spec"]["set"], json!(["c", "b"]));
    let live = applied(Some(&live), json!({}), "two");
    assert_eq!(live["spec"], json!({ "set": [] }));
    assert_eq!(applied(Some(&live), json!({ "set": [] }), "one"), live);
    let live = applied(Some(&live), json!({}), "one");
    assert_eq!(live["spec"], json!({}));
}

#[test]
fn atomic_values_are_replaced_whole() {
    let live = applied(None, json!({ "plain": ["a", "b"], "whole": { "a": "1" } }), "one");
    let conflict = try_apply(Some(&live), json!({ "plain": ["a"] }), "two", 0, false);
    assert_eq!(contested_fields(conflict), [".spec.plain"]);
    let conflict = try_apply(Some(&live), json!({ "whole": { "b": "2" } }), "two", 0, false);
    assert_eq!(contested_fields(conflict), [".spec.whole"]);
    let live = applied(Some(&live), json!({ "plain": ["c"], "whole": { "b": "2" } }), "one");
    assert_eq!(live["spec"], json!({ "plain": ["c"], "whole": { "b": "2" } }));
}

#[test]
fn what_held_only_removed_fields_goes_with_them() {
    let live = applied(None, json!({ "size": 1, "inner": { "a": "1" }, "tags": { "x": "1" } }), "one");
    let live = applied(Some(&live), json!({ "size": 1 }), "one");
    assert_eq!(live["spec"], json!({ "size": 1 }));

    let live = applied(None, json!({ "inner": { "a": "1" }, "ports": [{ "port": 1, "name": "n" }] }), "one");
    let live = applied(Some(&live), json!({ "inner": { "b": "2" } }), "two");
    let live = applied(Some(&live), json!({}), "one");
    assert_eq!(live["spec"], json!({ "inner": { "b": "2" } }));
}

#[test]
fn a_field_of_an_element_goes_alone_while_the_element_is_applied() {
    let live = applied(None, json!({ "ports": [{ "port": 1, "name": "n", "target": 2 }] }), "one");
    let live = applied(Some(&live), json!({ "ports": [{ "port": 1, "target": 2 }] }), "one");
    assert_eq!(live["spec"]["ports"], json!([{ "port": 1, "target": 2 }]));
}

#[test]
fn free_form_objects_divide_and_their_lists_do_not() {
    let live = applied(None, json!({ "free": { "a": { "b": 1, "list": [1] } } }), "one");
    let live = applied(Some(&live), json!({ "free": { "a": { "c": 2 } } }), "two");
    assert_eq!(live["spec"]["free"], json!({ "a": { "b": 1, "list": [1], "c": 2 } }));
    let conflict = try_apply(Some(&live), json!({ "free": { "a": { "list": [2] } } }), "two", 0, false);
    assert_eq!(contested_fields(conflict), [".spec.free.a.list"]);
}

#[test]
fn a_kind_of_another_shape_is_taken_over_with_all_that_was_in_it() {
    let live = applied(None, json!({ "free": { "a": { "b": 1 } } }), "one");
    let conflict = try_apply(Some(&live), json!({ "free": { "a": "text" } }), "two", 0, false);
    assert_eq!(contested_fields(conflict), [".spec.free.a"]);
    let live = try_apply(Some(&live), json!({ "free": { "a": "text" } }), "two", 0, true).unwrap();
    assert_eq!(live["spec"]["free"], json!({ "a": "text" }));
    assert_eq!(owned(&live, "one"), Value::Null);
}

#[test]
fn an_object_that_nobody_applied_belongs_to_whoever_was_before() {
    let live = object(json!({ "size": 1, "tier": "t" }));
    let error = try_apply(Some(&live), json!({ "size": 2 }), "me", 0, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using example.com/v1: .spec.size"
    );
    let live = applied(Some(&live), json!({ "size": 1 }), "me");
    assert_eq!(owned(&live, "before-first-apply"), json!({ ".": {}, "f:size": {}, "f:tier": {} }));
    let live = applied(Some(&live), json!({}), "me");
    assert_eq!(live["spec"], json!({ "size": 1, "tier": "t" }));
}

#[test]
fn an_update_moves_ownership_of_what_it_changed() {
    let live = applied(None, json!({ "size": 1, "tags": { "a": "1" }, "set": ["x"] }), "one");
    let live =
        updated(Some(&live), json!({ "size": 2, "tags": { "a": "1", "b": "2" }, "set": ["x"] }), "two");
    assert_eq!(owned(&live, "one"), json!({ "f:set": { "v:\"x\"": {} }, "f:tags": { "f:a": {} } }));
    assert_eq!(owned(&live, "two"), json!({ "f:size": {}, "f:tags": { "f:b": {} } }));
    let live = updated(Some(&live), json!({ "size": 2, "tags": { "a": "1" }, "set": ["x"] }), "three");
    assert_eq!(owned(&live, "two"), json!({ "f:size": {} }));
    assert_eq!(owned(&live, "three"), Value::Null);
}

#[test]
fn an_update_that_creates_owns_what_it_wrote_with_what_that_is_in() {
    let live = updated(None, json!({ "size": 1, "tags": { "a": "1" } }), "me");
    assert_eq!(owned(&live, "me"), json!({ ".": {}, "f:size": {}, "f:tags": { ".": {}, "f:a": {} } }));
    assert_eq!(live["metadata"]["managedFields"][0]["operation"], "Update");
}

#[test]
fn an_update_that_changes_nothing_changes_nothing() {
    let live = applied(None, json!({ "size": 1 }), "one");
    assert_eq!(updated(Some(&live), json!({ "size": 1 }), "two"), live);
    let mut without = live.clone();
    take_managed(&mut without);
    track(&schema(), Some(&live), &mut without, &manager("two", Operation::Update, 9));
    assert_eq!(without, live);
}

#[test]
fn identity_is_nobodys() {
    let mut live = applied(None, json!({ "size": 1 }), "one");
    for (name, value) in [("uid", json!("u")), ("resourceVersion", json!("7")), ("generation", json!(1))] {
        live["metadata"][name] = value;
    }
    live["metadata"]["creationTimestamp"] = json!("2026-11-15T20:31:16Z");
    let mut new = live.clone();
    new["metadata"]["resourceVersion"] = json!("8");
    new["metadata"]["generation"] = json!(2);
    track(&schema(), Some(&live), &mut new, &manager("two", Operation::Update, 0));
    assert_eq!(new["metadata"]["managedFields"], live["metadata"]["managedFields"]);

    let mut wanted = object(json!({ "size": 1 }));
    wanted["metadata"]["creationTimestamp"] = Value::Null;
    let again = apply(&schema(), Some(&live), &wanted, &manager("one", Operation::Apply, 9), false).unwrap();
    assert_eq!(again, live);
}

#[test]
fn metadata_is_never_taken_apart() {
    let mut wanted = object(json!({}));
    wanted["metadata"] = json!({ "name": "b", "labels": { "a": "1" }, "finalizers": ["x/y"] });
    let me = manager("me", Operation::Apply, 0);
    let mut live = apply(&schema(), None, &wanted, &me, false).unwrap();
    live["metadata"]["uid"] = json!("u");
    let mut bare = object(json!({}));
    bare.as_object_mut().unwrap().remove("metadata");
    let live = apply(&schema(), Some(&live), &bare, &me, false).unwrap();
    assert_eq!(live["metadata"]["name"], "b");
    assert_eq!(live["metadata"]["uid"], "u");
    assert_eq!(live["metadata"].get("labels"), None);
    assert_eq!(live["metadata"].get("finalizers"), None);
}

#[test]
fn owner_references_are_told_apart_by_uid_and_replaced_whole() {
    let wanted = |references: Value| {
        let mut wanted = object(json!({}));
        wanted["metadata"]["ownerReferences"] = references;
        wanted
    };
    let one = wanted(json!([{ "apiVersion": "v1", "kind": "A", "name": "a", "uid": "1" }]));
    let two = wanted(json!([{ "apiVersion": "v1", "kind": "A", "name": "b", "uid": "2" }]));
    let live = apply(&schema(), None, &one, &manager("one", Operation::Apply, 0), false).unwrap();
    let live = apply(&schema(), Some(&live), &two, &manager("two", Operation::Apply, 0), false).unwrap();
    assert_eq!(live["metadata"]["ownerReferences"].as_array().unwrap().len(), 2);
    assert_eq!(
        live["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"],
        json!({ "f:ownerReferences": { "k:{\"uid\":\"1\"}": {} } })
    );
}

#[test]
fn a_subresource_has_an_entry_of_its_own() {
    let live = applied(None, json!({ "size": 1 }), "me");
    let mut new = live.clone();
    new["status"] = json!({ "phase": "Ready" });
    let writer = Manager { subresource: "status", ..manager("me", Operation::Update, 5) };
    track(&schema(), Some(&live), &mut new, &writer);
    assert_eq!(
        new["metadata"]["managedFields"][1],
        json!({
            "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "manager": "me",
            "operation": "Update", "subresource": "status", "time": time::seconds(writer.time),
            "fieldsV1": { "f:status": { ".": {}, "f:phase": {} } },
        })
    );
    let mut wanted = object(json!({}));
    wanted["status"] = json!({ "phase": "Lost" });
    let error =
        apply(&schema(), Some(&new), &wanted, &manager("you", Operation::Apply, 6), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"me\" with subresource \"status\" using \
         example.com/v1: .status.phase"
    );
}

#[test]
fn clients_may_rewrite_managed_fields_but_not_break_them() {
    let live = applied(None, json!({ "size": 1 }), "one");
    let rewritten = |managed: Value| {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = managed;
        track(&schema(), Some(&live), &mut new, &manager("two", Operation::Update, 0));
        new["metadata"].get("managedFields").cloned()
    };
    let mut moved = live["metadata"]["managedFields"].clone();
    moved[0]["manager"] = json!("renamed");
    assert_eq!(rewritten(moved.clone()), Some(moved));
    assert_eq!(rewritten(json!([{}])), None);
    let kept = Some(live["metadata"]["managedFields"].clone());
    for broken in [json!([]), json!(7), json!([7]), json!([{ "manager": 1 }]), json!(null)] {
        assert_eq!(rewritten(broken), kept);
    }
    let mut broken = live["metadata"]["managedFields"].clone();
    broken[0]["fieldsV1"] = json!({ "spec": {} });
    assert_eq!(rewritten(broken), kept);
}

#[test]
fn many_updaters_become_one() {
    let mut live = object(json!({ "tags": {} }));
    for index in 0..30 {
        let name = format!("pod-{index}");
        let mut new = live.clone();
        new["spec"]["tags"][&name] = json!("x");
        track(&schema(), Some(&live), &mut new, &manager(&name, Operation::Update, index));
        live = new;
    }
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(entries[9]["manager"], "pod-29");
    let owned: usize =
        entries.iter().map(|entry| entry["fieldsV1"]["f:spec"]["f:tags"].as_object().unwrap().len()).sum();
    assert_eq!(owned, 30);
}

#[test]
fn what_does_not_fit_is_refused_by_field() {
    let refused = |spec: Value| match try_apply(None, spec, "me", 0, false) {
        Err(ApplyError::Invalid(errors)) => errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        other => panic!("expected to be refused, found {other:?}"),
    };
    assert_eq!(refused(json!({ "new": 1 })), ["spec.new: Forbidden: field not declared in schema"]);
    assert_eq!(refused(json!({ "inner": 1 })), ["spec.inner: Invalid value: 1: must be of type object"]);
    assert_eq!(refused(json!({ "set": {} })), ["spec.set: Invalid value: {map}: must be of type array"]);
    assert_eq!(refused(json!({ "set": ["a", "a"] })), ["spec.set[1]: Duplicate value: \"a\""]);
    assert_eq!(
        refused(json!({ "ports": [{ "port": 1 }, { "port": 1, "protocol": "TCP" }] })),
        ["spec.ports[1]: Duplicate value: {map}"]
    );
    let mut wanted = object(json!({}));
    wanted["metadata"]["managedFields"] = json!([{}]);
    let me = manager("me", Operation::Apply, 0);
    assert!(matches!(apply(&schema(), None, &wanted, &me, false), Err(ApplyError::Invalid(_))));
    assert!(matches!(apply(&schema(), None, &json!(7), &me, false), Err(ApplyError::Invalid(_))));
}

#[test]
fn repeated_elements_from_before_a_schema_forbade_them_count_as_one() {
    let mut live = object(json!({ "set": ["a", "a", "b"] }));
    track(&schema(), None, &mut live, &manager("old", Operation::Update, 0));
    let conflict = try_apply(Some(&live), json!({ "set": ["a"] }), "me", 0, false);
    assert_eq!(contested_fields(conflict), [".spec.set[=\"a\"]"]);
    let live = try_apply(Some(&live), json!({ "set": ["a"] }), "me", 0, true).unwrap();
    assert_eq!(live["spec"]["set"], json!(["a", "b"]));
}

#[test]
fn ownership_ends_at_a_depth_that_can_be_stored() {
    let mut deep = json!(1);
    for _ in 0..110 {
        deep = json!({ "a": deep });
    }
    let live = applied(None, json!({ "free": deep }), "me");
    let text = serde_json::to_string(&live).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), live);
}
