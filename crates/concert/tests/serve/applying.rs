//! `kubectl apply`, on the client's side and on the server's.

use serde_json::{Value, json};

use crate::plane::{Plane, widget};

#[test]
fn client_side_apply_creates_configures_and_leaves_alone() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    let first = widget("a", &json!({"size": 1, "parts": [{"name": "x", "count": 1}]}));
    assert_eq!(plane.apply(&first), "widget.test.concert.dev/a created\n");
    assert_eq!(plane.apply(&first), "widget.test.concert.dev/a unchanged\n");
    let second = widget("a", &json!({"size": 2}));
    assert_eq!(plane.apply(&second), "widget.test.concert.dev/a configured\n");
    let object = plane.get("widget", "a");
    assert_eq!(object["spec"], json!({"size": 2, "colour": "red"}), "what is no longer applied is gone");
    assert_eq!(object["metadata"]["generation"], 2);
}

#[test]
fn built_in_kinds_are_applied_twice() {
    let Some(plane) = Plane::start() else { return };
    let secret = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"password": value}})
    };
    let role = |verb: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "r", "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": [verb]}]})
    };
    assert_eq!(plane.apply(&secret("one")), "secret/s created\n");
    assert_eq!(plane.apply(&secret("two")), "secret/s configured\n");
    assert_eq!(plane.get("secret", "s")["data"]["password"], "dHdv");
    assert_eq!(plane.apply(&role("get")), "role.rbac.authorization.k8s.io/r created\n");
    assert_eq!(plane.apply(&role("list")), "role.rbac.authorization.k8s.io/r configured\n");
    assert_eq!(plane.get("role", "r")["rules"][0]["verbs"], json!(["list"]));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"},
        "data": {"a": "1", "b": "2"}});
    plane.apply(&map);
    let mut less = map.clone();
    less["data"] = json!({"b": "3"});
    assert_eq!(plane.apply(&less), "configmap/c configured\n");
    assert_eq!(plane.get("configmap", "c")["data"], json!({"b": "3"}));
}

#[test]
fn built_in_kinds_are_applied_on_the_server_twice() {
    let Some(plane) = Plane::start() else { return };
    let apply =
        |object: &Value| plane.kubectl_with(&["apply", "--server-side", "-f", "-"], &object.to_string());
    let secret = |data: Value| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
        "data": data})
    };
    let role = |verb: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "r", "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": [verb]}]})
    };
    let (first, second) = (secret(json!({"a": "b25l", "b": "b25l"})), secret(json!({"a": "dHdv"})));
    for object in [&first, &second, &second] {
        assert_eq!(apply(object), "secret/s serverside-applied\n");
    }
    let stored = plane.get("secret", "s");
    assert_eq!(stored["data"], json!({"a": "dHdv"}), "what is no longer applied is gone");
    apply(&second);
    assert_eq!(plane.get("secret", "s"), stored, "nothing changed");
    for verb in ["get", "list"] {
        assert_eq!(apply(&role(verb)), "role.rbac.authorization.k8s.io/r serverside-applied\n");
        assert_eq!(plane.get("role", "r")["rules"], role(verb)["rules"]);
    }
}

#[test]
fn lists_are_taken_and_their_items_checked() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}});
    let list = |size: serde_json::Value| {
        let items = [map.clone(), widget("a", &json!({"size": size}))];
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    };
    assert_eq!(plane.apply(&list(json!(1))), "configmap/m created\nwidget.test.concert.dev/a created\n");
    let error = plane.refused(&["apply", "-f", "-"], &list(json!("large")).to_string());
    assert!(error.contains("spec.size"), "{error}");
}

#[test]
fn server_side_apply_shares_fields_and_refuses_to_take_them() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    let by = |manager: &str, spec: &serde_json::Value, more: &[&str]| {
        let manager = format!("--field-manager={manager}");
        let arguments = [&["apply", "--server-side", &manager, "-f", "-"], more].concat();
        (arguments.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(), widget("a", spec).to_string())
    };
    let apply = |manager: &str, spec: &serde_json::Value, more: &[&str]| {
        let (arguments, manifest) = by(manager, spec, more);
        plane.kubectl_with(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), &manifest)
    };
    let created = apply("alice", &json!({"size": 1, "parts": [{"name": "x", "count": 1}]}), &[]);
    assert_eq!(created, "widget.test.concert.dev/a serverside-applied\n");
    apply("bob", &json!({"parts": [{"name": "y", "count": 2}]}), &[]);
    assert_eq!(
        plane.get("widget", "a")["spec"]["parts"],
        json!([{"name": "x", "count": 1}, {"name": "y", "count": 2}])
    );

    let (arguments, manifest) = by("bob", &json!({"size": 5}), &[]);
    let refused = plane.refused(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), &manifest);
    assert!(refused.contains("conflict with \"alice\": .spec.size"), "{refused}");
    apply("bob", &json!({"size": 5}), &["--force-conflicts"]);
    let object = plane.get("widget", "a");
    assert_eq!(object["spec"]["size"], 5);
    // Bob no longer applies y, and nobody else does; alice still applies x.
    assert_eq!(object["spec"]["parts"], json!([{"name": "x", "count": 1}]));

    let before = plane.get("widget", "a")["metadata"]["resourceVersion"].clone();
    apply("bob", &json!({"size": 5}), &[]);
    assert_eq!(plane.get("widget", "a")["metadata"]["resourceVersion"], before, "nothing changed");
}

#[test]
fn what_breaks_a_rule_is_refused_with_the_field() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    for (spec, part) in [
        (
            json!({"size": 0}),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (json!({"colour": "pink"}), "spec.colour: Unsupported value: \"pink\""),
        (json!({"size": 1000}), "spec: Invalid value:"),
        (json!({"sise": 1}), "unknown field \"spec.sise\""),
    ] {
        let refused = plane.refused(&["apply", "-f", "-"], &widget("a", &spec).to_string());
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!plane.exists("widget", "a"));
    let dry = plane.kubectl_with(
        &["apply", "--dry-run=server", "-f", "-"],
        &widget("a", &json!({"size": 1})).to_string(),
    );
    assert_eq!(dry, "widget.test.concert.dev/a created (server dry run)\n");
    assert!(!plane.exists("widget", "a"));
    let (one, two) = (widget("one", &json!({"size": 1})), widget("two", &json!({"size": 2})));
    let many = format!("{one}\n---\n{two}\n");
    assert_eq!(
        plane.kubectl_with(&["create", "-f", "-"], &many),
        "widget.test.concert.dev/one created\nwidget.test.concert.dev/two created\n"
    );
    let again = plane.refused(&["create", "-f", "-"], &one.to_string());
    assert!(again.contains("widgets.test.concert.dev \"one\" already exists"), "{again}");
}
