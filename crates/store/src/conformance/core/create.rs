//! Making objects.

use concert_model::{GroupKind, Uid};
use serde_json::json;

use crate::conformance::expect::refused;
use crate::conformance::{Definition, Subject};
use crate::contract::{By, Delete};
use crate::error::Error;

/// `create` sets uid, creation time and generation 1.
pub async fn sets_uid_creation_time_and_generation_one(subject: &Subject) {
    let widgets = subject.widgets().await;
    let object = widgets.create("a", json!({"n": 1})).await.decode();
    assert!(object.uid().is_some() && object.resource_version().is_some());
    assert!(object.created_at().is_some() && object.deleted_at().is_none());
    assert_eq!(object.generation(), 1);
}

/// What the caller says about uid, times and generation is not taken over.
pub async fn ignores_system_fields_of_the_caller(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut object = widgets.object("a", json!({"n": 1}));
    object.set_metadata("uid", json!("mine"));
    object.set_metadata("generation", json!(7));
    object.set_metadata("creationTimestamp", json!("1999-01-01T00:00:00Z"));
    object.set_metadata("deletionTimestamp", json!("1999-01-01T00:00:00Z"));
    let stored = widgets.try_create(object).await.unwrap().decode();
    assert_ne!(stored.uid(), Some(Uid("mine".into())));
    assert_eq!((stored.generation(), stored.deleted_at()), (1, None));
    assert!(!stored.metadata("creationTimestamp").as_str().unwrap().starts_with("1999"));
}

/// `create` drops `status` where the kind has a status subresource.
pub async fn drops_status_where_it_is_written_apart(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut object = widgets.object("a", json!({"n": 1}));
    object.set("status", json!({"n": 1}));
    assert!(widgets.try_create(object).await.unwrap().decode().status().is_null());
    assert!(widgets.get("a").await.decode().status().is_null());
}

/// Where the kind has no status subresource, status is a field like any other.
pub async fn keeps_status_where_it_is_not_written_apart(subject: &Subject) {
    let widgets = subject.widgets_of(Definition::usual().without_status()).await;
    let mut object = widgets.object("a", json!({"n": 1}));
    object.set("status", json!({"n": 1}));
    widgets.try_create(object).await.unwrap();
    assert_eq!(*widgets.get("a").await.decode().status(), json!({"n": 1}));
}

/// `create` makes up a name where only `generateName` is given, another one each time.
pub async fn makes_up_a_name_from_generate_name(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let mut object = widgets.object("", json!({"n": 1}));
        object.set_metadata("name", json!(null));
        object.set_metadata("generateName", json!("made-"));
        let stored = widgets.try_create(object).await.unwrap();
        assert!(stored.key().name.starts_with("made-") && stored.key().name.len() > 5);
        assert_eq!(stored.decode().metadata("generateName"), "made-");
        names.insert(stored.key().name.to_string());
    }
    assert_eq!(names.len(), 20);
    assert_eq!(widgets.names().await, names.into_iter().collect::<Vec<_>>());
}

/// A prefix that is too long is cut, so that the made-up name fits.
pub async fn cuts_a_long_generate_name(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut object = widgets.object("", json!({"n": 1}));
    object.set_metadata("name", json!(null));
    object.set_metadata("generateName", json!("x".repeat(80)));
    assert_eq!(widgets.try_create(object).await.unwrap().key().name.len(), 63);
}

/// A name that is given wins over `generateName`.
pub async fn takes_the_given_name_over_a_made_up_one(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut object = widgets.object("given", json!({"n": 1}));
    object.set_metadata("generateName", json!("made-"));
    assert_eq!(&*widgets.try_create(object).await.unwrap().key().name, "given");
}

/// A name that is taken is refused, and who has it is left alone.
pub async fn refuses_a_name_that_is_taken(subject: &Subject) {
    let widgets = subject.widgets().await;
    let first = widgets.create("a", json!({"n": 1})).await;
    let second = widgets.try_create(widgets.object("a", json!({"n": 2}))).await;
    refused!(second, Error::AlreadyExists { key } if key == widgets.key("a"));
    assert_eq!(widgets.get("a").await, first);
}

/// A missing namespace is named in the error.
pub async fn names_the_namespace_that_is_missing(subject: &Subject) {
    let widgets = subject.widgets().await;
    let missing = subject.unique("missing");
    let mut object = widgets.object("a", json!({"n": 1}));
    object.set_metadata("namespace", json!(missing));
    let refusal = widgets.try_create(object).await;
    let is_meant = |key: &concert_model::ObjectKey| key.kind == GroupKind::new("", "Namespace");
    refused!(refusal, Error::NotFound { key } if is_meant(&key) && *key.name == *missing);
}

/// A namespace that is being deleted takes no new objects.
pub async fn is_forbidden_in_a_namespace_that_is_being_deleted(subject: &Subject) {
    let widgets = subject.widgets().await;
    let by = By::actor("suite");
    let space = concert_model::ObjectKey::cluster(GroupKind::new("", "Namespace"), widgets.namespace.clone());
    // Held by a finalizer of ours, so that no collector is quicker than the case.
    let mut object = subject.store.get(&space).await.unwrap().decode();
    object.add_finalizer("conformance.concert.dev/hold");
    subject.store.update(object, &by).await.unwrap();
    subject.store.delete(&space, &Delete::default(), &by).await.unwrap();
    refused!(widgets.try_create(widgets.object("a", json!({"n": 1}))).await, Error::Forbidden { .. });
    assert!(widgets.is_gone("a").await);
    let free = concert_model::Patch::merge(json!({"metadata": {"finalizers": null}})).unwrap();
    subject.store.patch(&space, crate::Part::Main, &free, &by).await.unwrap();
}

/// The same name in two namespaces is two objects.
pub async fn tells_namespaces_apart(subject: &Subject) {
    let widgets = subject.widgets().await;
    let other = subject.namespace().await;
    let here = widgets.create("a", json!({"n": 1})).await;
    let mut object = widgets.object("a", json!({"n": 2}));
    object.set_metadata("namespace", json!(&*other));
    let there = widgets.try_create(object).await.unwrap();
    assert_ne!(here.head().uid, there.head().uid);
    assert_eq!(widgets.get("a").await, here);
    assert_eq!(widgets.names().await, ["a"]);
}

/// A name may be used again; the new object has a uid of its own.
pub async fn gives_a_new_uid_to_a_name_that_is_used_again(subject: &Subject) {
    let widgets = subject.widgets().await;
    let first = widgets.create("a", json!({"n": 1})).await;
    widgets.delete("a").await;
    let second = widgets.create("a", json!({"n": 1})).await;
    assert_ne!(first.head().uid, second.head().uid);
    assert_ne!(first.resource_version(), second.resource_version());
}

/// What `create` returned is what `get` returns.
pub async fn returns_what_is_stored(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut object = widgets.object("a", json!({"n": 1, "text": "t", "free": {"x": [1, {"y": null}]}}));
    object.set_metadata("labels", json!({"l": "1"}));
    object.set_metadata("annotations", json!({"a.dev/b": "any text"}));
    let stored = widgets.try_create(object).await.unwrap();
    assert_eq!(widgets.get("a").await.decode(), stored.decode());
    assert_eq!(stored.head().labels["l"], "1");
}

/// A dry run answers with what would be stored, and stores nothing.
pub async fn stores_nothing_in_a_dry_run(subject: &Subject) {
    let widgets = subject.widgets().await;
    let object = widgets.object("a", json!({"n": 1, "unknown": 1}));
    let answer = subject.store.create(object, &By::actor("suite").dry_run()).await.unwrap();
    assert_eq!(*answer.decode().spec(), json!({"n": 1}));
    assert!(widgets.is_gone("a").await);
    assert_eq!(widgets.names().await, Vec::<String>::new());
}

/// A dry run is refused as the real thing would be.
pub async fn refuses_in_a_dry_run_what_it_would_refuse(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create("a", json!({"n": 1})).await;
    let by = By::actor("suite").dry_run();
    let again = subject.store.create(widgets.object("a", json!({"n": 1})), &by).await;
    refused!(again, Error::AlreadyExists { .. });
    let wrong = subject.store.create(widgets.object("b", json!({"n": "one"})), &by).await;
    refused!(wrong, Error::Invalid { .. });
}

/// Owner references are kept as they are given.
pub async fn keeps_owner_references(subject: &Subject) {
    let widgets = subject.widgets().await;
    let owner = widgets.create("owner", json!({"n": 1})).await.decode();
    let reference = json!([{"apiVersion": owner.api_version(), "kind": owner.kind(), "name": "owner",
        "uid": owner.uid().unwrap().to_string(), "controller": true, "blockOwnerDeletion": true}]);
    let mut object = widgets.object("owned", json!({"n": 1}));
    object.set_metadata("ownerReferences", reference.clone());
    let stored = widgets.try_create(object).await.unwrap();
    assert_eq!(*stored.decode().metadata("ownerReferences"), reference);
    assert_eq!(stored.head().owners[0].uid, owner.uid().unwrap());
}
