//! What kubectl's patches do.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn patched(kind: &str, target: Value, patch: Value) -> Value {
    merge(&GroupKind::new("", kind), &target, &patch).unwrap()
}

#[test]
fn each_part_of_a_patch_does_what_it_says() {
    let cases = [
        // Plain merge.
        (
            json!({ "data": { "a": "1", "b": "2" } }),
            json!({ "data": { "a": null, "c": "3" } }),
            json!({ "data": { "b": "2", "c": "3" } }),
        ),
        (
            json!({ "data": "text" }),
            json!({ "data": { "a": null, "b": "1" } }),
            json!({ "data": { "b": "1" } }),
        ),
        // Lists without keys are replaced.
        (json!({ "rules": [1, 2] }), json!({ "rules": [3] }), json!({ "rules": [3] })),
        // Sets grow.
        (
            json!({ "metadata": { "finalizers": ["a"] } }),
            json!({ "metadata": { "finalizers": ["b", "a"] } }),
            json!({ "metadata": { "finalizers": ["a", "b"] } }),
        ),
        (
            json!({ "metadata": { "finalizers": ["a", "b"] } }),
            json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["a"] } }),
            json!({ "metadata": { "finalizers": ["b"] } }),
        ),
        (
            json!({ "metadata": { "finalizers": ["a", "x", "b"] } }),
            json!({ "metadata": { "$setElementOrder/finalizers": ["c", "b", "a"], "finalizers": ["c"] } }),
            json!({ "metadata": { "finalizers": ["c", "x", "b", "a"] } }),
        ),
        // Lists with keys.
        (
            json!({ "secrets": [{ "name": "a", "x": 1 }, { "name": "b" }] }),
            json!({ "secrets": [{ "name": "a", "y": 2 }, { "name": "c" }] }),
            json!({ "secrets": [{ "name": "a", "x": 1, "y": 2 }, { "name": "b" }, { "name": "c" }] }),
        ),
        (
            json!({ "secrets": [{ "name": "a" }, { "name": "b" }] }),
            json!({ "secrets": [{ "name": "a", "$patch": "delete" }, { "name": "z", "$patch": "delete" }] }),
            json!({ "secrets": [{ "name": "b" }] }),
        ),
        (
            json!({ "secrets": [{ "name": "a", "x": 1 }] }),
            json!({ "secrets": [{ "name": "a", "y": 2, "$patch": "replace" }] }),
            json!({ "secrets": [{ "name": "a", "y": 2 }] }),
        ),
        (
            json!({ "secrets": [{ "name": "a", "x": 1 }] }),
            json!({ "secrets": [{ "$patch": "replace" }, { "name": "b" }] }),
            json!({ "secrets": [{ "name": "b" }] }),
        ),
        (
            json!({ "secrets": [{ "name": "a" }, { "name": "x" }, { "name": "b" }] }),
            json!({ "$setElementOrder/secrets": [{ "name": "b" }, { "name": "a" }] }),
            json!({ "secrets": [{ "name": "x" }, { "name": "b" }, { "name": "a" }] }),
        ),
        (
            json!({ "metadata": { "ownerReferences": [{ "uid": "1", "name": "a" }] } }),
            json!({ "metadata": { "ownerReferences": [{ "uid": "1", "name": "b" }, { "uid": "2" }] } }),
            json!({ "metadata": { "ownerReferences": [{ "uid": "1", "name": "b" }, { "uid": "2" }] } }),
        ),
        // Objects.
        (
            json!({ "data": { "a": "1", "b": "2" } }),
            json!({ "data": { "$patch": "replace", "c": "3" } }),
            json!({ "data": { "c": "3" } }),
        ),
        (json!({ "data": { "a": "1" } }), json!({ "data": { "$patch": "delete" } }), json!({ "data": {} })),
        (
            json!({ "data": { "a": "1", "b": "2" } }),
            json!({ "data": { "$retainKeys": ["a", "c"], "c": "3" } }),
            json!({ "data": { "a": "1", "c": "3" } }),
        ),
        // Directives over nothing.
        (
            json!({}),
            json!({ "secrets": [{ "name": "a", "$patch": "merge" }], "data": { "a": { "b": null } } }),
            json!({ "secrets": [{ "name": "a" }], "data": { "a": {} } }),
        ),
    ];
    for (target, patch, expected) in cases {
        assert_eq!(patched("ServiceAccount", target, patch.clone()), expected, "{patch}");
    }
}

#[test]
fn keys_are_those_of_the_kind() {
    let (target, patch) = (json!({ "secrets": [{ "name": "a" }] }), json!({ "secrets": [{ "name": "b" }] }));
    assert_eq!(patched("Secret", target, patch.clone()), patch);
}

#[test]
fn what_is_no_patch_is_refused() {
    let refused = |patch: Value| {
        merge(&GroupKind::new("", "ServiceAccount"), &json!({}), &patch).unwrap_err().to_string()
    };
    assert_eq!(refused(json!(7)), "patch: Invalid value: 7: must be an object");
    assert_eq!(
        refused(json!({ "data": { "$patch": "explode" } })),
        "$patch: Invalid value: \"explode\": must be merge, replace or delete"
    );
    assert_eq!(
        refused(json!({ "secrets": [{ "x": 1 }] })),
        "secrets: Invalid value: {map}: every element must have name"
    );
    assert_eq!(refused(json!({ "secrets": [1] })), "secrets: Invalid value: 1: must be a list of objects");
    assert_eq!(
        refused(json!({ "data": { "$retainKeys": ["a"], "b": 1 } })),
        "b: Invalid value: 1: must be in $retainKeys"
    );
    assert_eq!(
        refused(json!({ "$setElementOrder/secrets": 1 })),
        "$setElementOrder/secrets: Invalid value: 1: must be a list"
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 10] = [
        "metadata",
        "finalizers",
        "secrets",
        "name",
        "a",
        "$patch",
        "$retainKeys",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
        "$setElementOrder/secrets",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!("delete")),
        Just(json!("replace")),
        "[ab]".prop_map(Value::from),
        (0i64..3).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(proptest::sample::select(NAMES.to_vec()), inner, 0..4)
                .prop_map(|map| map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_patch_does_harm(target in any_json(), patch in any_json()) {
        let _ = merge(&GroupKind::new("", "ServiceAccount"), &target, &patch);
    }

    #[test]
    fn an_empty_patch_changes_nothing(field in any_json()) {
        let target = json!({ "metadata": field, "data": {"a": "b"} });
        prop_assert_eq!(merge(&GroupKind::new("", "Secret"), &target, &json!({})).unwrap(), target);
    }
}
