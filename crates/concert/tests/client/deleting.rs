use serde_json::{Value, json};

use crate::world::{GROUP, World, bucket, documents, eventually};

#[test]
fn waits_until_objects_are_gone() {
    let Some(world) = World::enter("deleting") else { return };
    let mut held = bucket("held", 1);
    held["metadata"]["finalizers"] = json!(["example.com/keep"]);
    world.run_with(&["apply", "-f", "-"], &documents(&[bucket("free", 1), held])).fine();
    assert_eq!(world.run(&["delete", "bucket/free"]).fine(), format!("bucket.{GROUP}/free deleted\n"));
    assert!(!world.kubectl(&["get", "buckets", "-o", "name"]).contains("free"));
    let late = world.run(&["delete", "bucket/held", "--timeout", "1s"]);
    late.fails(1, &["is still there after 1 s", &format!("concert explain bucket.{GROUP}/held")]);
    let why = world.run(&["explain", "bucket/held"]).fine();
    assert!(why.contains("waits for the finalizer example.com/keep of example.com"), "{why}");

    let waiting = world.command(&["delete", "bucket/held"]).stdout(std::process::Stdio::null()).spawn();
    let mut waiting = waiting.unwrap();
    world.kubectl(&["patch", "bucket", "held", "--type=merge", "-p", r#"{"metadata":{"finalizers":[]}}"#]);
    let status = eventually("the deletion is over", || waiting.try_wait().unwrap());
    // It may have been gone before it was asked for.
    assert!(matches!(status.code(), Some(0 | 1)));
    world.run(&["delete", "bucket/held"]).fails(1, &["not found"]);
    assert_eq!(world.run(&["delete", "bucket/held", "--ignore-not-found"]).fine(), "");
}

#[test]
fn what_is_meant_must_be_said() {
    let Some(world) = World::enter("choosing") else { return };
    let mut labelled = bucket("b", 1);
    labelled["metadata"]["labels"] = json!({"tier": "db"});
    let manifests = documents(&[bucket("a", 1), labelled, bucket("c", 1)]);
    world.run_with(&["apply", "-f", "-"], &manifests).fine();
    world.run(&["delete", "buckets"]).fails(1, &["which buckets is not said", "--all"]);
    let dry = world.run(&["delete", "bucket/a", "--dry-run"]).fine();
    assert_eq!(dry, format!("bucket.{GROUP}/a deleted (dry run)\n"));
    let named = world.run(&["delete", "bucket/a", "--dry-run", "-o", "name"]).fine();
    assert_eq!(named, format!("bucket.{GROUP}/a\n"));
    let whole = world.run(&["delete", "bucket/a", "--dry-run", "-o", "json"]).fine();
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!((&whole["kind"], &whole["metadata"]["name"]), (&json!("Bucket"), &json!("a")));
    let yaml = world.run(&["delete", "bucket/a", "--dry-run", "-o", "yaml"]).fine();
    assert!(yaml.starts_with("---\n") && yaml.contains("kind: Bucket"), "{yaml}");
    assert_eq!(
        world.run(&["delete", "buckets", "-l", "tier=db"]).fine(),
        format!("bucket.{GROUP}/b deleted\n")
    );
    assert_eq!(
        world.run_with(&["delete", "-f", "-", "--ignore-not-found", "--wait=false"], &manifests).fine(),
        format!("bucket.{GROUP}/c deleted\nbucket.{GROUP}/a deleted\n")
    );
    let nothing = world.run(&["delete", "buckets", "--all"]);
    assert_eq!((nothing.code, nothing.said.as_str()), (Some(0), "nothing found\n"));
}
