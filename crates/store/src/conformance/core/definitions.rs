//! Kinds that definitions make.

use concert_model::condition::{self, Condition, Status};
use concert_model::{FieldSelector, GroupKind, Object, ObjectKey};
use serde_json::{Value, json};

use crate::conformance::expect::refused;
use crate::conformance::widgets::definitions;
use crate::conformance::{Definition, Subject, invalid_fields, next};
use crate::contract::{By, Delete, PageRequest, Part, Query};
use crate::error::Error;

fn group(subject: &Subject) -> String {
    format!("{}.conformance.concert.dev", subject.unique("g"))
}

async fn fields_refused(subject: &Subject, change: impl FnOnce(&mut Value)) -> Vec<String> {
    let group = group(subject);
    let object = Definition::usual().changed(change).object(&group, "x");
    let key = object.key().unwrap();
    let fields = invalid_fields(subject.store.create(object, &By::actor("suite")).await);
    refused!(subject.store.get(&key).await, Error::NotFound { .. });
    fields
}

/// Creates a definition and waits for whether its names are accepted, which takes a real server a moment.
async fn created_and_judged(subject: &Subject, definition: Object) -> Condition {
    let created = subject.store.create(definition, &By::actor("suite")).await.unwrap();
    let name = FieldSelector::field("metadata.name", &created.key().name);
    let query = Query::all(definitions()).with_fields(name);
    let mut events = subject.store.watch(&query, None).await.unwrap();
    loop {
        let event = next(&mut events).await;
        let status = event.object().map(|object| object.decode().status().clone()).unwrap_or_default();
        if let Some(accepted) = condition::find(&status, "NamesAccepted") {
            return accepted;
        }
    }
}

/// `kind` tells how a kind is served.
pub async fn say_how_a_kind_is_served(subject: &Subject) {
    let widgets = subject.widgets().await;
    let kind = subject.store.kind(&widgets.kind).await.unwrap();
    assert_eq!((&kind.group_kind, &*kind.plural), (&widgets.kind, "widgets"));
    assert!(kind.is_namespaced && kind.has_status && kind.has_generation);
    let cluster = Definition::usual().cluster_scoped().without_status();
    let widgets = subject.widgets_of(cluster).await;
    let kind = subject.store.kind(&widgets.kind).await.unwrap();
    assert!(!kind.is_namespaced && !kind.has_status);
}

/// A kind that nobody defined is unknown to every call.
pub async fn are_needed_for_every_kind(subject: &Subject) {
    let (kind, by) = (GroupKind::new(group(subject), "Nothing"), By::actor("suite"));
    let key = ObjectKey::namespaced(kind.clone(), "default", "a");
    let object = Object::new(&kind.at_version("v1"), "default", "a");
    let query = Query::all(kind.clone());
    refused!(subject.store.kind(&kind).await, Error::UnknownKind { .. });
    refused!(subject.store.get(&key).await, Error::UnknownKind { .. });
    refused!(subject.store.list(&query, &PageRequest::whole()).await, Error::UnknownKind { .. });
    refused!(subject.store.watch(&query, None).await, Error::UnknownKind { .. });
    refused!(subject.store.create(object.clone(), &by).await, Error::UnknownKind { .. });
    let mut written = object;
    written.set_metadata("resourceVersion", json!("1"));
    refused!(subject.store.update(written.clone(), &by).await, Error::UnknownKind { .. });
    refused!(subject.store.update_status(written, &by).await, Error::UnknownKind { .. });
    let patch = concert_model::Patch::merge(json!({})).unwrap();
    refused!(subject.store.patch(&key, Part::Main, &patch, &by).await, Error::UnknownKind { .. });
    refused!(subject.store.delete(&key, &Delete::default(), &by).await, Error::UnknownKind { .. });
}

/// Objects of a cluster-scoped kind have no namespace.
pub async fn may_be_for_kinds_without_namespaces(subject: &Subject) {
    let widgets = subject.widgets_of(Definition::usual().cluster_scoped()).await;
    let created = widgets.create("a", json!({"n": 1})).await;
    assert_eq!(&*created.key().namespace, "");
    assert_eq!(widgets.get("a").await, created);
    assert_eq!(widgets.names().await, ["a"]);
}

/// Versions are views of the same object.
pub async fn may_have_several_versions_of_one_object(subject: &Subject) {
    let definition = Definition::usual().changed(|spec| {
        let mut second = spec["versions"][0].clone();
        (second["name"], second["storage"]) = (json!("v2"), json!(false));
        spec["versions"].as_array_mut().unwrap().push(second);
    });
    let widgets = subject.widgets_of(definition).await;
    let mut object = widgets.object("a", json!({"n": 1}));
    object.set("apiVersion", json!(widgets.at_version("v2").api_version()));
    let created = widgets.try_create(object.clone()).await.unwrap();
    refused!(widgets.try_create(widgets.object("a", json!({"n": 2}))).await, Error::AlreadyExists { .. });
    let api_version = json!(widgets.at_version("v2").api_version());
    let changed = widgets.update(&created, |object| {
        object.set("apiVersion", api_version);
        object.set("spec", json!({"n": 3}));
    });
    let changed = changed.await;
    assert_eq!(changed.head().uid, created.head().uid);
    assert_eq!(widgets.get("a").await.decode().spec()["n"], 3);
    let text = changed.to_json_as("v2");
    assert_eq!(Object::from_slice(&text).unwrap().api_version(), widgets.at_version("v2").api_version());
}

/// A definition that is wrong is refused by field, and nothing is stored.
pub async fn that_are_wrong_are_refused_by_field(subject: &Subject) {
    let no_versions = fields_refused(subject, |spec| spec["versions"] = json!([])).await;
    assert!(no_versions.contains(&"spec.versions".to_owned()), "{no_versions:?}");
    let two_stored = fields_refused(subject, |spec| {
        let mut second = spec["versions"][0].clone();
        second["name"] = json!("v2");
        spec["versions"].as_array_mut().unwrap().push(second);
    });
    assert!(two_stored.await.contains(&"spec.versions".to_owned()));
    let scope = fields_refused(subject, |spec| spec["scope"] = json!("Global")).await;
    assert!(scope.contains(&"spec.scope".to_owned()), "{scope:?}");
    let plural = fields_refused(subject, |spec| spec["names"]["plural"] = json!("Not A Name")).await;
    assert!(plural.contains(&"spec.names.plural".to_owned()), "{plural:?}");
}

/// A schema must be structural; what is wrong in it is named.
pub async fn with_schemas_that_are_not_structural_are_refused(subject: &Subject) {
    let schema = "spec.versions[0].schema.openAPIV3Schema";
    for (path, bad) in [
        ("/properties/spec", json!({"properties": {"n": {"type": "integer"}}})),
        ("/properties/spec", json!({"type": "object", "properties": {"n": {"type": "number-ish"}}})),
        ("/properties/spec", json!({"type": "array"})),
    ] {
        let fields = fields_refused(subject, |spec| {
            *spec["versions"][0]["schema"]["openAPIV3Schema"].pointer_mut(path).unwrap() = bad.clone();
        });
        let fields = fields.await;
        let is_inside = |field: &String| {
            field.starts_with(schema) || field.starts_with("spec.validation.openAPIV3Schema")
        };
        assert!(fields.iter().any(is_inside), "{bad}: {fields:?}");
    }
}

/// What objects can be selected by must be there, and have one text.
pub async fn with_selectable_fields_that_are_not_there_are_refused(subject: &Subject) {
    for path in [".spec.nothing", "spec.text", ".spec.list", ".spec.free", ".metadata.name"] {
        let fields = fields_refused(subject, |spec| {
            spec["versions"][0]["selectableFields"] = json!([{"jsonPath": path}]);
        });
        let fields = fields.await;
        assert!(fields.iter().any(|field| field.contains("selectableFields[0]")), "{path}: {fields:?}");
    }
}

/// The name of a definition follows from what it defines.
pub async fn are_named_after_what_they_define(subject: &Subject) {
    let mut object = Definition::usual().object(&group(subject), "x");
    object.set_metadata("name", json!(format!("gadgets.{}", group(subject))));
    assert_eq!(invalid_fields(subject.store.create(object, &By::actor("suite")).await), ["metadata.name"]);
}

/// Group, scope and names cannot change once a kind is served.
pub async fn cannot_change_who_they_define(subject: &Subject) {
    let widgets = subject.widgets().await;
    for (pointer, value) in [
        ("/spec/scope", json!("Cluster")),
        ("/spec/names/kind", json!("Gadget")),
        ("/spec/names/plural", json!("gadgets")),
        ("/spec/group", json!("other.dev")),
    ] {
        let read = subject.store.get(&widgets.definition).await.unwrap();
        let mut whole = read.decode().into_value();
        *whole.pointer_mut(pointer).unwrap() = value;
        let object = Object::from_value(whole).unwrap();
        let fields = invalid_fields(subject.store.update(object, &By::actor("suite")).await);
        let field = pointer[1..].replace('/', ".");
        // What the name of the definition is made of may be refused as a wrong name.
        let is_told = fields.iter().any(|f| *f == field || f == "metadata.name");
        assert!(is_told, "{field}: {fields:?}");
        let now = subject.store.get(&widgets.definition).await.unwrap();
        assert_eq!(now.decode().spec(), read.decode().spec());
    }
}

/// A version that objects may be stored in cannot be taken out.
pub async fn keep_versions_that_objects_are_stored_in(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut object = subject.store.get(&widgets.definition).await.unwrap().decode();
    object.get_mut("spec")["versions"][0]["name"] = json!("v2");
    let fields = invalid_fields(subject.store.update(object, &By::actor("suite")).await);
    assert_eq!(fields, ["status.storedVersions[0]"]);
}

/// A kind has one definition: a second one for it is not accepted.
pub async fn of_a_kind_that_is_taken_are_not_accepted(subject: &Subject) {
    let widgets = subject.widgets().await;
    let twin = Definition::usual().changed(|spec| {
        spec["names"]["plural"] = json!("twins");
        spec["names"]["singular"] = json!("twin");
    });
    let twin = twin.object(&widgets.kind.group, "x");
    let accepted = created_and_judged(subject, twin).await;
    assert_eq!(accepted.status, Status::False);
    widgets.create("a", json!({"n": 1})).await;
    assert_eq!(&*subject.store.kind(&widgets.kind).await.unwrap().plural, "widgets");
}

/// A definition that changes holds for what is written from then on.
pub async fn that_change_hold_for_later_writes(subject: &Subject) {
    let widgets = subject.widgets().await;
    let old = widgets.create("old", json!({"n": 1})).await;
    let mut object = subject.store.get(&widgets.definition).await.unwrap().decode();
    let schema = &mut object.get_mut("spec")["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["n"]["maximum"] = json!(5);
    subject.store.update(object, &By::actor("suite")).await.unwrap();
    // On a real server the new schema is taken up a moment later.
    let mut name = 0;
    loop {
        name += 1;
        match widgets.try_create(widgets.object(&format!("w{name}"), json!({"n": 9}))).await {
            Err(Error::Invalid { errors, .. }) => break assert_eq!(errors[0].field.as_str(), "spec.n"),
            Err(error) => panic!("{error}"),
            Ok(_) => subject.moment().await,
        }
    }
    assert_eq!(widgets.get("old").await, old);
    widgets.set_n(&old, 5).await;
}

/// Short names and singulars are words for resources like plurals: a definition that asks for one that is
/// taken is not accepted.
pub async fn of_a_short_name_that_is_taken_are_not_accepted(subject: &Subject) {
    let taken = Definition::usual().changed(|spec| spec["names"]["shortNames"] = json!(["wd"]));
    let widgets = subject.widgets_of(taken).await;
    let other = Definition::usual().changed(|spec| {
        spec["names"] = json!({"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets",
            "singular": "gadget", "shortNames": ["g", "wd"]});
    });
    let other = other.object(&widgets.kind.group, "x");
    let accepted = created_and_judged(subject, other).await;
    assert_eq!((accepted.status, accepted.reason.as_str()), (Status::False, "ShortNamesConflict"));
}
