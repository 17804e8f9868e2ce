//! `kubectl edit`, `patch`, `label`, `annotate`, `replace`, `diff`.

use serde_json::{Value, json};

use crate::plane::{Plane, widget};

#[test]
fn objects_are_changed_in_every_way() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    plane.apply(&widget("a", &json!({"size": 1})));
    let patched = "widget.test.concert.dev/a patched\n";
    let merge = r#"{"spec":{"size":2}}"#;
    assert_eq!(plane.kubectl(&["patch", "widget", "a", "--type=merge", "-p", merge]), patched);
    let again = plane.kubectl(&["patch", "widget", "a", "--type=merge", "-p", merge]);
    assert_eq!(again, "widget.test.concert.dev/a patched (no change)\n");
    let operations =
        r#"[{"op":"test","path":"/spec/size","value":2},{"op":"replace","path":"/spec/size","value":3}]"#;
    assert_eq!(plane.kubectl(&["patch", "widget", "a", "--type=json", "-p", operations]), patched);
    assert_eq!(plane.get("widget", "a")["spec"]["size"], 3);
    let unfit = plane.refused(&["patch", "widget", "a", "--type=json", "-p", operations], "");
    let why = "The Widget \"a\" is invalid: patch: Forbidden: operation '/0' failed at path '/spec/size'";
    assert!(unfit.starts_with(why), "{unfit}");
    let strategic = plane.refused(&["patch", "widget", "a", "--type=strategic", "-p", "{}"], "");
    assert!(strategic.contains("not supported") || strategic.contains("unsupported"), "{strategic}");

    assert_eq!(plane.kubectl(&["label", "widget", "a", "x=y"]), "widget.test.concert.dev/a labeled\n");
    assert_eq!(plane.kubectl(&["label", "widget", "a", "x-"]), "widget.test.concert.dev/a unlabeled\n");
    assert_eq!(plane.kubectl(&["annotate", "widget", "a", "n=1"]), "widget.test.concert.dev/a annotated\n");
    assert_eq!(plane.get("widget", "a")["metadata"]["annotations"]["n"], "1");

    let mut object = plane.get("widget", "a");
    let stale = object.clone();
    object["spec"]["size"] = json!(4);
    let replaced = plane.kubectl_with(&["replace", "-f", "-"], &object.to_string());
    assert_eq!(replaced, "widget.test.concert.dev/a replaced\n");
    let refused = plane.refused(&["replace", "-f", "-"], &stale.to_string());
    assert!(refused.contains("Conflict") && refused.contains("modified"), "{refused}");

    let file = plane.file("a.json");
    std::fs::write(&file, widget("a", &json!({"size": 9})).to_string()).unwrap();
    let output = plane.command(&["diff", "-f"]).arg(&file).output().unwrap();
    let (said, talk) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{talk}");
    for line in ["-  size: 4", "+  size: 9"] {
        assert!(said.lines().any(|it| it == line), "{line:?} is not in\n{said}\n{talk}");
    }
    assert_eq!(plane.get("widget", "a")["spec"]["size"], 4, "a diff changes nothing");
}

#[test]
fn an_editor_changes_an_object() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    plane.apply(&widget("a", &json!({"size": 1})));
    let mut command = plane.command(&["edit", "widget", "a"]);
    let output = command.env("KUBE_EDITOR", "sed -i 's/size: 1/size: 8/'").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, "widget.test.concert.dev/a edited\n", "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(plane.get("widget", "a")["spec"]["size"], 8);
}

#[test]
fn status_is_written_apart_from_the_rest() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    plane.apply(&widget("a", &json!({"size": 1})));
    let status = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]},"spec":{"size":5}}"#;
    let ready = plane.waiting(&["wait", "--for=condition=Ready", "widget/a", "--timeout=60s"]);
    plane.kubectl(&["patch", "widget", "a", "--subresource=status", "--type=merge", "-p", status]);
    let met = "widget.test.concert.dev/a condition met\n";
    assert_eq!(ready.end(), met);
    let object: Value = plane.get("widget", "a");
    assert_eq!((&object["spec"]["size"], &object["metadata"]["generation"]), (&json!(1), &json!(1)));
    assert_eq!(object["status"]["conditions"][0]["status"], "True");
    let there = plane.kubectl(&["wait", "--for=jsonpath={.spec.size}=1", "widget/a", "--timeout=60s"]);
    assert_eq!(there, met);
}
