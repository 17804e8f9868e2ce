//! Fields that no schema knows, and what a caller can ask to become of them.

use concert_model::{GroupKind, Object, Patch};
use serde_json::json;

use crate::conformance::expect::refused;
use crate::conformance::{Definition, Subject};
use crate::contract::{By, Part, Result};
use crate::error::Error;
use crate::unknown::{UnknownFields, Warnings};

fn refusing() -> By {
    By::actor("suite").with_unknown(UnknownFields::Refuse)
}

fn unknown<T>(result: Result<T>) -> Vec<String> {
    match result {
        Err(Error::Unknown { fields, .. }) => fields.iter().map(ToString::to_string).collect(),
        Err(error) => panic!("refused for another reason: {error}"),
        Ok(_) => panic!("not refused"),
    }
}

/// They are dropped without a word unless the caller asks for more.
pub async fn fields_are_dropped_in_silence(subject: &Subject) {
    let widgets = subject.widgets().await;
    let by = By::actor("suite").warning(&Warnings::collect());
    let object = widgets.object("a", json!({"n": 1, "colour": "pink"}));
    let stored = subject.store.create(object, &by).await.unwrap();
    assert_eq!(*stored.decode().spec(), json!({"n": 1}));
    assert!(by.warnings.take().is_empty());
}

/// A caller that wants to be warned is, and its write is done.
pub async fn fields_are_warned_about_when_asked(subject: &Subject) {
    let widgets = subject.widgets().await;
    let by = By::actor("suite").with_unknown(UnknownFields::Warn).warning(&Warnings::collect());
    let object = widgets.object("a", json!({"n": 1, "colour": "pink"}));
    let stored = subject.store.create(object, &by).await.unwrap();
    assert_eq!(*stored.decode().spec(), json!({"n": 1}));
    assert_eq!(by.warnings.take(), ["unknown field \"spec.colour\""]);
}

/// A caller that wants to be refused is, by field, and nothing is stored.
pub async fn fields_are_refused_when_asked(subject: &Subject) {
    let widgets = subject.widgets().await;
    let object = widgets.object("a", json!({"n": 1, "colour": "pink"}));
    let refusal = subject.store.create(object.clone(), &refusing()).await;
    let text = refusal.as_ref().unwrap_err().to_string();
    assert_eq!(text, "strict decoding error: unknown field \"spec.colour\"");
    assert_eq!(unknown(refusal), ["spec.colour"]);
    assert!(widgets.is_gone("a").await);
    let stored = widgets.create("a", json!({"n": 1})).await;
    let mut changed = stored.decode();
    changed.get_mut("spec")["colour"] = json!("pink");
    assert_eq!(unknown(subject.store.update(changed, &refusing()).await), ["spec.colour"]);
    assert_eq!(widgets.get("a").await, stored);
}

/// The fields of built-in kinds are known at every depth, those of definitions among them.
pub async fn fields_inside_built_in_kinds_are_refused_when_asked(subject: &Subject) {
    let group = format!("{}.conformance.concert.dev", subject.unique("g"));
    let definition = Definition::usual().changed(|spec| {
        spec["names"]["shortName"] = json!("wd");
        spec["versions"][0]["printerColumns"] = json!([]);
    });
    let definition = definition.object(&group, "x");
    let key = definition.key().unwrap();
    let mut fields = unknown(subject.store.create(definition, &refusing()).await);
    fields.sort();
    assert_eq!(fields, ["spec.names.shortName", "spec.versions[0].printerColumns"]);
    refused!(subject.store.get(&key).await, Error::NotFound { .. });
    let space = subject.namespace().await;
    let event = GroupKind::new("", "Event").at_version("v1");
    let mut event = Object::new(&event, &space, "a.1");
    event.set("involvedObject", json!({"kind": "ConfigMap", "namespace": &*space, "nmae": "a"}));
    assert_eq!(unknown(subject.store.create(event, &refusing()).await), ["involvedObject.nmae"]);
    let role = GroupKind::new("rbac.authorization.k8s.io", "ClusterRole").at_version("v1");
    let mut role = Object::new(&role, "", &subject.unique("r"));
    role.set("aggregationRule", json!({"clusterRoleSelectors": [{"matchLables": {"a": "b"}}]}));
    let fields = unknown(subject.store.create(role, &refusing()).await);
    assert_eq!(fields, ["aggregationRule.clusterRoleSelectors[0].matchLables"]);
}

/// All that a definition may say is known.
pub async fn fields_of_whole_definitions_are_not_refused(subject: &Subject) {
    let group = format!("{}.conformance.concert.dev", subject.unique("g"));
    let definition = Definition::usual().changed(|spec| {
        spec["names"]["shortNames"] = json!(["wd"]);
        spec["names"]["categories"] = json!(["all"]);
        spec["conversion"] = json!({"strategy": "None"});
        spec["preserveUnknownFields"] = json!(false);
        let version = &mut spec["versions"][0];
        version["deprecated"] = json!(true);
        version["deprecationWarning"] = json!("use another");
        version["selectableFields"] = json!([{"jsonPath": ".spec.text"}]);
        version["additionalPrinterColumns"] = json!([{"name": "N", "type": "integer", "format": "int64",
            "description": "How many.", "priority": 1, "jsonPath": ".spec.n"}]);
        version["subresources"]["scale"] = json!({"specReplicasPath": ".spec.n",
            "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.phase"});
    });
    let stored = subject.store.create(definition.object(&group, "x"), &refusing()).await.unwrap();
    let spec = stored.decode().spec().clone();
    assert_eq!(spec["names"]["categories"], json!(["all"]));
    assert_eq!(spec["versions"][0]["deprecationWarning"], "use another");
}

/// What is known is no reason to refuse.
pub async fn fields_that_are_known_are_not_refused(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut object = widgets.object("a", json!({"n": 1, "free": {"any": "thing"}, "map": {"any": "text"}}));
    object.set_metadata("labels", json!({"a": "b"}));
    object.set_metadata("annotations", json!({"a": "b"}));
    let stored = subject.store.create(object, &refusing()).await.unwrap();
    subject.store.update(stored.decode(), &refusing()).await.unwrap();
    subject.store.update_status(stored.decode(), &refusing()).await.unwrap();
}

/// A patch that brings them is refused where that is asked for.
pub async fn fields_of_patches_are_refused_when_asked(subject: &Subject) {
    let widgets = subject.widgets().await;
    let stored = widgets.create("a", json!({"n": 1})).await;
    let patch = Patch::merge(json!({"spec": {"n": 2, "colour": "pink"}})).unwrap();
    let refusal = subject.store.patch(&widgets.key("a"), Part::Main, &patch, &refusing()).await;
    assert_eq!(unknown(refusal), ["spec.colour"]);
    assert_eq!(widgets.get("a").await, stored);
}
