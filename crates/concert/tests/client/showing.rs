use serde_json::{Value, json};

use crate::world::{GROUP, World, bucket, documents};

fn fill(world: &World) {
    let mut labelled = bucket("b", 22);
    labelled["metadata"]["labels"] = json!({"tier": "db"});
    labelled["spec"]["region"] = json!("eu");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c",
        "annotations": {"evil": "\u{1b}[2Jgone"}}});
    world.run_with(&["apply", "-f", "-"], &documents(&[bucket("a", 1), labelled, config])).fine();
}

#[test]
fn columns_are_those_of_the_server() {
    let Some(world) = World::enter("columns") else { return };
    fill(&world);
    for words in [
        &["buckets"][..],
        &["bkt"],
        &["Bucket"],
        &["buckets.client.concert.dev"],
        &["bucket/a", "bucket/b"],
        &["bucket", "a", "b"],
    ] {
        let out = world.run(&[&["get"], words].concat()).fine();
        assert_eq!(out, "NAME   SIZE\na      1\nb      22\n", "{words:?}");
    }
    assert_eq!(world.run(&["get", "bkt", "-l", "tier=db"]).fine(), "NAME   SIZE\nb      22\n");
    assert_eq!(
        world.run(&["get", "bkt", "-o", "wide", "-l", "tier=db"]).fine(),
        "NAME   SIZE   REGION\nb      22     eu\n"
    );
    let all = world.run(&["get", "buckets", "-A"]).fine();
    assert!(
        all.starts_with("NAMESPACE") && all.lines().any(|it| it.split_whitespace().eq(["columns", "a", "1"])),
        "{all}"
    );
    let mixed = world.run(&["get", "bucket/a", "configmap/c"]).fine();
    let expected = format!("bucket.{GROUP}/a");
    assert!(
        mixed.contains(&expected) && mixed.contains("\n\nNAME") && mixed.contains("configmap/c"),
        "{mixed}"
    );
    let category = world.run(&["get", "things"]).fine();
    assert!(category.contains("22"), "{category}");
    let none = world.run(&["get", "buckets", "-l", "tier=none"]);
    assert_eq!((none.out.as_str(), none.said.as_str(), none.code), ("", "nothing found\n", Some(0)));
}

#[test]
fn objects_are_shown_as_they_are() {
    let Some(world) = World::enter("whole") else { return };
    fill(&world);
    let one: Value = serde_json::from_str(&world.run(&["get", "bucket/a", "-o", "json"]).fine()).unwrap();
    assert_eq!((&one["kind"], &one["spec"]["size"]), (&json!("Bucket"), &json!(1)));
    let list: Value = serde_json::from_str(&world.run(&["get", "buckets", "-o", "json"]).fine()).unwrap();
    assert_eq!((&list["kind"], &list["items"][1]["kind"]), (&json!("List"), &json!("Bucket")));
    assert_eq!(
        world.run(&["get", "buckets", "-o", "name"]).fine(),
        format!("bucket.{GROUP}/a\nbucket.{GROUP}/b\n")
    );
    // What is printed can be applied again, and nothing in it steers a terminal.
    let yaml = world.run(&["get", "buckets", "-o", "yaml"]).fine();
    assert!(yaml.contains("kind: Bucket"), "{yaml}");
    let again = world.run_with(&["apply", "-f", "-", "--force-conflicts"], &yaml).fine();
    assert!(again.lines().all(|it| it.ends_with("unchanged")), "{again}");
    let evil = world.run(&["get", "configmap/c", "-o", "yaml"]).fine();
    assert!(evil.contains("[2Jgone") && !evil.contains('\u{1b}'), "{evil}");
}

#[test]
fn what_is_not_there_is_said_with_something_to_try() {
    let Some(world) = World::enter("absent") else { return };
    world.run(&["get", "bucket/none"]).fails(1, &["\"none\" not found", "concert get KIND"]);
    world.run(&["get", "ghosts"]).fails(1, &["no kind that is called ghosts", "concert api-resources"]);
    world.run(&["get", "bucket/a", "b"]).fails(1, &["b is not KIND/NAME"]);
    assert_eq!(world.run(&["get", "bucket/none", "--ignore-not-found", "-o", "json"]).fine(), "");
    assert_eq!(world.run(&["get", "bucket/none", "--ignore-not-found"]).fine(), "");
    let usage = world.run(&["get"]);
    assert_eq!(usage.code, Some(64));
    assert!(usage.said.contains("\nhint: concert --help\n"), "{}", usage.said);
    assert_eq!(world.run(&["get", "buckets", "-o", "xml"]).code, Some(64));
}

#[test]
fn kinds_are_listed() {
    let Some(world) = World::enter("kinds") else { return };
    let out = world.run(&["api-resources"]).fine();
    let has = |words: &[&str]| out.lines().any(|it| it.split_whitespace().eq(words.iter().copied()));
    assert!(has(&["buckets", "bkt", "client.concert.dev/v1", "true", "Bucket"]), "{out}");
    assert!(has(&["namespaces", "ns", "v1", "false", "Namespace"]), "{out}");
    assert!(!out.contains("/status"), "{out}");
    let ours = world.run(&["api-resources", "--api-group", GROUP, "-o", "name"]).fine();
    assert!(ours.lines().any(|it| it == format!("buckets.{GROUP}")), "{ours}");
    let ours = world.run(&["api-resources", "--api-group", GROUP, "-o", "json"]).fine();
    let ours: Value = serde_json::from_str(&ours).unwrap();
    let resources = ours["resources"].as_array().unwrap();
    assert!(resources.iter().any(|it| it["name"] == "buckets" && it["kind"] == "Bucket"), "{ours}");
    let yaml = world.run(&["api-resources", "--api-group", GROUP, "-o", "yaml"]).fine();
    assert!(yaml.contains("kind: APIResourceList"), "{yaml}");
}

#[test]
fn events_of_an_object_are_shown() {
    let Some(world) = World::enter("events") else { return };
    fill(&world);
    let event = |name: &str, about: &str| {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "events"},
            "involvedObject": {"apiVersion": format!("{GROUP}/v1"), "kind": "Bucket", "namespace": "events", "name": about},
            "type": "Warning", "reason": "CannotCreate", "message": "quota exceeded", "count": 3,
            "source": {"component": "managed"}, "lastTimestamp": "2026-01-01T00:00:00Z"})
    };
    for (name, about) in [("a.1", "a"), ("b.1", "b")] {
        world.cluster.kubectl_with(&["create", "-f", "-"], &event(name, about).to_string()).unwrap();
    }
    let out = world.run(&["events", "bucket/a"]).fine();
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(out.contains("Warning   CannotCreate   bucket/a   3       managed   quota exceeded"), "{out}");
    assert_eq!(world.run(&["events"]).fine().lines().count(), 3);
    assert_eq!(world.run(&["events", "bucket/a", "-o", "name"]).fine(), "event/a.1\n");
    let explained = world.run(&["explain", "bucket/a"]);
    assert!(explained.said.contains("does not explain"), "{}", explained.said);
    let out = explained.fine();
    assert!(
        out.starts_with(
            "Bucket events/a exists; nothing is known that works on it.\n  warning  CannotCreate"
        ),
        "{out}"
    );
}

#[test]
fn an_explanation_needs_no_more_than_the_object() {
    let Some(world) = World::enter("explaining") else { return };
    fill(&world);
    let condition = json!([{"type": "Ready", "status": "False", "reason": "Creating", "message": "80 %"},
        {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "create failed: quota"}]);
    world.report("a", &json!({ "conditions": condition }));
    let out = world.run(&["explain", "bucket/a"]).fine();
    assert_eq!(out, "Bucket explaining/a is not ready: create failed: quota.\n");
    let json: Value =
        serde_json::from_str(&world.run(&["explain", "bucket", "a", "-o", "json"]).fine()).unwrap();
    assert_eq!(json["isReady"], false);
    world.run(&["explain", "bucket/none"]).fails(1, &["not found"]);
    world.run(&["history", "bucket/a"]).fails(1, &["keeps no history", "concert events bucket/a"]);
}
