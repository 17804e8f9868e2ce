//! Fields that no schema knows, and what a caller can ask to become of them.

use concert_model::{GroupKind, Object, ObjectKey, Patch};
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
        Err(Error::Unknown { fields, .. }) => sorted(fields.iter().map(ToString::to_string).collect()),
        Err(error) => panic!("refused for another reason: {error}"),
        Ok(_) => panic!("not refused"),
    }
}

/// No order of several is promised.
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
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
    let fields = unknown(subject.store.create(definition, &refusing()).await);
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

/// The references of a ServiceAccount have fields of their own: those to secrets of images only a name.
pub async fn fields_inside_service_accounts_are_pruned_and_named(subject: &Subject) {
    let kind = GroupKind::new("", "ServiceAccount").at_version("v1");
    let mut account = Object::new(&kind, &subject.namespace().await, "a");
    account.set("secrets", json!([{"name": "key", "nmae": "c"}]));
    account.set("imagePullSecrets", json!([{"name": "key", "namespace": "b"}]));
    let fields = unknown(subject.store.create(account.clone(), &refusing()).await);
    assert_eq!(fields, ["imagePullSecrets[0].namespace", "secrets[0].nmae"]);
    let by = By::actor("suite").with_unknown(UnknownFields::Warn).warning(&Warnings::collect());
    let stored = subject.store.create(account, &by).await.unwrap().decode();
    let warnings = sorted(by.warnings.take());
    assert_eq!(
        warnings,
        ["unknown field \"imagePullSecrets[0].namespace\"", "unknown field \"secrets[0].nmae\""]
    );
    assert_eq!(*stored.get("secrets"), json!([{"name": "key"}]));
    assert_eq!(*stored.get("imagePullSecrets"), json!([{"name": "key"}]));
}

/// The statuses of built-in kinds are as closed as the rest of them.
pub async fn fields_inside_built_in_statuses_are_refused_when_asked(subject: &Subject) {
    let odd = json!([{"type": "Odd", "status": "True", "raeson": "Typed"}]);
    let key = ObjectKey::cluster(GroupKind::new("", "Namespace"), subject.namespace().await);
    let mut namespace = subject.store.get(&key).await.unwrap().decode();
    namespace.set("status", json!({"phase": "Active", "phaes": "Active", "conditions": odd}));
    let fields = unknown(subject.store.update_status(namespace, &refusing()).await);
    assert_eq!(fields, ["status.conditions[0].raeson", "status.phaes"]);
    let widgets = subject.widgets().await;
    let mut definition = subject.store.get(&widgets.definition).await.unwrap().decode();
    definition.set(
        "status",
        json!({"acceptedNames": {"plural": "widgets", "kind": "Widget", "shortName": "w"},
            "conditions": odd, "storedVersions": ["v1"], "storedVersion": "v1"}),
    );
    let fields = unknown(subject.store.update_status(definition, &refusing()).await);
    let expected = ["status.acceptedNames.shortName", "status.conditions[0].raeson", "status.storedVersion"];
    assert_eq!(fields, expected);
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
