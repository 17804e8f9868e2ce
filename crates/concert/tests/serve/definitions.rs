//! Kinds that come, change and go.

use serde_json::{Value, json};

use crate::plane::{Plane, widget};
use crate::wait::eventually;

#[test]
fn a_definition_takes_its_objects_with_it() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    plane.apply(&widget("a", &json!({"size": 1})));
    plane.kubectl(&["delete", "crd", "widgets.test.concert.dev", "--timeout=30s"]);
    let gone = plane.refused(&["get", "widgets"], "");
    // kubectl may still remember the kind.
    let is_unknown =
        gone.contains("doesn't have a resource type") || gone.contains("could not find the requested");
    assert!(is_unknown, "{gone}");
    plane.define_widgets();
    assert_eq!(plane.kubectl(&["get", "widgets", "-o", "name"]), "");
}

#[test]
fn a_definition_waits_for_the_finalizers_of_its_objects() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    plane.apply(&widget("a", &json!({"size": 1})));
    plane.set_finalizers("widget", "a", &json!(["t.dev/x"]));
    let definition = "widgets.test.concert.dev";
    let deleting = plane.waiting(&["delete", "crd", definition, "--timeout=60s"]);
    eventually("the object is being deleted", || {
        let object = plane.get("widget", "a");
        if object["metadata"]["deletionTimestamp"].is_string() { Ok(()) } else { Err(object.to_string()) }
    });
    assert!(plane.get("crd", definition)["metadata"]["deletionTimestamp"].is_string());
    let late = plane.refused(&["create", "-f", "-"], &widget("b", &json!({"size": 1})).to_string());
    assert!(late.contains("(Forbidden)") && late.contains("its definition is being deleted"), "{late}");
    plane.set_finalizers("widget", "a", &Value::Null);
    let said = format!("customresourcedefinition.apiextensions.k8s.io \"{definition}\" deleted\n");
    assert_eq!(deleting.end(), said);
    assert!(!plane.exists("crd", definition));
}

#[test]
fn an_object_is_served_in_every_version() {
    let Some(plane) = Plane::start() else { return };
    let open = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"size": {"type": "integer"}}}}}});
    let version = |name: &str, is_stored: bool| json!({"name": name, "served": true, "storage": is_stored, "schema": open});
    plane.apply(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.test.concert.dev"},
        "spec": {"group": "test.concert.dev", "scope": "Cluster",
            "names": {"kind": "Gear", "plural": "gears", "singular": "gear", "listKind": "GearList"},
            "versions": [version("v1", true), version("v1beta1", false)]}}));
    plane.kubectl(&["wait", "--for=condition=Established", "crd/gears.test.concert.dev", "--timeout=30s"]);
    plane.apply(&json!({"apiVersion": "test.concert.dev/v1beta1", "kind": "Gear",
        "metadata": {"name": "a"}, "spec": {"size": 1}}));
    assert_eq!(plane.get("gears.v1.test.concert.dev", "a")["apiVersion"], "test.concert.dev/v1");
    let older = plane.get("gears.v1beta1.test.concert.dev", "a");
    assert_eq!(
        (&older["apiVersion"], &older["spec"]["size"]),
        (&json!("test.concert.dev/v1beta1"), &json!(1))
    );
}
