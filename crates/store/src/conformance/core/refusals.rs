//! Bad input: a typed error that names the field, and nothing has changed.

use concert_model::{FieldSelector, LabelSelector, Object, Patch, PatchError, Rule};
use serde_json::{Value, json};

use crate::conformance::expect::next_word;
use crate::conformance::{Definition, Subject, Widgets, invalid_fields};

/// Tries bad metadata, as a creation and as a change, and looks that nothing has changed.
async fn refuse(widgets: &Widgets, metadata: &[(&str, Value)], field: &str) {
    let before = widgets.list().await.items;
    let mut object = widgets.object("fresh", json!({"n": 1}));
    metadata.iter().for_each(|(name, value)| object.set_metadata(name, value.clone()));
    let fields = invalid_fields(widgets.try_create(object).await);
    assert!(fields.iter().any(|f| f.starts_with(field)), "{metadata:?}: {fields:?}");
    assert_eq!(widgets.list().await.items, before);
}

/// Malformed names are refused.
pub async fn name_malformed_names(subject: &Subject) {
    let widgets = subject.widgets().await;
    for name in ["A", "a_b", "-a", "a-", "a b", "a..b", "ä", &"x".repeat(254)] {
        refuse(&widgets, &[("name", json!(name))], "metadata.name").await;
    }
}

/// An object must have a name or ask for one.
pub async fn name_the_name_that_is_missing(subject: &Subject) {
    let widgets = subject.widgets().await;
    refuse(&widgets, &[("name", json!(null))], "metadata.name").await;
}

/// Malformed labels are refused.
pub async fn name_malformed_labels(subject: &Subject) {
    let widgets = subject.widgets().await;
    for labels in
        [json!({"a b": "c"}), json!({"a": "b c"}), json!({"a": "x".repeat(64)}), json!({"a/b/c": ""})]
    {
        refuse(&widgets, &[("labels", labels)], "metadata.labels").await;
    }
}

/// Malformed or too large annotations are refused.
pub async fn name_malformed_annotations(subject: &Subject) {
    let widgets = subject.widgets().await;
    for annotations in [json!({"a b": "c"}), json!({"a": "x".repeat(300_000)})] {
        refuse(&widgets, &[("annotations", annotations)], "metadata.annotations").await;
    }
}

/// Malformed finalizers are refused.
pub async fn name_malformed_finalizers(subject: &Subject) {
    let widgets = subject.widgets().await;
    refuse(&widgets, &[("finalizers", json!(["not a name"]))], "metadata.finalizers").await;
}

/// Malformed owner references are refused, and two controllers.
pub async fn name_malformed_owners(subject: &Subject) {
    let widgets = subject.widgets().await;
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": uid, "controller": true});
    for owners in [json!([owner("")]), json!([owner("1"), owner("2")])] {
        refuse(&widgets, &[("ownerReferences", owners)], "metadata.ownerReferences").await;
    }
}

/// A refused update leaves the object, and its watchers, as they were.
pub async fn leave_everything_as_it_was(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let mut events = widgets.watch().await;
    let changes: [fn(&mut Object); 5] = [
        |object| object.set("spec", json!({"n": "one"})),
        |object| object.set("spec", json!("text")),
        |object| object.set_metadata("labels", json!({"a b": "c"})),
        |object| object.set_metadata("finalizers", json!(["not a name"])),
        |object| object.set("extra", json!({"a": 1})),
    ];
    for change in changes {
        assert!(!invalid_fields(widgets.try_update(&created, change).await).is_empty());
        assert_eq!(widgets.get("a").await, created);
    }
    widgets.create("marker", json!({"n": 1})).await;
    assert_eq!(next_word(&mut events).await, "A marker");
}

/// A namespaced kind needs a namespace, a cluster-scoped one has none.
pub async fn name_the_wrong_scope(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut object = widgets.object("a", json!({"n": 1}));
    object.set_metadata("namespace", json!(null));
    assert_eq!(invalid_fields(widgets.try_create(object).await), ["metadata.namespace"]);
    let cluster = subject.widgets_of(Definition::usual().cluster_scoped()).await;
    let mut object = cluster.object("a", json!({"n": 1}));
    object.set_metadata("namespace", json!(&*widgets.namespace));
    assert_eq!(invalid_fields(cluster.try_create(object).await), ["metadata.namespace"]);
    assert!(cluster.names().await.is_empty());
}

/// Malformed selectors are refused before any store is asked, with field and rule.
pub async fn name_malformed_selectors(_: &Subject) {
    for text in ["a in b", "a=b=c", "a>x", "!", "a,,b", "-a=1"] {
        let error = LabelSelector::parse(text).unwrap_err();
        assert_eq!((error.field.as_str(), error.rule), ("labelSelector", Rule::Invalid), "{text}");
    }
    for text in ["metadata.name", "=a"] {
        let error = FieldSelector::parse(text).unwrap_err();
        assert_eq!((error.field.as_str(), error.rule), ("fieldSelector", Rule::Invalid), "{text}");
    }
}

/// Malformed patches are refused before any store is asked, with the operation.
pub async fn name_malformed_patches(_: &Subject) {
    for (patch, field) in [
        (Patch::json(json!({})), "patch"),
        (Patch::json(json!([{"op": "jump", "path": "/a"}])), "patch[0]"),
        (Patch::json(json!([{"op": "add", "path": "a", "value": 1}])), "patch[0]"),
        (Patch::json(json!([{"op": "add", "path": "/a"}])), "patch[0]"),
        (Patch::merge(json!([])), "patch"),
        (Patch::merge(json!("text")), "patch"),
    ] {
        let Err(PatchError::Malformed(error)) = patch else { panic!("{patch:?}") };
        assert_eq!(error.field.as_str(), field);
    }
}
