//! Kinds, where ours promise more than Kubernetes or differ from it.

use concert_model::condition::{self, Status};
use concert_model::{GroupKind, Object, ObjectKey, Patch};
use serde_json::json;

use crate::conformance::expect::refused;
use crate::conformance::{Definition, Own, Widgets, invalid_fields};
use crate::contract::{By, Delete, Deleted, Part, Store};
use crate::error::Error;
use crate::local::CLEANUP_FINALIZER;

fn by() -> By {
    By::actor("suite")
}

fn two_versions() -> Definition {
    Definition::usual().changed(|spec| {
        let mut second = spec["versions"][0].clone();
        (second["name"], second["storage"]) = (json!("v2"), json!(false));
        let fields = &mut second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        fields["later"] = json!({"type": "string"});
        spec["versions"].as_array_mut().unwrap().push(second);
    })
}

async fn redefine(own: &Own, widgets: &Widgets, change: impl FnOnce(&mut Object)) {
    let mut object = own.store.get(&widgets.definition).await.unwrap().decode();
    change(&mut object);
    own.store.update(object, &by()).await.unwrap();
}

async fn end(own: &Own, widgets: &Widgets) {
    own.store.delete(&widgets.definition, &Delete::default(), &by()).await.unwrap();
    redefine(own, widgets, |object| {
        object.remove_finalizer(CLEANUP_FINALIZER);
    })
    .await;
}

/// A kind is served as soon as its definition is stored. (Kubernetes takes a moment.)
pub async fn are_served_at_once(own: &Own) {
    let definition = Definition::usual().object("at-once.dev", "x");
    let stored = own.store.create(definition, &by()).await.unwrap().decode();
    for kind in ["NamesAccepted", "Established"] {
        assert_eq!(condition::find(stored.status(), kind).unwrap().status, Status::True);
    }
    assert_eq!(stored.status()["storedVersions"], json!(["v1"]));
    assert_eq!(stored.finalizers(), [CLEANUP_FINALIZER]);
    let kind = GroupKind::new("at-once.dev", "Widget");
    own.store.create(Object::new(&kind.at_version("v1"), "default", "a"), &by()).await.unwrap();
    assert!(own.store.kinds().iter().any(|served| served.group_kind == kind));
}

/// What a definition leaves out is filled in.
pub async fn get_the_names_that_were_left_out(own: &Own) {
    let definition = Definition::usual().changed(|spec| {
        spec["names"] = json!({"kind": "Widget", "plural": "widgets"});
    });
    let stored = own.store.create(definition.object("names.dev", "x"), &by()).await.unwrap().decode();
    assert_eq!(stored.spec()["names"]["singular"], "widget");
    assert_eq!(stored.spec()["names"]["listKind"], "WidgetList");
    assert_eq!(stored.spec()["conversion"]["strategy"], "None");
}

/// A kind whose definition is being deleted takes no new objects; those there are can be changed and
/// go. (Kubernetes refuses with another code.)
pub async fn that_are_ending_take_no_new_objects(own: &Own) {
    let widgets = own.subject.widgets().await;
    let held = widgets.create_finalized("held", &["a.dev/f"]).await;
    let gone = own.store.delete(&widgets.definition, &Delete::default(), &by()).await.unwrap();
    assert!(matches!(gone, Deleted::Waiting(_)));
    refused!(widgets.try_create(widgets.object("new", json!({"n": 1}))).await, Error::Forbidden { .. });
    let changed = widgets.set_n(&held, 2).await;
    let waiting = widgets.delete("held").await.into_object();
    assert_eq!(waiting.decode().spec(), changed.decode().spec());
    widgets
        .update(&waiting, |object| {
            object.remove_finalizer("a.dev/f");
        })
        .await;
    assert!(widgets.is_gone("held").await);
}

/// A kind ends with its definition. (In Kubernetes a controller takes the finalizer away.)
pub async fn end_with_their_definition(own: &Own) {
    let widgets = own.subject.widgets().await;
    end(own, &widgets).await;
    refused!(own.store.kind(&widgets.kind).await, Error::UnknownKind { .. });
    refused!(own.store.get(&widgets.key("a")).await, Error::UnknownKind { .. });
}

/// A second definition that was never accepted goes without taking the kind with it.
pub async fn outlive_definitions_that_were_not_accepted(own: &Own) {
    let widgets = own.subject.widgets().await;
    let twin = Definition::usual().changed(|spec| spec["names"]["plural"] = json!("twins"));
    let twin = own.store.create(twin.object(&widgets.kind.group, "x"), &by()).await.unwrap();
    own.store.delete(twin.key(), &Delete::default(), &by()).await.unwrap();
    let mut object = own.store.get(twin.key()).await.unwrap().decode();
    object.remove_finalizer(CLEANUP_FINALIZER);
    own.store.update(object, &by()).await.unwrap();
    widgets.create("a", json!({"n": 1})).await;
}

/// Two definitions of one kind that are written at the same moment: one gets it, the other waits.
pub async fn that_two_ask_for_at_the_same_moment_go_to_one(own: &Own) {
    let group = own.subject.widgets().await.kind.group;
    let named = |plural: &str| {
        let kind = "Contested";
        let names =
            json!({"kind": kind, "plural": plural, "singular": plural, "listKind": format!("{plural}-list")});
        Definition::usual().changed(|spec| spec["names"] = names).object(&group, "x")
    };
    let creates = ["ones", "twos", "threes", "fours"].map(|plural| {
        let (store, definition) = (own.store.clone(), named(plural));
        async move { store.create(definition, &by()).await.unwrap().decode() }
    });
    let stored = futures_util::future::join_all(creates).await;
    let is_true =
        |object: &&Object, kind: &str| condition::find(object.status(), kind).unwrap().status == Status::True;
    for kind in ["Established", "NamesAccepted"] {
        assert_eq!(stored.iter().filter(|it| is_true(it, kind)).count(), 1, "{kind}");
    }
}

/// A definition cannot take over a kind that is built in.
pub async fn that_are_built_in_cannot_be_redefined(own: &Own) {
    let definition = Definition::usual().changed(|spec| {
        spec["names"] = json!({"kind": "Lease", "plural": "leases"});
    });
    let definition = definition.object("coordination.k8s.io", "x");
    let stored = own.store.create(definition, &by()).await.unwrap().decode();
    assert_eq!(condition::find(stored.status(), "NamesAccepted").unwrap().status, Status::False);
    let kind = own.store.kind(&GroupKind::new("coordination.k8s.io", "Lease")).await.unwrap();
    assert!(!kind.has_status);
}

/// An object in a version that is not served is refused, and told which are. (Kubernetes does not
/// know the kind then.)
pub async fn are_refused_in_versions_that_are_not_served(own: &Own) {
    let widgets = own.subject.widgets().await;
    let mut object = widgets.object("a", json!({"n": 1}));
    object.set("apiVersion", json!(widgets.at_version("v9").api_version()));
    let refusal = widgets.try_create(object).await;
    assert!(format!("{:?}", refusal.as_ref().unwrap_err()).contains("v1"));
    assert_eq!(invalid_fields(refusal), ["apiVersion"]);
}

/// Each version has a schema of its own; what is read is in the version it was stored in.
pub async fn have_a_schema_for_each_version(own: &Own) {
    let widgets = own.subject.widgets_of(two_versions()).await;
    let mut object = widgets.object("a", json!({"n": 1, "later": "x"}));
    assert_eq!(*widgets.try_create(object.clone()).await.unwrap().decode().spec(), json!({"n": 1}));
    object.set("apiVersion", json!(widgets.at_version("v2").api_version()));
    object.set_metadata("name", json!("b"));
    let stored = widgets.try_create(object).await.unwrap();
    assert_eq!(*stored.decode().spec(), json!({"n": 1, "later": "x"}));
    assert_eq!(stored.decode().api_version(), widgets.at_version("v1").api_version());
}

/// Objects stored in a version that is no longer served can still be read, changed and deleted.
pub async fn keep_objects_of_versions_that_are_no_longer_served(own: &Own) {
    let widgets = own.subject.widgets_of(two_versions()).await;
    let created = widgets.create_finalized("a", &["a.dev/f"]).await;
    redefine(own, &widgets, |object| {
        let versions = &mut object.get_mut("spec")["versions"];
        (versions[0]["served"], versions[0]["storage"]) = (json!(false), json!(false));
        versions[1]["storage"] = json!(true);
    })
    .await;
    assert_eq!(widgets.get("a").await, created);
    let observed = widgets.try_status(&created, json!({"n": 1})).await.unwrap();
    widgets.try_merge("a", Part::Status, json!({"status": {"n": 2}})).await.unwrap();
    let patched = widgets.merge("a", json!({"spec": {"n": 2}})).await;
    assert_eq!(patched.decode().api_version(), widgets.at_version("v2").api_version());
    assert_eq!(patched.head().generation, observed.head().generation + 1);
    let waiting = widgets.delete("a").await.into_object();
    widgets
        .update(&waiting, |object| {
            object.remove_finalizer("a.dev/f");
        })
        .await;
    assert!(widgets.is_gone("a").await);
    refused!(widgets.try_create(widgets.object("b", json!({"n": 1}))).await, Error::Invalid { .. });
}

/// When the version that objects are stored in changes, each is moved by writing it back as it is; then
/// the old version can go. (Kubernetes does the same, but a store over it does not see it.)
pub async fn move_to_a_new_version_when_objects_are_written_back(own: &Own) {
    let widgets = own.subject.widgets_of(two_versions()).await;
    let created = widgets.create("a", json!({"n": 1})).await;
    redefine(own, &widgets, |object| {
        let versions = &mut object.get_mut("spec")["versions"];
        (versions[0]["storage"], versions[1]["storage"]) = (json!(false), json!(true));
    })
    .await;
    let moved = widgets.update(&created, |_| {}).await;
    assert_ne!(moved.resource_version(), created.resource_version());
    assert_eq!(moved.decode().api_version(), widgets.at_version("v2").api_version());
    assert_eq!(widgets.update(&moved, |_| {}).await, moved);
    let mut definition = own.store.get(&widgets.definition).await.unwrap().decode();
    assert_eq!(definition.status()["storedVersions"], json!(["v1", "v2"]));
    definition.get_mut("status")["storedVersions"] = json!(["v2"]);
    own.store.update_status(definition, &by()).await.unwrap();
    redefine(own, &widgets, |object| {
        object.get_mut("spec")["versions"].as_array_mut().unwrap().remove(0);
    })
    .await;
    widgets.merge("a", json!({"spec": {"n": 2}})).await;
}

/// A definition written in the middle of creations refuses none of them.
pub async fn can_change_while_objects_are_made(own: &Own) {
    let widgets = own.subject.widgets().await;
    let redefining = async {
        for i in 0..20 {
            redefine(own, &widgets, |object| object.set_metadata("labels", json!({"i": i.to_string()})))
                .await;
        }
    };
    let creating = async {
        for i in 0..50 {
            widgets.create(&format!("w{i:02}"), json!({"n": 1})).await;
        }
    };
    tokio::join!(redefining, creating);
    assert_eq!(widgets.names().await.len(), 50);
}

/// A namespace waits for its finalizer, and goes with it. (In Kubernetes a controller empties it.)
pub async fn of_namespaces_end_with_their_finalizer(own: &Own) {
    let name = own.subject.namespace().await;
    let key = ObjectKey::cluster(GroupKind::new("", "Namespace"), name);
    let Deleted::Waiting(waiting) = own.store.delete(&key, &Delete::default(), &by()).await.unwrap() else {
        panic!("gone")
    };
    let mut object = waiting.decode();
    assert_eq!(object.status()["phase"], "Terminating");
    // Saying nothing of its finalizers does not finish it.
    object.set("spec", json!({}));
    object.set_label("a", "b");
    let mut object = own.store.update(object, &by()).await.unwrap().decode();
    object.get_mut("spec")["finalizers"] = json!([]);
    own.store.update(object, &by()).await.unwrap();
    refused!(own.store.get(&key).await, Error::NotFound { .. });
}

/// A definition stays established, whatever somebody writes into its status.
pub async fn stay_served_whatever_is_written_into_their_status(own: &Own) {
    let widgets = own.subject.widgets().await;
    let mut definition = own.store.get(&widgets.definition).await.unwrap().decode();
    definition.set("status", json!({"storedVersions": ["v9"]}));
    own.store.update_status(definition, &by()).await.unwrap();
    widgets.create("a", json!({"n": 1})).await;
}

/// What was stored under an easier schema can be labelled, observed and deleted under a stricter one; what
/// is changed must be right. (Kubernetes takes a moment to take up the new schema.)
pub async fn that_become_stricter_let_go_of_what_is_there(own: &Own) {
    let widgets = own.subject.widgets().await;
    let mut object = widgets.object("a", json!({"n": 9, "text": "odd"}));
    object.set_metadata("finalizers", json!(["a.dev/f"]));
    let created = widgets.try_create(object).await.unwrap();
    let created = widgets.try_status(&created, json!({"n": 9, "phase": "Up"})).await.unwrap();
    redefine(own, &widgets, |object| {
        let properties =
            &mut object.get_mut("spec")["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        properties["status"]["properties"]["n"]["maximum"] = json!(5);
        let spec = &mut properties["spec"];
        spec["required"] = json!(["map"]);
        spec["properties"]["text"]["enum"] = json!(["even"]);
        spec["x-kubernetes-validations"] =
            json!([{"rule": "!has(self.n) || self.n < 5", "message": "n must be less than 5"}]);
    })
    .await;

    let refusal = widgets.try_create(widgets.object("b", json!({"n": 1}))).await;
    assert_eq!(invalid_fields(refusal), ["spec.map"]);
    let labelled = widgets.update(&created, |object| object.set_label("a", "b")).await;
    assert_eq!(labelled.decode().labels().get("a").map(String::as_str), Some("b"));
    assert_eq!(invalid_fields(widgets.try_status(&labelled, json!({"n": 8})).await), ["status.n"]);
    let observed = widgets.try_status(&labelled, json!({"n": 9, "phase": "Down"})).await.unwrap();

    let refusal = widgets.try_merge("a", Part::Main, json!({"spec": {"text": "odder"}})).await;
    assert_eq!(invalid_fields(refusal), ["spec.map", "spec.text"]);
    let refusal = widgets.try_merge("a", Part::Main, json!({"spec": {"map": {}}})).await;
    assert_eq!(invalid_fields(refusal), ["spec"]);
    let mended = json!({"spec": {"map": {}, "n": 1}});
    let dry_run = By::actor("suite").dry_run();
    let patch = Patch::merge(mended).unwrap();
    own.store.patch(&widgets.key("a"), Part::Main, &patch, &dry_run).await.unwrap();

    assert_eq!(widgets.get("a").await, observed);
    let waiting = widgets.delete("a").await.into_object();
    widgets
        .update(&waiting, |object| {
            object.remove_finalizer("a.dev/f");
        })
        .await;
    assert!(widgets.is_gone("a").await);
    end(own, &widgets).await;
    refused!(own.store.kind(&widgets.kind).await, Error::UnknownKind { .. });
}
