//! Patches: changes computed against what is stored.

use std::sync::Arc;

use concert_model::Patch;
use serde_json::json;
use tokio::task::JoinSet;

use crate::conformance::expect::{next_word, refused};
use crate::conformance::{Subject, invalid_fields};
use crate::contract::{By, Part};
use crate::error::Error;

/// A merge patch is laid over the object; null removes.
pub async fn merge_lays_a_tree_over_the_object(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create("a", json!({"n": 1, "text": "t", "map": {"a": "1", "b": "2"}, "list": ["x"]})).await;
    let patched = widgets.merge("a", json!({"spec": {"text": null, "map": {"b": "3"}, "list": ["y"]}})).await;
    assert_eq!(*patched.decode().spec(), json!({"n": 1, "map": {"a": "1", "b": "3"}, "list": ["y"]}));
    assert_eq!(widgets.get("a").await, patched);
}

/// A JSON patch does its operations in order.
pub async fn operations_are_done_in_order(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create("a", json!({"n": 1, "list": ["x", "y"]})).await;
    let operations = json!([
        {"op": "test", "path": "/spec/n", "value": 1},
        {"op": "replace", "path": "/spec/n", "value": 2},
        {"op": "test", "path": "/spec/n", "value": 2},
        {"op": "add", "path": "/spec/list/-", "value": "z"},
        {"op": "remove", "path": "/spec/list/0"},
        {"op": "copy", "from": "/spec/list/0", "path": "/spec/text"},
        {"op": "add", "path": "/metadata/labels", "value": {"a.dev~1b": "c"}},
    ]);
    let refusal = widgets.try_operations("a", operations.clone()).await;
    // The tilde is an escape in paths only: as a label key it is malformed, and nothing was done.
    assert_eq!(invalid_fields(refusal), ["metadata.labels"]);
    let mut operations = operations.as_array().unwrap().clone();
    operations.pop();
    let patched = widgets.try_operations("a", json!(operations)).await.unwrap();
    assert_eq!(*patched.decode().spec(), json!({"n": 2, "list": ["y", "z"], "text": "y"}));
}

/// A test that fails, or a path that is missing, leaves everything undone.
pub async fn operations_are_done_all_or_none(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    for last in [
        json!({"op": "test", "path": "/spec/n", "value": 1}),
        json!({"op": "remove", "path": "/spec/missing"}),
        json!({"op": "add", "path": "/spec/missing/deeper", "value": 1}),
        json!({"op": "move", "from": "/nowhere", "path": "/spec/n"}),
    ] {
        let first = json!({"op": "replace", "path": "/spec/n", "value": 2});
        refused!(widgets.try_operations("a", json!([first, last])).await, Error::Invalid { .. });
        assert_eq!(widgets.get("a").await, created, "{last}");
    }
}

/// A patch of the main part leaves status alone.
pub async fn of_the_main_part_leaves_status_alone(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.try_status(&created, json!({"n": 1})).await.unwrap();
    let patched = widgets.merge("a", json!({"spec": {"n": 2}, "status": {"n": 2}})).await.decode();
    assert_eq!((&patched.spec()["n"], &patched.status()["n"]), (&json!(2), &json!(1)));
}

/// A patch of status leaves everything else alone.
pub async fn of_status_leaves_the_rest_alone(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create_labelled("a", json!({"l": "1"})).await;
    let patch = json!({"spec": {"n": 2}, "status": {"n": 2}, "metadata": {"labels": {"l": "2"}}});
    let patched = widgets.try_merge("a", Part::Status, patch).await.unwrap().decode();
    assert_eq!((&patched.spec()["n"], &patched.status()["n"]), (&json!(1), &json!(2)));
    assert_eq!(*patched.metadata("labels"), json!({"l": "1"}));
    assert_eq!(patched.generation(), created.head().generation);
}

/// A patch that names a resource version applies to that state only.
pub async fn that_names_a_resource_version_applies_to_it_only(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let at = |version: &str, n: i64| json!({"metadata": {"resourceVersion": version}, "spec": {"n": n}});
    let second = widgets.merge("a", at(&created.resource_version().0, 2)).await;
    assert_eq!(second.decode().spec()["n"], 2);
    let stale = widgets.try_merge("a", Part::Main, at(&created.resource_version().0, 3)).await;
    refused!(stale, Error::Conflict { .. });
    assert_eq!(widgets.get("a").await, second);
}

/// A patch that changes nothing does nothing.
pub async fn that_changes_nothing_is_invisible(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1, "text": "t"})).await;
    let mut events = widgets.watch().await;
    for patch in [json!({}), json!({"spec": {"n": 1}}), json!({"spec": {"map": null}})] {
        assert_eq!(widgets.merge("a", patch).await.resource_version(), created.resource_version());
    }
    let same = widgets.try_operations("a", json!([{"op": "replace", "path": "/spec/n", "value": 1}])).await;
    assert_eq!(same.unwrap().resource_version(), created.resource_version());
    widgets.create("marker", json!({"n": 1})).await;
    assert_eq!(next_word(&mut events).await, "A marker");
}

/// A patch cannot turn an object into another one.
pub async fn cannot_change_who_the_object_is(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    for patch in [
        json!({"metadata": {"name": "b"}}),
        json!({"metadata": {"namespace": "elsewhere"}}),
        json!({"kind": "Gadget"}),
        json!({"apiVersion": "other.dev/v1"}),
    ] {
        refused!(widgets.try_merge("a", Part::Main, patch.clone()).await, Error::Invalid { .. });
        assert_eq!(widgets.get("a").await, created, "{patch}");
    }
    assert!(widgets.is_gone("b").await);
}

/// What a patch makes of an object must be valid.
pub async fn whose_result_is_invalid_names_the_field(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let refusal = widgets.try_merge("a", Part::Main, json!({"spec": {"n": "one"}})).await;
    assert_eq!(invalid_fields(refusal), ["spec.n"]);
    let refusal = widgets.try_merge("a", Part::Main, json!({"metadata": {"labels": {"a b": "c"}}})).await;
    assert_eq!(invalid_fields(refusal), ["metadata.labels"]);
    assert_eq!(widgets.get("a").await, created);
}

/// A missing object cannot be patched.
pub async fn of_a_missing_object_is_not_found(subject: &Subject) {
    let widgets = subject.widgets().await;
    let refusal = widgets.try_merge("a", Part::Main, json!({"spec": {"n": 1}})).await;
    refused!(refusal, Error::NotFound { key } if key == widgets.key("a"));
    assert!(widgets.is_gone("a").await);
}

/// A dry run answers with what would be stored, and stores nothing.
pub async fn stores_nothing_in_a_dry_run(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let (patch, by) = (Patch::merge(json!({"spec": {"n": 2}})).unwrap(), By::actor("suite").dry_run());
    let answer = subject.store.patch(&widgets.key("a"), Part::Main, &patch, &by).await.unwrap();
    assert_eq!(answer.decode().spec()["n"], 2);
    assert_eq!(widgets.get("a").await, created);
}

/// Patches of many writers at once are all applied: each is repeated against a fresh read.
pub async fn of_many_writers_are_all_applied(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    let created = widgets.create("a", json!({"map": {}})).await;
    let mut writers = JoinSet::new();
    for i in 0..4 {
        let widgets = widgets.clone();
        writers.spawn(async move {
            for j in 0..8 {
                widgets.merge("a", json!({"spec": {"map": {format!("w{i}-{j}"): "x"}}})).await;
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    let object = widgets.get("a").await.decode();
    assert_eq!(object.spec()["map"].as_object().unwrap().len(), 32);
    assert_eq!(object.generation(), created.head().generation + 32);
}

/// The last finalizer that a patch takes from an object being deleted removes it.
pub async fn that_takes_the_last_finalizer_removes_the_object(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_finalized("a", &["a.dev/f"]).await;
    widgets.delete("a").await;
    widgets.merge("a", json!({"metadata": {"finalizers": null}})).await;
    assert!(widgets.is_gone("a").await);
}
