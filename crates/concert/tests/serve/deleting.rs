//! `kubectl delete`, with owners, finalizers and collections.

use serde_json::{Value, json};

use crate::cloud::{World, bucket};
use crate::plane::{Plane, widget};
use crate::wait::eventually;

fn owned(name: &str, owner: &Value) -> Value {
    let mut object = widget(name, &json!({"size": 1}));
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "test.concert.dev/v1", "kind": "Widget",
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true}]);
    object
}

fn wait_gone(plane: &Plane, name: &str) {
    eventually(&format!("{name} is gone"), || match plane.exists("widget", name) {
        false => Ok(()),
        true => Err("it is there".into()),
    });
}

/// What kubectl prints.
fn deleted(name: &str) -> String {
    format!("widget.test.concert.dev \"{name}\" deleted from default namespace\n")
}

fn family(plane: &Plane) {
    plane.apply(&widget("owner", &json!({"size": 1})));
    plane.apply(&owned("child", &plane.get("widget", "owner")));
}

#[test]
fn what_is_owned_goes_with_its_owner_or_stays() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    family(&plane);
    assert_eq!(plane.kubectl(&["delete", "widget", "owner", "--timeout=30s"]), deleted("owner"));
    wait_gone(&plane, "child");

    family(&plane);
    plane.set_finalizers("widget", "child", &json!(["t.dev/x"]));
    let said = plane.kubectl(&["delete", "widget", "owner", "--cascade=foreground", "--wait=false"]);
    assert_eq!(said, deleted("owner"));
    eventually("the child is being deleted", || {
        let child = plane.get("widget", "child");
        if child["metadata"]["deletionTimestamp"].is_string() { Ok(()) } else { Err(child.to_string()) }
    });
    assert!(plane.exists("widget", "owner"), "it waits for its child");
    plane.set_finalizers("widget", "child", &Value::Null);
    wait_gone(&plane, "owner");
    assert!(!plane.exists("widget", "child"));

    family(&plane);
    let said = plane.kubectl(&["delete", "widget", "owner", "--cascade=orphan", "--timeout=30s"]);
    assert_eq!(said, deleted("owner"));
    let child = plane.get("widget", "child");
    assert!(child["metadata"].get("ownerReferences").is_none(), "{child}");
}

#[test]
fn collections_and_namespaces_go_as_a_whole() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    for name in ["a", "b", "c"] {
        plane.apply(&widget(name, &json!({"size": 1})));
    }
    plane.kubectl(&["label", "widget", "a", "keep=yes"]);
    let said = plane.kubectl(&["delete", "widgets", "-l", "keep!=yes", "--timeout=30s"]);
    assert_eq!(said, [deleted("b"), deleted("c")].concat());
    assert_eq!(plane.kubectl(&["get", "widgets", "-o", "name"]), "widget.test.concert.dev/a\n");
    assert_eq!(plane.kubectl(&["delete", "widgets", "--all", "--timeout=30s"]), deleted("a"));
    assert_eq!(plane.kubectl(&["get", "widgets", "-o", "name"]), "");

    plane.kubectl(&["create", "namespace", "n"]);
    let mut inside = widget("a", &json!({"size": 1}));
    inside["metadata"]["namespace"] = json!("n");
    plane.apply(&inside);
    let said = plane.kubectl(&["delete", "namespace", "n", "--timeout=30s"]);
    assert_eq!(said, "namespace \"n\" deleted\n");
    let refused = plane.refused(&["apply", "-f", "-"], &inside.to_string());
    assert!(refused.contains("namespaces \"n\" not found"), "{refused}");
}

#[test]
fn whoever_deletes_waits_for_the_finalizers() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    let make = || {
        plane.apply(&widget("w", &json!({"size": 1})));
        plane.set_finalizers("widget", "w", &json!(["t.dev/x"]));
    };
    make();
    let deleting = plane.waiting(&["delete", "widget", "w", "--timeout=60s"]);
    assert!(plane.get("widget", "w")["metadata"]["deletionTimestamp"].is_string());
    plane.set_finalizers("widget", "w", &Value::Null);
    assert_eq!(deleting.end(), deleted("w"));
    assert!(!plane.exists("widget", "w"));

    make();
    assert_eq!(plane.kubectl(&["delete", "widget", "w", "--wait=false"]), deleted("w"));
    let waiting = plane.waiting(&["wait", "--for=delete", "widget/w", "--timeout=60s"]);
    plane.set_finalizers("widget", "w", &Value::Null);
    assert_eq!(waiting.end(), "widget.test.concert.dev/w condition met\n");
    assert!(!plane.exists("widget", "w"));
}

#[test]
fn a_managed_resource_goes_whichever_way_its_deletion_is_asked_for() {
    let world = World::new(5);
    for policy in ["Background", "Foreground"] {
        let applied = world.apply(&bucket("a", &json!({"region": "eu", "size": 1})), "");
        assert!(world.settle(&applied));
        world.delete_with("a", &json!({"propagationPolicy": policy}));
    }
    let usages = "/apis/cloud.concert.dev/v1alpha1/namespaces/default/providerconfigusages";
    eventually("nobody is said to use the configuration", || {
        let left = world.json("GET", usages, &Value::Null);
        if left["items"].as_array().is_some_and(Vec::is_empty) { Ok(()) } else { Err(left.to_string()) }
    });
}
