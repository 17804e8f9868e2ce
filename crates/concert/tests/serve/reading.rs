//! `kubectl get`, `describe`, `explain`, `api-resources`.

use serde_json::{Value, json};

use crate::plane::{Plane, widget};

fn columns(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Something that happened to an object.
fn event(about: &Value) -> Value {
    let metadata = &about["metadata"];
    let now = &metadata["creationTimestamp"];
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "painted", "namespace": "default"},
        "involvedObject": {"apiVersion": about["apiVersion"], "kind": about["kind"], "name": metadata["name"],
            "namespace": metadata["namespace"], "uid": metadata["uid"]},
        "type": "Normal", "reason": "Painted", "message": "it is red now", "source": {"component": "painter"},
        "firstTimestamp": now, "lastTimestamp": now, "count": 1})
}

#[test]
fn objects_are_shown_in_every_form() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    for (name, size) in [("a", 1), ("b", 2), ("c", 3)] {
        plane.apply(&widget(name, &json!({"size": size})));
    }
    plane.kubectl(&["label", "widget", "a", "b", "tier=low"]);
    plane.kubectl(&["create", "namespace", "other"]);
    let mut elsewhere = widget("d", &json!({"size": 4}));
    elsewhere["metadata"]["namespace"] = json!("other");
    plane.apply(&elsewhere);

    let table = plane.kubectl(&["get", "wd"]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(columns(lines[0]), ["NAME", "SIZE", "AGE"]);
    assert_eq!(columns(lines[1])[..2], ["a", "1"]);
    assert_eq!(lines.len(), 4);
    let wide = plane.kubectl(&["get", "widgets", "-o", "wide"]);
    assert_eq!(columns(wide.lines().next().unwrap()), ["NAME", "SIZE", "COLOUR", "AGE"]);
    let everywhere = plane.kubectl(&["get", "widgets", "-A"]);
    assert_eq!(columns(everywhere.lines().next().unwrap()), ["NAMESPACE", "NAME", "SIZE", "AGE"]);
    assert_eq!(everywhere.lines().count(), 5);
    assert_eq!(plane.kubectl(&["get", "widgets", "-l", "tier=low", "-o", "name"]).lines().count(), 2);
    assert_eq!(plane.kubectl(&["get", "widgets", "-l", "tier notin (low)", "-o", "name"]).lines().count(), 1);
    let chosen = plane.kubectl(&["get", "widgets", "--field-selector", "metadata.name=b", "-o", "name"]);
    assert_eq!(chosen, "widget.test.concert.dev/b\n");
    assert_eq!(plane.kubectl(&["get", "widget", "c", "-o", "jsonpath={.spec.size}"]), "3");
    let yaml = plane.kubectl(&["get", "widget", "c", "-o", "yaml"]);
    assert!(yaml.contains("kind: Widget\n") && yaml.contains("  size: 3\n"), "{yaml}");
    let list: Value = serde_json::from_str(&plane.kubectl(&["get", "widgets", "-o", "json"])).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
    let sorted = plane.kubectl(&["get", "widgets", "--sort-by=.spec.size", "-o", "name", "--chunk-size=1"]);
    assert_eq!(sorted.lines().count(), 3);
    assert_eq!(plane.kubectl(&["get", "all", "-o", "name"]).lines().count(), 3, "by its category");
    assert_eq!(plane.kubectl(&["get", "widgets", "-n", "empty"]), "");
    let missing = plane.refused(&["get", "widget", "x"], "");
    assert!(missing.contains("(NotFound): widgets.test.concert.dev \"x\" not found"), "{missing}");
    let bad = plane.refused(&["get", "widgets", "-l", "a=b=c"], "");
    assert!(bad.contains("(BadRequest)") && bad.contains("a=b=c"), "{bad}");
}

#[test]
fn objects_are_followed() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    plane.apply(&widget("a", &json!({"size": 1})));
    let mut follower = plane.follow(&["get", "widgets", "-w"]);
    assert_eq!(columns(&follower.line()), ["NAME", "SIZE", "AGE"]);
    assert_eq!(columns(&follower.line())[..2], ["a", "1"]);
    plane.apply(&widget("a", &json!({"size": 7})));
    assert_eq!(columns(&follower.line())[..2], ["a", "7"]);
    plane.apply(&widget("b", &json!({"size": 2})));
    assert_eq!(columns(&follower.line())[..2], ["b", "2"]);
}

#[test]
fn kinds_are_described_and_explained() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    plane.apply(&widget("a", &json!({"size": 1})));
    plane.apply(&widget("b", &json!({"size": 1})));
    let none = plane.kubectl(&["describe", "widget", "b"]);
    assert!(none.contains("Name:         b") && none.contains("Size:"), "{none}");
    assert!(none.lines().any(|line| columns(line) == ["Events:", "<none>"]), "{none}");
    plane.kubectl_with(&["create", "-f", "-"], &event(&plane.get("widget", "a")).to_string());
    let described = plane.kubectl(&["describe", "widget", "a"]);
    let row = described.lines().find(|line| columns(line).first() == Some(&"Normal"));
    let row = columns(row.unwrap_or_else(|| panic!("no event in {described}")));
    assert_eq!((row[1], row[3..].join(" ").as_str()), ("Painted", "painter it is red now"));
    let explained = plane.kubectl(&["explain", "widget.spec"]);
    assert!(explained.contains("What is wanted of the widget."), "{explained}");
    assert!(explained.contains("size") && explained.contains("<integer>"), "{explained}");
    let size = plane.kubectl(&["explain", "widgets.spec.size"]);
    assert!(size.contains("How large it is."), "{size}");
    let resources = plane.kubectl(&["api-resources"]);
    let row = resources.lines().find(|line| line.starts_with("widgets ")).unwrap();
    assert_eq!(columns(row), ["widgets", "wd", "test.concert.dev/v1", "true", "Widget"]);
    assert!(resources.lines().any(|line| columns(line)[0] == "secrets"), "{resources}");
    assert!(plane.kubectl(&["api-versions"]).lines().any(|it| it == "test.concert.dev/v1"));
    let version: Value = serde_json::from_str(&plane.kubectl(&["version", "-o", "json"])).unwrap();
    assert!(version["serverVersion"]["gitVersion"].is_string(), "{version}");
}
