//! Server-side apply and the patches that a store over Kubernetes does not have.

use concert_model::{GroupKind, Object, ObjectKey, Patch};
use serde_json::{Value, json};

use crate::conformance::expect::refused;
use crate::conformance::{Definition, Own, Widgets, invalid_fields};
use crate::contract::{By, Part, Result, Store};
use crate::error::Error;
use crate::local::Applied;

fn by(manager: &str) -> By {
    By { manager: manager.into(), ..By::actor("suite") }
}

async fn apply(own: &Own, widgets: &Widgets, spec: Value, manager: &str) -> Result<Applied> {
    own.store.apply(widgets.object("a", spec), Part::Main, false, &by(manager)).await
}

fn managers(object: &Object) -> Vec<(String, String)> {
    let entries = object.metadata("managedFields").as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    entries.iter().map(|entry| (text(&entry["manager"]), text(&entry["operation"]))).collect()
}

/// An apply makes an object that is not there, and says so.
pub async fn makes_what_is_not_there(own: &Own) {
    let widgets = own.subject.widgets().await;
    let first = apply(own, &widgets, json!({"n": 1}), "a").await.unwrap();
    assert!(first.is_new);
    assert_eq!(*first.object.decode().spec(), json!({"n": 1}));
    assert_eq!(managers(&first.object.decode()), [("a".to_owned(), "Apply".to_owned())]);
    let second = apply(own, &widgets, json!({"n": 2}), "a").await.unwrap();
    assert!(!second.is_new);
    assert_eq!(second.object.head().generation, 2);
    assert_eq!(widgets.get("a").await, second.object);
}

/// What it says nothing of stays, and what it no longer says goes.
pub async fn takes_away_what_is_no_longer_applied(own: &Own) {
    let widgets = own.subject.widgets().await;
    apply(own, &widgets, json!({"n": 1, "text": "x"}), "a").await.unwrap();
    apply(own, &widgets, json!({"map": {"k": "v"}}), "b").await.unwrap();
    let third = apply(own, &widgets, json!({"n": 1}), "a").await.unwrap();
    assert_eq!(*third.object.decode().spec(), json!({"n": 1, "map": {"k": "v"}}));
}

/// What somebody else owns is contested, unless it is forced.
pub async fn is_contested_by_other_owners(own: &Own) {
    let widgets = own.subject.widgets().await;
    let first = apply(own, &widgets, json!({"n": 1}), "a").await.unwrap();
    let refusal = apply(own, &widgets, json!({"n": 2}), "b").await;
    let Err(Error::Contested { conflicts, .. }) = &refusal else { panic!("not contested") };
    assert_eq!(conflicts[0].field, ".spec.n");
    let text = refusal.unwrap_err().to_string();
    assert!(text.starts_with("Apply failed with 1 conflict: conflict with \"a\""), "{text}");
    assert_eq!(widgets.get("a").await, first.object);
    let object = widgets.object("a", json!({"n": 2}));
    let forced = own.store.apply(object, Part::Main, true, &by("b")).await.unwrap();
    assert_eq!(forced.object.decode().spec()["n"], 2);
}

/// An apply of what is so already does nothing at all.
pub async fn that_changes_nothing_is_invisible(own: &Own) {
    let widgets = own.subject.widgets().await;
    let first = apply(own, &widgets, json!({"n": 1}), "a").await.unwrap();
    let newest = own.store.newest().await.unwrap();
    own.clock.advance(std::time::Duration::from_secs(60));
    assert_eq!(apply(own, &widgets, json!({"n": 1}), "a").await.unwrap().object, first.object);
    let update = own.store.update(first.object.decode(), &by("b")).await.unwrap();
    assert_eq!(update, first.object);
    assert_eq!(widgets.merge("a", json!({"spec": {"n": 1}})).await, first.object);
    assert_eq!(own.store.newest().await.unwrap(), newest);
}

/// After any other write, who wrote a field owns it.
pub async fn is_told_of_by_every_later_write(own: &Own) {
    let widgets = own.subject.widgets().await;
    apply(own, &widgets, json!({"n": 1}), "a").await.unwrap();
    let patch = Patch::merge(json!({"spec": {"n": 2}})).unwrap();
    own.store.patch(&widgets.key("a"), Part::Main, &patch, &by("b")).await.unwrap();
    let stored = widgets.get("a").await.decode();
    assert!(managers(&stored).contains(&("b".to_owned(), "Update".to_owned())), "{:?}", managers(&stored));
    refused!(apply(own, &widgets, json!({"n": 3}), "a").await, Error::Contested { .. });
    // Without a manager the actor is one.
    widgets.merge("a", json!({"spec": {"text": "x"}})).await;
    let stored = widgets.get("a").await.decode();
    assert!(managers(&stored).contains(&("suite".to_owned(), "Update".to_owned())));
}

/// A client that leaves the owners out of what it sends, or makes some up for an object that nobody has
/// applied, changes nothing about them.
pub async fn owners_are_not_for_every_client_to_say(own: &Own) {
    let widgets = own.subject.widgets().await;
    let applied = apply(own, &widgets, json!({"n": 1}), "a").await.unwrap().object;
    let left_out = widgets.update(&applied, |object| object.set_metadata("managedFields", json!(null))).await;
    assert_eq!(left_out, applied);
    let made_up = json!([{"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:n": {}}}}]);
    let mut object = widgets.object("b", json!({"n": 1}));
    object.set_metadata("managedFields", made_up.clone());
    let created = widgets.try_create(object).await.unwrap();
    assert!(created.decode().metadata("managedFields").is_null());
    let updated = widgets.update(&created, |object| object.set_metadata("managedFields", made_up)).await;
    assert_eq!(updated, created);
}

/// An object that was there before anybody applied it belongs to nobody in particular.
pub async fn meets_what_was_there_before(own: &Own) {
    let widgets = own.subject.widgets().await;
    widgets.create("a", json!({"n": 1, "text": "x"})).await;
    refused!(apply(own, &widgets, json!({"n": 2}), "a").await, Error::Contested { .. });
    let applied = apply(own, &widgets, json!({"n": 1}), "a").await.unwrap();
    assert_eq!(*applied.object.decode().spec(), json!({"n": 1, "text": "x"}));
    assert_eq!(applied.object.head().generation, 1);
}

/// Status is applied apart from the rest, where it is written apart.
pub async fn of_status_is_about_status_only(own: &Own) {
    let widgets = own.subject.widgets().await;
    let mut object = widgets.object("a", json!({"n": 1}));
    object.set("status", json!({"phase": "Up"}));
    refused!(own.store.apply(object.clone(), Part::Status, false, &by("s")).await, Error::NotFound { .. });
    let main = own.store.apply(object.clone(), Part::Main, false, &by("a")).await.unwrap();
    assert!(main.object.decode().status().is_null());
    object.set("spec", json!({"n": 9}));
    let observed = own.store.apply(object, Part::Status, false, &by("s")).await.unwrap().object.decode();
    assert_eq!((observed.spec(), observed.status()), (&json!({"n": 1}), &json!({"phase": "Up"})));
    assert_eq!(observed.generation(), 1);
    let entries = observed.metadata("managedFields").as_array().unwrap().clone();
    assert!(entries.iter().any(|entry| entry["manager"] == "s" && entry["subresource"] == "status"));
    // An apply of the rest leaves it alone.
    let later = apply(own, &widgets, json!({"n": 2}), "a").await.unwrap();
    assert_eq!(later.object.decode().status(), observed.status());
    let written = widgets.try_status(&later.object, json!({"phase": "Down"})).await.unwrap().decode();
    assert!(managers(&written).contains(&("suite".to_owned(), "Update".to_owned())));
}

/// An apply is held to the same rules as every write.
pub async fn is_admitted_as_every_write(own: &Own) {
    let widgets = own.subject.widgets().await;
    assert_eq!(invalid_fields(apply(own, &widgets, json!({"n": "one"}), "a").await), ["spec.n"]);
    let nameless = Object::new(&widgets.at_version("v1"), &widgets.namespace, "");
    let refusal = own.store.apply(nameless, Part::Main, false, &by("a")).await;
    assert_eq!(invalid_fields(refusal), ["metadata.name"]);
    let mut owned = widgets.object("a", json!({"n": 1}));
    owned.set_metadata("managedFields", json!([{"manager": "x"}]));
    let refusal = own.store.apply(owned, Part::Main, false, &by("a")).await;
    assert_eq!(invalid_fields(refusal), ["metadata.managedFields"]);
    assert!(widgets.is_gone("a").await);
    let mut other = widgets.object("a", json!({"n": 1}));
    other.set_metadata("uid", json!("00000000-0000-4000-8000-000000000000"));
    let refusal = own.store.apply(other, Part::Main, false, &by("a")).await;
    refused!(refusal, Error::Conflict { .. });
    let dry_run = by("a").dry_run();
    let dry = own.store.apply(widgets.object("a", json!({"n": 1})), Part::Main, false, &dry_run).await;
    assert!(dry.unwrap().is_new);
    assert!(widgets.is_gone("a").await);
}

/// Many who apply fields of their own at once all get them.
pub async fn of_many_are_all_done(own: &Own) {
    let widgets = own.subject.widgets().await;
    let one = |i: usize| {
        let spec = json!({"map": {format!("k{i}"): "v"}});
        let (widgets, manager) = (&widgets, format!("m{i}"));
        async move { apply(own, widgets, spec, &manager).await.unwrap() }
    };
    let done = futures_util::future::join_all((0..8).map(one)).await;
    assert_eq!(done.iter().filter(|applied| applied.is_new).count(), 1);
    let stored = widgets.get("a").await.decode();
    assert_eq!(stored.spec()["map"].as_object().unwrap().len(), 8);
}

/// A patch in the words of one version knows the fields of that version.
pub async fn and_patches_know_the_version_they_are_in(own: &Own) {
    let definition = Definition::usual().changed(|spec| {
        let mut second = spec["versions"][0].clone();
        (second["name"], second["storage"]) = (json!("v2"), json!(false));
        second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["later"] =
            json!({"type": "string"});
        spec["versions"].as_array_mut().unwrap().push(second);
    });
    let widgets = own.subject.widgets_of(definition).await;
    widgets.create("a", json!({"n": 1})).await;
    let patch = Patch::json(json!([
        {"op": "test", "path": "/apiVersion", "value": widgets.at_version("v2").api_version()},
        {"op": "add", "path": "/spec/later", "value": "x"},
    ]));
    let patched = own.store.patch_as(&widgets.key("a"), "v2", Part::Main, &patch.unwrap(), &by("a")).await;
    assert_eq!(patched.unwrap().decode().spec()["later"], "x");
    let patch = Patch::merge(json!({"spec": {"n": 2}})).unwrap();
    let refusal = own.store.patch_as(&widgets.key("a"), "v9", Part::Main, &patch, &by("a")).await;
    assert_eq!(invalid_fields(refusal), ["apiVersion"]);
}

/// A strategic merge patch is for built-in kinds only.
pub async fn and_strategic_patches_are_for_built_in_kinds(own: &Own) {
    let key = ObjectKey::namespaced(GroupKind::new("", "ConfigMap"), "default", "a");
    let mut object = Object::new(&key.kind.at_version("v1"), "default", "a");
    object.set("data", json!({"a": "1", "b": "2"}));
    own.store.create(object, &by("a")).await.unwrap();
    let patch = json!({"data": {"a": null, "c": "3"}});
    let patched = own.store.patch_strategic(&key, Part::Main, &patch, &by("a")).await.unwrap();
    assert_eq!(*patched.decode().get("data"), json!({"b": "2", "c": "3"}));
    let widgets = own.subject.widgets().await;
    widgets.create("a", json!({"n": 1})).await;
    let refusal = own.store.patch_strategic(&widgets.key("a"), Part::Main, &json!({}), &by("a")).await;
    assert_eq!(invalid_fields(refusal), ["patch"]);
}
