//! Status, written apart from the rest.

use serde_json::json;

use crate::conformance::expect::{next_word, refused};
use crate::conformance::{Definition, Subject, invalid_fields};
use crate::contract::By;
use crate::error::Error;

/// `update_status` replaces `status` and nothing else.
pub async fn replaces_status_and_nothing_else(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create_labelled("a", json!({"l": "1"})).await;
    let mut object = created.decode();
    object.set("status", json!({"n": 1}));
    object.set("spec", json!({"n": 9}));
    object.set("extra", json!({"x": "y"}));
    object.set_metadata("labels", json!({"l": "2"}));
    object.set_metadata("finalizers", json!(["a.dev/f"]));
    let written = subject.store.update_status(object, &By::actor("suite")).await.unwrap();
    let (old, new) = (created.decode(), written.decode());
    assert_eq!(*new.status(), json!({"n": 1}));
    assert_eq!((old.spec(), old.get("extra")), (new.spec(), new.get("extra")));
    for field in ["labels", "finalizers", "generation", "uid"] {
        assert_eq!(old.metadata(field), new.metadata(field), "{field}");
    }
    assert_ne!(created.resource_version(), written.resource_version());
    let replaced = widgets.try_status(&written, json!({"phase": "Ready"})).await.unwrap();
    assert_eq!(*replaced.decode().status(), json!({"phase": "Ready"}));
}

/// Who comes second is told so, and changes nothing.
pub async fn is_a_conflict_when_someone_wrote_first(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let first = widgets.set_n(&created, 2).await;
    refused!(widgets.try_status(&created, json!({"n": 1})).await, Error::Conflict { .. });
    assert_eq!(widgets.get("a").await, first);
}

/// A status write without a resource version is refused.
pub async fn is_refused_without_a_resource_version(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let mut object = created.decode();
    object.set("status", json!({"n": 1}));
    object.set_metadata("resourceVersion", json!(null));
    let refusal = subject.store.update_status(object, &By::actor("suite")).await;
    assert_eq!(invalid_fields(refusal), ["metadata.resourceVersion"]);
    assert_eq!(widgets.get("a").await, created);
}

/// Where the kind has no status subresource there is nothing to write apart.
pub async fn is_invalid_where_the_kind_has_no_status_subresource(subject: &Subject) {
    let widgets = subject.widgets_of(Definition::usual().without_status()).await;
    let created = widgets.create("a", json!({"n": 1})).await;
    assert_eq!(invalid_fields(widgets.try_status(&created, json!({"n": 1})).await), ["status"]);
    assert_eq!(widgets.get("a").await, created);
}

/// A status write that changes nothing does nothing.
pub async fn that_changes_nothing_is_invisible(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let written = widgets.try_status(&created, json!({"n": 1, "phase": "Ready"})).await.unwrap();
    let mut events = widgets.watch().await;
    let again = widgets.try_status(&written, json!({"phase": "Ready", "n": 1})).await.unwrap();
    assert_eq!(again.resource_version(), written.resource_version());
    widgets.create("marker", json!({"n": 1})).await;
    assert_eq!(next_word(&mut events).await, "A marker");
}

/// Status is held to its schema, and what is refused changes nothing.
pub async fn is_validated(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    assert_eq!(invalid_fields(widgets.try_status(&created, json!({"n": "one"})).await), ["status.n"]);
    assert_eq!(widgets.get("a").await, created);
}

/// Status writes go on while an object is being deleted.
pub async fn can_be_written_while_the_object_is_being_deleted(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_finalized("a", &["a.dev/f"]).await;
    widgets.delete("a").await;
    let waiting = widgets.get("a").await;
    let written = widgets.try_status(&waiting, json!({"phase": "Leaving"})).await.unwrap();
    assert_eq!(written.decode().status()["phase"], "Leaving");
    assert_eq!(written.head().generation, waiting.head().generation);
}

/// A missing object has no status.
pub async fn of_a_missing_object_is_not_found(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.delete("a").await;
    let mut object = created.decode();
    object.set_metadata("uid", json!(null));
    object.set("status", json!({"n": 1}));
    refused!(subject.store.update_status(object, &By::actor("suite")).await, Error::NotFound { .. });
}

/// A dry run stores nothing.
pub async fn stores_nothing_in_a_dry_run(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let mut object = created.decode();
    object.set("status", json!({"n": 1}));
    let answer = subject.store.update_status(object, &By::actor("suite").dry_run()).await.unwrap();
    assert_eq!(answer.decode().status()["n"], 1);
    assert_eq!(widgets.get("a").await, created);
}
