//! Resource versions of ours are revisions: one ever-growing number per store.

use concert_model::{Patch, ResourceVersion, Revision};
use serde_json::json;

use crate::conformance::expect::refused;
use crate::conformance::{Own, deleted, invalid_fields};
use crate::contract::{By, Delete, PageRequest, Part, Store};
use crate::error::Error;

async fn newest(own: &Own) -> u64 {
    own.store.newest().await.unwrap().0
}

fn revision(version: &ResourceVersion) -> u64 {
    version.0.parse().unwrap()
}

/// Every write that changes anything gets the next revision.
pub async fn rise_by_one_with_every_write(own: &Own) {
    let widgets = own.subject.widgets().await;
    let start = newest(own).await;
    let created = widgets.create_finalized("a", &["a.dev/f"]).await;
    assert_eq!(revision(created.resource_version()), start + 1);
    let changed = widgets.set_n(&created, 2).await;
    assert_eq!(revision(changed.resource_version()), start + 2);
    let observed = widgets.try_status(&changed, json!({"n": 1})).await.unwrap();
    assert_eq!(revision(observed.resource_version()), start + 3);
    let waiting = widgets.delete("a").await.into_object();
    assert_eq!(revision(waiting.resource_version()), start + 4);
    let gone = widgets
        .update(&waiting, |object| {
            object.remove_finalizer("a.dev/f");
        })
        .await;
    assert_eq!((revision(gone.resource_version()), newest(own).await), (start + 5, start + 5));
}

/// A write that changes nothing takes no revision.
pub async fn stay_when_nothing_changes(own: &Own) {
    let widgets = own.subject.widgets().await;
    let created = widgets.create_finalized("a", &["a.dev/f"]).await;
    let observed = widgets.try_status(&created, json!({"n": 1})).await.unwrap();
    let waiting = widgets.delete("a").await.into_object();
    let before = newest(own).await;
    widgets.update(&waiting, |_| {}).await;
    widgets.merge("a", json!({"spec": {"n": 1}})).await;
    widgets.try_status(&waiting, observed.decode().status().clone()).await.unwrap();
    widgets.delete("a").await;
    assert_eq!(newest(own).await, before);
}

/// A dry run takes no revision.
pub async fn stay_in_a_dry_run(own: &Own) {
    let widgets = own.subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let (before, by) = (newest(own).await, By::actor("suite").dry_run());
    let mut object = created.decode();
    object.set("spec", json!({"n": 2}));
    own.store.update(object, &by).await.unwrap();
    own.store.create(widgets.object("b", json!({"n": 1})), &by).await.unwrap();
    own.store.delete(&widgets.key("a"), &Delete::default(), &by).await.unwrap();
    let patch = Patch::merge(json!({"spec": {"n": 3}})).unwrap();
    own.store.patch(&widgets.key("a"), Part::Main, &patch, &by).await.unwrap();
    assert_eq!(newest(own).await, before);
}

/// A dry run of a creation has no resource version, one of a change has the stored one. (Kubernetes
/// leaves the latter open.)
pub async fn of_a_dry_run_are_those_of_what_is_stored(own: &Own) {
    let widgets = own.subject.widgets().await;
    let by = By::actor("suite").dry_run();
    let dry = own.store.create(widgets.object("a", json!({"n": 1})), &by).await.unwrap();
    assert_eq!(dry.resource_version().0.as_ref(), "");
    let created = widgets.create("a", json!({"n": 1})).await;
    let mut object = created.decode();
    object.set("spec", json!({"n": 2}));
    let dry = own.store.update(object, &by).await.unwrap();
    assert_eq!(dry.resource_version(), created.resource_version());
}

/// A deletion has a revision; who deletes and who watches are told the same one. (Kubernetes tells
/// the deleter nothing.)
pub async fn of_a_deletion_are_told_to_everybody(own: &Own) {
    let widgets = own.subject.widgets().await;
    widgets.create("a", json!({"n": 1})).await;
    let mut events = widgets.watch().await;
    let gone = widgets.delete("a").await.into_object();
    assert_eq!(deleted(&mut events).await, gone);
    assert_eq!(revision(gone.resource_version()), newest(own).await);
}

/// An object may not be created with a resource version. (Kubernetes refuses with another code.)
pub async fn cannot_be_given_to_a_new_object(own: &Own) {
    let widgets = own.subject.widgets().await;
    let mut object = widgets.object("a", json!({"n": 1}));
    object.set_metadata("resourceVersion", json!("1"));
    assert_eq!(invalid_fields(widgets.try_create(object).await), ["metadata.resourceVersion"]);
}

/// A watch from the future is refused. (Kubernetes waits a while first.)
pub async fn of_the_future_cannot_be_watched_from(own: &Own) {
    let widgets = own.subject.widgets().await;
    let ahead = ResourceVersion::from(Revision(newest(own).await + 1));
    let refusal = own.store.watch(&widgets.query(), Some(&ahead)).await;
    assert_eq!(invalid_fields(refusal), ["resourceVersion"]);
}

/// A position is only what the store printed: no signs, zeros or spaces before it.
pub async fn are_spelt_in_one_way(own: &Own) {
    let widgets = own.subject.widgets().await;
    let position = widgets.list().await.position.to_string();
    for text in [format!("0{position}"), format!("+{position}"), format!(" {position}"), String::new()] {
        let position = ResourceVersion(text.into());
        refused!(own.store.watch(&widgets.query(), Some(&position)).await, Error::Invalid { .. });
    }
}

/// A list cannot be continued from the future, or from a token that is spelt otherwise.
pub async fn of_the_future_cannot_be_listed_from(own: &Own) {
    let widgets = own.subject.widgets().await;
    widgets.create("a", json!({"n": 1})).await;
    let (now, space) = (newest(own).await, widgets.namespace.clone());
    for token in [
        format!("{}/{space}/a", now + 1),
        format!("0{now}/{space}/a"),
        format!("+{now}/{space}/a"),
        format!("{now}/{space}"),
        format!("{now}/{space}/"),
        format!("-1/{space}/a"),
    ] {
        let request = PageRequest { limit: Some(1), token: Some(token.clone()) };
        let refusal = own.store.list(&widgets.query(), &request).await;
        assert_eq!(invalid_fields(refusal), ["continue"], "{token}");
    }
}

/// Objects that are created, updated and deleted never share a revision, of whatever kind they are.
pub async fn are_shared_by_all_kinds(own: &Own) {
    let (widgets, others) = (own.subject.widgets().await, own.subject.widgets().await);
    let a = widgets.create("a", json!({"n": 1})).await;
    let b = others.create("a", json!({"n": 1})).await;
    assert_eq!(revision(a.resource_version()) + 1, revision(b.resource_version()));
}

/// A kind remembers when it was touched last: by every change of its own, and by nothing else.
pub async fn of_a_kind_differ_after_its_changes_only(own: &Own) {
    let (widgets, others) = (own.subject.widgets().await, own.subject.widgets().await);
    own.store.refresh().await.unwrap();
    let mut before = own.store.touched(&widgets.kind);
    let mut has_changed = async || {
        own.store.refresh().await.unwrap();
        let now = own.store.touched(&widgets.kind);
        std::mem::replace(&mut before, now) != now
    };
    let created = widgets.create("a", json!({"n": 1})).await;
    assert!(has_changed().await);
    others.create("a", json!({"n": 1})).await;
    widgets.merge("a", json!({"spec": {"n": 1}})).await;
    assert!(!has_changed().await);
    let observed = widgets.try_status(&created, json!({"n": 1})).await.unwrap();
    assert!(has_changed().await);
    widgets.set_n(&observed, 2).await;
    assert!(has_changed().await);
    widgets.delete("a").await;
    assert!(has_changed().await);
}

/// A list of anything has the position of the whole store.
pub async fn of_a_list_are_the_newest(own: &Own) {
    let (widgets, others) = (own.subject.widgets().await, own.subject.widgets().await);
    others.create("a", json!({"n": 1})).await;
    assert_eq!(revision(&widgets.list().await.position), newest(own).await);
}

/// A list can be read as of an earlier revision while it lasts, and never as of a later one.
pub async fn can_be_listed_at(own: &Own) {
    let widgets = own.subject.widgets().await;
    let first = widgets.create("a", json!({"n": 1})).await;
    let at = widgets.list().await.position;
    widgets.set_n(&first, 2).await;
    widgets.create("b", json!({"n": 1})).await;
    let page = own.store.list_at(&widgets.query(), &PageRequest::whole(), &at).await.unwrap();
    assert_eq!((page.items, &page.position), (vec![first], &at));
    assert!(own.store.has_reached(&at).await.unwrap());
    let later = ResourceVersion::from(Revision(newest(own).await + 1));
    assert!(!own.store.has_reached(&later).await.unwrap());
    refused!(own.store.has_reached(&ResourceVersion("x".into())).await, Error::Invalid { .. });
    let refusal = own.store.list_at(&widgets.query(), &PageRequest::whole(), &later).await;
    assert_eq!(invalid_fields(refusal), ["resourceVersion"]);
    own.store.compact(own.store.newest().await.unwrap()).await.unwrap();
    refused!(own.store.list_at(&widgets.query(), &PageRequest::whole(), &at).await, Error::Expired);
}
