//! When `generation` rises.

use concert_model::{GroupKind, Object};
use serde_json::json;

use crate::conformance::{Definition, Subject};
use crate::contract::By;

/// A change of spec raises the generation by one.
pub async fn rises_by_one_when_spec_changes(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut current = widgets.create("a", json!({"n": 1})).await;
    for n in 2..=5 {
        current = widgets.set_n(&current, n).await;
        assert_eq!(current.head().generation, n);
        assert_eq!(current.decode().generation(), n);
    }
}

/// A change of any other field beside metadata and status raises it as well.
pub async fn rises_when_a_field_beside_spec_changes(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let changed = widgets.update(&created, |object| object.set("extra", json!({"a": "b"}))).await;
    assert_eq!(changed.head().generation, 2);
}

/// Metadata does not count.
pub async fn stays_when_only_metadata_changes(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let changed = widgets.update(&created, |object| {
        object.set_metadata("labels", json!({"a": "b"}));
        object.set_metadata("annotations", json!({"a": "b"}));
        object.add_finalizer("a.dev/f");
    });
    let changed = changed.await;
    assert_ne!(changed.resource_version(), created.resource_version());
    assert_eq!(changed.head().generation, 1);
}

/// Status does not count where it is written apart.
pub async fn stays_when_only_status_changes(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let written = widgets.try_status(&created, json!({"n": 1})).await.unwrap();
    assert_eq!((written.head().generation, written.decode().generation()), (1, 1));
}

/// Where the kind has no status subresource, status counts as spec.
pub async fn counts_status_where_it_is_not_written_apart(subject: &Subject) {
    let widgets = subject.widgets_of(Definition::usual().without_status()).await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let changed = widgets.update(&created, |object| object.set("status", json!({"n": 1}))).await;
    assert_eq!(changed.head().generation, 2);
    assert_eq!(changed.decode().status()["n"], 1);
}

/// A write that changes nothing does not count.
pub async fn stays_when_nothing_changes(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    assert_eq!(widgets.update(&created, |_| {}).await.head().generation, 1);
    assert_eq!(widgets.merge("a", json!({"spec": {"n": 1}})).await.head().generation, 1);
}

/// Fields that the schema does not know are dropped before anything is compared.
pub async fn stays_when_only_pruned_fields_change(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let same = widgets.merge("a", json!({"spec": {"unknown": 1}, "unheard": {"of": 1}})).await;
    assert_eq!(same.resource_version(), created.resource_version());
}

/// What the caller says about the generation does not matter.
pub async fn is_not_the_callers_to_set(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let changed = widgets.update(&created, |object| {
        object.set_metadata("generation", json!(77));
        object.set_metadata("labels", json!({"a": "b"}));
    });
    assert_eq!(changed.await.decode().generation(), 1);
}

/// It rises when deletion is asked for, once.
pub async fn rises_once_when_deletion_is_asked_for(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_finalized("a", &["a.dev/f"]).await;
    assert_eq!(widgets.delete("a").await.into_object().head().generation, 2);
    assert_eq!(widgets.delete("a").await.into_object().head().generation, 2);
}

/// Secrets, ConfigMaps and Namespaces have no generation.
pub async fn is_absent_from_kinds_that_do_not_count(subject: &Subject) {
    let (space, by) = (subject.namespace().await, By::actor("suite"));
    for (kind, field) in [("Secret", "stringData"), ("ConfigMap", "data")] {
        let mut object = Object::new(&GroupKind::new("", kind).at_version("v1"), &space, "a");
        object.set(field, json!({"k": "1"}));
        let created = subject.store.create(object, &by).await.unwrap();
        assert!(created.decode().metadata("generation").is_null(), "{kind}");
        let mut object = created.decode();
        object.set("immutable", json!(true));
        let changed = subject.store.update(object, &by).await.unwrap();
        assert!(changed.decode().metadata("generation").is_null(), "{kind}");
    }
    let key = concert_model::ObjectKey::cluster(GroupKind::new("", "Namespace"), space);
    assert!(subject.store.get(&key).await.unwrap().decode().metadata("generation").is_null());
}
