//! Bad input takes no revision and leaves no trace; and what only ours refuse in this way.

use concert_model::{GroupKind, Object, Patch};
use serde_json::{Value, json};

use crate::conformance::{Own, invalid_fields};
use crate::contract::{By, Delete, PageRequest, Part, Store};
use crate::error::Error;

/// Whatever is refused, for whatever reason, the store is as it was: revision, objects, history.
pub async fn change_nothing_at_all(own: &Own) {
    let widgets = own.subject.widgets().await;
    let stored = widgets.create_finalized("a", &["a.dev/f"]).await;
    let waiting = widgets.delete("a").await.into_object();
    let (before, by) = (own.store.newest().await.unwrap(), By::actor("suite"));
    let object = |name: &str, spec: Value| widgets.object(name, spec);
    let mut elsewhere = object("b", json!({"n": 1}));
    elsewhere.set_metadata("namespace", json!("missing"));
    let mut other_version = object("b", json!({"n": 1}));
    other_version.set("apiVersion", json!(widgets.at_version("v9").api_version()));
    let huge = object("b", json!({"text": "x".repeat(1_600_000)}));
    let unknown = Object::new(&GroupKind::new("none.dev", "Nothing").at_version("v1"), "default", "a");
    for bad in [
        object("a", json!({"n": 1})),
        object("B", json!({"n": 1})),
        object("b", json!({"n": "1"})),
        elsewhere,
        other_version,
        huge,
        unknown,
    ] {
        own.store.create(bad, &by).await.unwrap_err();
    }
    own.store.update(stored.decode(), &by).await.unwrap_err();
    own.store.update_status(stored.decode(), &by).await.unwrap_err();
    widgets
        .try_update(&waiting, |object| {
            object.add_finalizer("a.dev/g");
        })
        .await
        .unwrap_err();
    widgets.try_merge("a", Part::Main, json!({"spec": {"n": "x"}})).await.unwrap_err();
    widgets.try_merge("b", Part::Main, json!({})).await.unwrap_err();
    widgets.try_operations("a", json!([{"op": "remove", "path": "/none"}])).await.unwrap_err();
    let other = Delete { uid: Some(concert_model::Uid("x".into())), ..Delete::default() };
    widgets.try_delete("a", &other).await.unwrap_err();
    assert_eq!(own.store.newest().await.unwrap(), before);
    assert_eq!(widgets.list().await.items, [waiting]);
    assert_eq!(own.store.history(&widgets.key("a"), None, 10).await.unwrap().len(), 2);
    assert!(own.store.history(&widgets.key("b"), None, 10).await.unwrap().is_empty());
}

/// An object that is too large is refused by name, when it is made and when it grows. (Kubernetes
/// refuses with another code.)
pub async fn name_what_is_too_large(own: &Own) {
    let widgets = own.subject.widgets().await;
    let text = "x".repeat(1_600_000);
    let huge = widgets.try_create(widgets.object("a", json!({"text": text}))).await;
    assert!(
        matches!(&huge, Err(Error::Invalid { errors, .. }) if errors[0].rule == concert_model::Rule::TooLong)
    );
    let created = widgets.create("a", json!({"text": &text[..1_000_000]})).await;
    let grown = widgets.try_merge("a", Part::Main, json!({"spec": {"text": text}})).await;
    assert!(matches!(grown, Err(Error::Invalid { .. })));
    let status = widgets.try_status(&created, json!({"text": &text[..1_000_000]})).await;
    assert!(matches!(status, Err(Error::Invalid { .. })));
    assert_eq!(widgets.get("a").await, created);
}

/// Spec and status are bounded together, whichever is written last.
pub async fn count_spec_and_status_together(own: &Own) {
    let widgets = own.subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let text = "x".repeat(1_000_000);
    let written = widgets.try_status(&created, json!({"text": text})).await.unwrap();
    let grown = widgets.try_update(&written, |object| object.set("spec", json!({"text": text}))).await;
    assert!(matches!(grown, Err(Error::Invalid { .. })));
    assert_eq!(widgets.get("a").await, written);
}

/// A field that cannot be selected by is named.
pub async fn name_fields_that_cannot_be_selected_by(own: &Own) {
    let widgets = own.subject.widgets().await;
    let query = widgets.query().with_fields(concert_model::FieldSelector::field("spec.n", "1"));
    assert_eq!(invalid_fields(own.store.list(&query, &PageRequest::whole()).await), ["fieldSelector"]);
    assert_eq!(invalid_fields(own.store.watch(&query, None).await), ["fieldSelector"]);
}

/// A patch that does not fit is named as such.
pub async fn name_patches_that_do_not_fit(own: &Own) {
    let widgets = own.subject.widgets().await;
    widgets.create("a", json!({"n": 1})).await;
    let unfit = widgets.try_operations("a", json!([{"op": "test", "path": "/spec/n", "value": 2}])).await;
    assert_eq!(invalid_fields(unfit), ["patch"]);
    for (patch, field) in [
        (json!({"metadata": {"name": "b"}}), "metadata.name"),
        (json!({"metadata": {"namespace": "b"}}), "metadata.namespace"),
        (json!({"kind": "Gadget"}), "kind"),
        (json!({"apiVersion": "other.dev/v1"}), "apiVersion"),
        (json!({"apiVersion": null}), "apiVersion"),
        (json!({"metadata": 1}), "metadata"),
    ] {
        let refusal = widgets.try_merge("a", Part::Main, patch.clone()).await;
        assert_eq!(invalid_fields(refusal), [field], "{patch}");
    }
}

/// Metadata of the wrong type is named field by field. (Kubernetes cannot even read it.)
pub async fn name_metadata_of_the_wrong_type(own: &Own) {
    let widgets = own.subject.widgets().await;
    for (field, value) in [
        ("labels", json!([])),
        ("labels", json!({"a": 1})),
        ("annotations", json!({"a": true})),
        ("finalizers", json!("a.dev/f")),
        ("ownerReferences", json!([{"name": "x"}])),
        ("generateName", json!(1)),
    ] {
        let mut object = widgets.object("a", json!({"n": 1}));
        object.set_metadata(field, value.clone());
        let fields = invalid_fields(widgets.try_create(object).await);
        assert_eq!(fields, [format!("metadata.{field}")], "{value}");
    }
}

/// Values of a Secret that are not base64 are named, and `stringData` that is no text. (Kubernetes
/// cannot even read it.)
pub async fn name_secrets_that_are_not_base64(own: &Own) {
    for (field, value, named) in [
        ("data", json!({"a": "not base64!"}), "data[a]"),
        ("stringData", json!({"a": 1}), "stringData[a]"),
        ("stringData", json!([]), "stringData"),
        ("stringData", json!("not base64!"), "stringData"),
        ("data", json!({"a/b": "eA=="}), "data[a/b]"),
    ] {
        let mut secret = Object::new(&GroupKind::new("", "Secret").at_version("v1"), "default", "a");
        secret.set(field, value.clone());
        let refusal = own.store.create(secret, &By::actor("suite")).await;
        let text = format!("{:?}", refusal.as_ref().err());
        assert!(!text.contains("not base64!"), "a secret is repeated in {text}");
        assert_eq!(invalid_fields(refusal), [named], "{value}");
    }
}

/// A patch with more operations than any hand writes is refused.
pub async fn bound_the_size_of_patches(_: &Own) {
    let operations: Vec<Value> =
        (0..10_001).map(|i| json!({"op": "add", "path": "/a", "value": i})).collect();
    assert!(Patch::json(json!(operations)).is_err());
}

/// Objects are nested only so deep that they can be read again, whichever way they grow.
pub async fn bound_the_depth_of_objects(own: &Own) {
    let definition = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let widgets = own.subject.widgets_of(crate::conformance::Definition::of(definition)).await;
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!({"d": inner}));
    assert_eq!(invalid_fields(widgets.try_create(widgets.object("a", nested(125))).await), ["spec"]);
    let stored = widgets.create("a", nested(60)).await;
    let bottom = format!("/spec{}", "/d".repeat(60));
    let graft = json!([{"op": "copy", "from": "/spec", "path": bottom}]);
    assert_eq!(invalid_fields(widgets.try_operations("a", graft).await), ["patch"]);
    let status = widgets.try_status(&stored, nested(125)).await;
    assert_eq!(invalid_fields(status), ["status"]);
    assert_eq!(widgets.get("a").await, stored);
}

/// A token of one namespace opens no other.
pub async fn keep_tokens_to_their_namespace(own: &Own) {
    let widgets = own.subject.widgets().await;
    widgets.create("a", json!({"n": 1})).await;
    let elsewhere = widgets.query().in_namespace("default");
    let token = format!("{}/{}/-", own.store.newest().await.unwrap(), widgets.namespace);
    let request = PageRequest { limit: None, token: Some(token) };
    assert_eq!(invalid_fields(own.store.list(&elsewhere, &request).await), ["continue"]);
}
