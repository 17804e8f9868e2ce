//! Deletion and finalizers.

use concert_model::{ResourceVersion, Uid};
use serde_json::json;

use crate::conformance::expect::{next_word, refused};
use crate::conformance::{Subject, deleted, invalid_fields, next_change};
use crate::contract::{By, Delete, Deleted, Event, Propagation};
use crate::error::Error;

/// Without finalizers an object is gone at once.
pub async fn without_finalizers_is_at_once(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create("a", json!({"n": 1})).await;
    assert!(matches!(widgets.delete("a").await, Deleted::Gone(_)));
    assert!(widgets.is_gone("a").await);
    assert!(widgets.names().await.is_empty());
}

/// With finalizers it gets a deletion time and stays.
pub async fn with_finalizers_sets_a_deletion_time(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create_finalized("a", &["a.dev/f", "a.dev/g"]).await;
    let Deleted::Waiting(waiting) = widgets.delete("a").await else { panic!("gone") };
    let object = waiting.decode();
    assert!(object.deleted_at().is_some());
    assert_eq!(object.metadata("deletionGracePeriodSeconds"), 0);
    assert_eq!(object.finalizers(), ["a.dev/f", "a.dev/g"]);
    assert_eq!(object.generation(), created.head().generation + 1);
    assert_eq!(widgets.get("a").await, waiting);
}

/// To ask again changes nothing: the generation rises once.
pub async fn asked_for_again_changes_nothing(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_finalized("a", &["a.dev/f"]).await;
    let first = widgets.delete("a").await.into_object();
    let mut events = widgets.watch().await;
    let Deleted::Waiting(second) = widgets.delete("a").await else { panic!("gone") };
    assert_eq!(first, second);
    widgets.create("marker", json!({"n": 1})).await;
    assert_eq!(next_word(&mut events).await, "A marker");
}

/// To ask again with another policy changes what is left to the collector, and nothing else.
pub async fn asked_for_again_can_change_the_policy(subject: &Subject) {
    let widgets = subject.widgets().await;
    // A finalizer of ours keeps a collector from being quicker than the case.
    let created = widgets.create_finalized("a", &["a.dev/f"]).await;
    let mut asked_at = None;
    for (propagation, finalizers) in [
        (Propagation::Orphan, &["a.dev/f", "orphan"][..]),
        (Propagation::Foreground, &["a.dev/f", "foregroundDeletion"][..]),
        (Propagation::Background, &["a.dev/f"][..]),
    ] {
        let options = Delete { propagation, ..Delete::default() };
        let answer = widgets.try_delete("a", &options).await.unwrap();
        let Deleted::Waiting(waiting) = answer else { panic!("gone") };
        let object = waiting.decode();
        assert_eq!(object.finalizers(), finalizers);
        assert_eq!(object.generation(), created.head().generation + 1);
        assert_eq!(*asked_at.get_or_insert(object.deleted_at()), object.deleted_at());
    }
}

/// The object goes with its last finalizer, not before.
pub async fn ends_with_the_last_finalizer(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_finalized("a", &["a.dev/f", "a.dev/g"]).await;
    let waiting = widgets.delete("a").await.into_object();
    let one_left = widgets
        .update(&waiting, |object| {
            object.remove_finalizer("a.dev/f");
        })
        .await;
    assert_eq!(widgets.get("a").await, one_left);
    widgets
        .update(&one_left, |object| {
            object.remove_finalizer("a.dev/g");
        })
        .await;
    assert!(widgets.is_gone("a").await);
}

/// Taking the last finalizer from an object that nobody deleted leaves it there.
pub async fn is_not_what_taking_finalizers_means(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create_finalized("a", &["a.dev/f"]).await;
    let free = widgets
        .update(&created, |object| {
            object.remove_finalizer("a.dev/f");
        })
        .await;
    assert_eq!(widgets.get("a").await, free);
}

/// Once deletion is asked for, finalizers can only be taken away.
pub async fn lets_nobody_add_finalizers(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_finalized("a", &["a.dev/f"]).await;
    let waiting = widgets.delete("a").await.into_object();
    let more = widgets
        .try_update(&waiting, |object| {
            object.add_finalizer("a.dev/g");
        })
        .await;
    assert_eq!(invalid_fields(more), ["metadata.finalizers"]);
    let other =
        widgets.try_update(&waiting, |object| object.set_metadata("finalizers", json!(["a.dev/g"]))).await;
    assert_eq!(invalid_fields(other), ["metadata.finalizers"]);
    assert_eq!(widgets.get("a").await, waiting);
}

/// Deletion cannot be taken back.
pub async fn cannot_be_taken_back(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_finalized("a", &["a.dev/f"]).await;
    let waiting = widgets.delete("a").await.into_object();
    let updated = widgets.update(&waiting, |object| {
        object.set_metadata("deletionTimestamp", json!(null));
        object.set_metadata("labels", json!({"a": "b"}));
    });
    assert_eq!(updated.await.decode().deleted_at(), waiting.decode().deleted_at());
}

/// An object that waits for its finalizers can still be changed.
pub async fn leaves_the_object_open_to_changes(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_finalized("a", &["a.dev/f"]).await;
    let waiting = widgets.delete("a").await.into_object();
    let changed = widgets.set_n(&waiting, 2).await;
    assert_eq!(changed.head().generation, waiting.head().generation + 1);
    assert_eq!(changed.decode().spec()["n"], 2);
}

/// What is not there cannot be deleted.
pub async fn of_a_missing_object_is_not_found(subject: &Subject) {
    let widgets = subject.widgets().await;
    let refusal = widgets.try_delete("a", &Delete::default()).await;
    refused!(refusal, Error::NotFound { key } if key == widgets.key("a"));
    widgets.create("a", json!({"n": 1})).await;
    widgets.delete("a").await;
    refused!(widgets.try_delete("a", &Delete::default()).await, Error::NotFound { .. });
}

/// A precondition on the uid spares an object that was made anew.
pub async fn of_another_incarnation_is_a_conflict(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let other = Delete { uid: Some(Uid::from_random(1)), ..Delete::default() };
    refused!(widgets.try_delete("a", &other).await, Error::Conflict { .. });
    assert_eq!(widgets.get("a").await, created);
    let right = Delete { uid: Some(created.head().uid.clone()), ..Delete::default() };
    assert!(matches!(widgets.try_delete("a", &right).await.unwrap(), Deleted::Gone(_)));
}

/// A precondition on the resource version spares an object that was changed.
pub async fn of_another_state_is_a_conflict(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let changed = widgets.set_n(&created, 2).await;
    let at =
        |version: &ResourceVersion| Delete { resource_version: Some(version.clone()), ..Delete::default() };
    let stale = widgets.try_delete("a", &at(created.resource_version())).await;
    refused!(stale, Error::Conflict { .. });
    assert_eq!(widgets.get("a").await, changed);
    widgets.try_delete("a", &at(changed.resource_version())).await.unwrap();
    assert!(widgets.is_gone("a").await);
}

/// Foreground deletion leaves a finalizer for the collector.
pub async fn in_the_foreground_leaves_a_finalizer(subject: &Subject) {
    let widgets = subject.widgets().await;
    // A finalizer of ours keeps a collector from being quicker than the case.
    widgets.create_finalized("a", &["a.dev/f"]).await;
    let options = Delete { propagation: Propagation::Foreground, ..Delete::default() };
    let object = widgets.try_delete("a", &options).await.unwrap().into_object().decode();
    assert!(object.finalizers().contains(&"foregroundDeletion".to_owned()));
    assert!(object.deleted_at().is_some());
}

/// Orphaning deletion leaves a finalizer for the collector.
pub async fn with_orphans_leaves_a_finalizer(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_finalized("a", &["a.dev/f"]).await;
    let options = Delete { propagation: Propagation::Orphan, ..Delete::default() };
    let object = widgets.try_delete("a", &options).await.unwrap().into_object().decode();
    assert!(object.finalizers().contains(&"orphan".to_owned()));
}

/// A dry run deletes nothing, and asks for nothing.
pub async fn changes_nothing_in_a_dry_run(subject: &Subject) {
    let widgets = subject.widgets().await;
    let plain = widgets.create("plain", json!({"n": 1})).await;
    let held = widgets.create_finalized("held", &["a.dev/f"]).await;
    let by = By::actor("suite").dry_run();
    for name in ["plain", "held"] {
        subject.store.delete(&widgets.key(name), &Delete::default(), &by).await.unwrap();
    }
    assert_eq!((widgets.get("plain").await, widgets.get("held").await), (plain, held));
}

/// A deleted event carries the final state, under a resource version of its own.
pub async fn is_told_with_the_final_state(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create_labelled("a", json!({"l": "1"})).await;
    let changed = widgets.set_n(&created, 2).await;
    let mut events = widgets.watch().await;
    widgets.delete("a").await;
    let last = deleted(&mut events).await;
    assert_eq!(last.decode().spec(), changed.decode().spec());
    assert_eq!(
        (last.head().uid.clone(), &last.head().labels["l"]),
        (created.head().uid.clone(), &"1".into())
    );
    assert_ne!(last.resource_version(), changed.resource_version());
}

/// With finalizers watchers see the deletion asked for, then the object gone.
pub async fn with_finalizers_is_told_in_two_events(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_finalized("a", &["a.dev/f"]).await;
    let mut events = widgets.watch().await;
    let waiting = widgets.delete("a").await.into_object();
    assert_eq!(next_change(&mut events).await, Event::Modified(waiting.clone()));
    widgets
        .update(&waiting, |object| {
            object.remove_finalizer("a.dev/f");
        })
        .await;
    let last = deleted(&mut events).await;
    assert!(last.decode().deleted_at().is_some());
    assert_ne!(last.resource_version(), waiting.resource_version());
}
