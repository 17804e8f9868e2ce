//! Replacing objects.

use serde_json::json;

use crate::conformance::expect::{next_word, refused};
use crate::conformance::{Subject, invalid_fields};
use crate::contract::By;
use crate::error::Error;

/// `update` replaces everything but `status`: what is left out is gone.
pub async fn replaces_everything_but_status(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut object = widgets.object("a", json!({"n": 1, "text": "old"}));
    object.set_metadata("labels", json!({"old": "1"}));
    let created = widgets.try_create(object).await.unwrap();
    let observed = widgets.try_status(&created, json!({"n": 5})).await.unwrap();
    let updated = widgets
        .update(&observed, |object| {
            object.set("spec", json!({"n": 2}));
            object.set_metadata("labels", json!({"new": "1"}));
            object.set_metadata("annotations", json!({"why": "test"}));
            object.set("status", json!({"n": 6}));
        })
        .await
        .decode();
    assert_eq!(*updated.spec(), json!({"n": 2}));
    assert_eq!(*updated.metadata("labels"), json!({"new": "1"}));
    assert_eq!(*updated.metadata("annotations"), json!({"why": "test"}));
    assert_eq!(*updated.status(), json!({"n": 5}));
    assert_eq!(widgets.get("a").await.decode(), updated);
}

/// An update without a resource version is refused, and says which field is missing.
pub async fn is_refused_without_a_resource_version(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let update = widgets.try_update(&created, |object| object.set_metadata("resourceVersion", json!(null)));
    assert_eq!(invalid_fields(update.await), ["metadata.resourceVersion"]);
    assert_eq!(widgets.get("a").await, created);
}

/// Who comes second is told so, and changes nothing.
pub async fn is_a_conflict_when_someone_wrote_first(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let first = widgets.set_n(&created, 2).await;
    let second = widgets.try_update(&created, |object| object.set("spec", json!({"n": 3}))).await;
    refused!(second, Error::Conflict { key } if key == widgets.key("a"));
    assert_eq!(widgets.get("a").await, first);
}

/// A conflict is a conflict even for who would change nothing.
pub async fn is_a_conflict_even_if_it_would_restore_the_old_state(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.set_n(&created, 2).await;
    refused!(widgets.try_update(&created, |_| {}).await, Error::Conflict { .. });
}

/// What is not there cannot be replaced.
pub async fn of_a_missing_object_is_not_found(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.delete("a").await;
    let update = widgets.try_update(&created, |object| object.set_metadata("uid", json!(null)));
    refused!(update.await, Error::NotFound { key } if key == widgets.key("a"));
    assert!(widgets.is_gone("a").await);
}

/// An update meant for an earlier object of the same name is a conflict.
pub async fn of_another_incarnation_is_a_conflict(subject: &Subject) {
    let widgets = subject.widgets().await;
    let first = widgets.create("a", json!({"n": 1})).await;
    widgets.delete("a").await;
    let second = widgets.create("a", json!({"n": 1})).await;
    let version = second.resource_version().to_string();
    let update = widgets.try_update(&first, |object| object.set_metadata("resourceVersion", json!(version)));
    refused!(update.await, Error::Conflict { .. });
    assert_eq!(widgets.get("a").await, second);
}

/// A write that changes nothing does nothing: no new resource version, no event.
pub async fn that_changes_nothing_is_invisible(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1, "list": ["x", "y"]})).await;
    let mut events = widgets.watch().await;
    let same = widgets.update(&created, |_| {}).await;
    assert_eq!(same.resource_version(), created.resource_version());
    assert_eq!(widgets.get("a").await, created);
    widgets.create("marker", json!({"n": 1})).await;
    assert_eq!(next_word(&mut events).await, "A marker");
}

/// The order of keys and a repeated default are no change.
pub async fn with_keys_in_another_order_changes_nothing(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"map": {"a": "1", "b": "2"}})).await;
    let reordered: serde_json::Value = serde_json::from_str(r#"{"map":{"b":"2","a":"1"}}"#).unwrap();
    let same = widgets.update(&created, |object| object.set("spec", reordered)).await;
    assert_eq!(same.resource_version(), created.resource_version());
}

/// Every change gets a resource version that was never used for this object.
pub async fn gives_a_new_resource_version_to_every_change(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut current = widgets.create("a", json!({"n": 0})).await;
    let mut versions = std::collections::HashSet::from([current.resource_version().clone()]);
    for n in 1..=10 {
        // Back and forth: the same content again is a new state.
        current = widgets.set_n(&current, n % 2).await;
        assert!(versions.insert(current.resource_version().clone()), "{n}");
    }
}

/// uid, creation time, generation and deletion time that are left out stay as they are.
pub async fn keeps_system_fields_that_are_left_out(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let updated = widgets.update(&created, |object| {
        for field in ["uid", "creationTimestamp", "generation"] {
            object.set_metadata(field, json!(null));
        }
        object.set_metadata("labels", json!({"a": "b"}));
    });
    let (old, new) = (created.decode(), updated.await.decode());
    for field in ["uid", "creationTimestamp", "generation"] {
        assert_eq!(old.metadata(field), new.metadata(field), "{field}");
    }
}

/// Metadata that does not exist is dropped.
pub async fn drops_unknown_metadata(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let updated = widgets.update(&created, |object| {
        object.set_metadata("colour", json!("pink"));
        object.set_metadata("labels", json!({"a": "b"}));
    });
    assert!(updated.await.decode().metadata("colour").is_null());
}

/// A dry run answers with what would be stored, and stores nothing.
pub async fn stores_nothing_in_a_dry_run(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let mut object = created.decode();
    object.set("spec", json!({"n": 2}));
    let answer = subject.store.update(object, &By::actor("suite").dry_run()).await.unwrap();
    assert_eq!(*answer.decode().spec(), json!({"n": 2}));
    assert_eq!(widgets.get("a").await, created);
}

/// What `update` returned is visible to whoever asks later.
pub async fn is_visible_to_every_later_call(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut current = widgets.create("a", json!({"n": 0})).await;
    for n in 1..=20 {
        current = widgets.set_n(&current, n).await;
        assert_eq!(widgets.get("a").await, current);
        assert_eq!(widgets.list().await.items, [current.clone()]);
    }
}
