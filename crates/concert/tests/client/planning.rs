use serde_json::{Value, json};

use crate::world::{GROUP, World, bucket, definition, documents};

#[test]
fn a_plan_says_what_would_change_and_touches_nothing() {
    let Some(world) = World::enter("planning") else { return };
    let secret = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "stringData": {"password": value}})
    };
    world
        .run_with(&["apply", "-f", "-"], &documents(&[bucket("same", 1), bucket("edited", 1), secret("old")]))
        .fine();
    let wanted = [
        bucket("same", 1),
        bucket("edited", 4),
        bucket("new", 2),
        secret("geheim"),
        definition("boxes", "Box", "bx"),
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Box", "metadata": {"name": "first"}}),
    ];
    let file = world.file("wanted.json", &documents(&wanted));
    let before = world.kubectl(&["get", "buckets,secrets,configmaps", "-o", "yaml"]);
    let ran = world.run(&["plan", "-f", &file]);
    assert_eq!(ran.code, Some(2), "{}", ran.said);
    assert!(ran.said.contains("has no providers to ask"), "{}", ran.said);
    let text = &ran.out;
    assert!(
        text.starts_with("none Bucket planning/same\nupdate Bucket planning/edited\n  spec.size: 1 -> 4\n"),
        "{text}"
    );
    assert!(
        text.contains("create Bucket planning/new\n") && text.contains("  spec.size: (none) -> 2\n"),
        "{text}"
    );
    assert!(text.contains("data.password: (sensitive) -> (sensitive)") && !text.contains("geheim"), "{text}");
    assert!(text.contains("unknown Box first (its kind is defined by this plan)"), "{text}");
    assert!(text.ends_with("5 of 6 would change\n"), "{text}");
    assert_eq!(world.kubectl(&["get", "buckets,secrets,configmaps", "-o", "yaml"]), before);

    let ran = world.run(&["plan", "-f", &file, "-o", "json"]);
    assert_eq!(ran.code, Some(2), "{}", ran.said);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        json["items"][1]["store"]["changes"][0],
        json!({"path": "spec.size", "from": 1, "to": 4, "isSensitive": false})
    );
    let ran = world.run(&["plan", "-f", &file, "-o", "yaml"]);
    assert_eq!(ran.code, Some(2), "{}", ran.said);
    assert!(ran.out.contains("path: spec.size") && !ran.out.contains("geheim"), "{}", ran.out);
    assert_eq!(world.run(&["plan", "-f", &file, "-o", "table"]).out, *text);
    for word in ["name", "wide"] {
        world.run(&["plan", "-f", &file, "-o", word]).fails(64, &["FILE.plan", &format!("./{word}")]);
    }
    for word in ["yaml", "table", "name", "wide"] {
        assert!(!std::path::Path::new(word).exists(), "{word}");
    }
    let same = world.file("same.json", &bucket("same", 1).to_string());
    let ran = world.run(&["plan", "-f", &same]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "none Bucket planning/same\nnothing would change\n"));
}

#[test]
fn a_saved_plan_is_refused_once_something_has_moved() {
    let Some(world) = World::enter("saving") else { return };
    let apply = |object: Value| world.run_with(&["apply", "-f", "-"], &object.to_string()).fine();
    apply(bucket("a", 1));
    let file = world.file("wanted.json", &documents(&[bucket("a", 2), bucket("b", 1)]));
    let path = world.path("x.plan");
    let plan = path.to_str().unwrap();
    let save = || world.run(&["plan", "-f", &file, "-o", plan]).fine();
    save();
    let told = world.run(&["plan", "-f", &file, "-o", plan, "--detailed-exitcode"]);
    assert_eq!(told.code, Some(2), "{}", told.said);
    let done = world.run(&["apply", "--plan", plan]).fine();
    assert_eq!(done, format!("bucket.{GROUP}/a configured\nbucket.{GROUP}/b created\n"));
    // What was new exists now, and what was changed has changed.
    world
        .run(&["apply", "--plan", plan])
        .fails(1, &["has moved: Bucket a has changed; Bucket b exists now", "concert plan -f"]);
    save();
    world.run(&["delete", "bucket/b"]).fine();
    world.run(&["apply", "--plan", plan]).fails(1, &["Bucket b is gone"]);
    apply(bucket("b", 1));
    world.run(&["apply", "--plan", plan]).fails(1, &["Bucket b is another one now"]);
    world.run(&["apply", "--plan", &file]).fails(1, &["no saved plan", "concert plan -f"]);
}

#[test]
fn what_was_to_be_made_is_refused_when_it_is_there_by_then() {
    let Some(world) = World::enter("twice") else { return };
    let file = world.file("wanted.json", &documents(&[bucket("a", 1), bucket("a", 2)]));
    let path = world.path("x.plan");
    let plan = path.to_str().unwrap();
    world.run(&["plan", "-f", &file, "-o", plan]).fine();
    let said = ["Bucket a: it exists now, and was to be made", "1 of 2 could not be applied"];
    world.run(&["apply", "--plan", plan]).fails(1, &said);
    assert_eq!(world.kubectl(&["get", "bucket", "a", "-o", "jsonpath={.spec.size}"]), "1");
}

#[test]
fn fields_of_others_are_named_and_taken_over_only_on_request() {
    let Some(world) = World::enter("conflicts") else { return };
    let other = world.file("other.json", &bucket("a", 1).to_string());
    world.kubectl(&["apply", "--server-side", "--field-manager=ann", "-f", &other]);
    let file = world.file("wanted.json", &bucket("a", 2).to_string());
    let path = world.path("x.plan");
    let plan = path.to_str().unwrap();
    let text = world.run(&["plan", "-f", &file, "-o", plan]).fine();
    assert!(text.contains("  spec.size: 1 -> 2\n  conflict: conflict with \"ann\""), "{text}");
    assert!(text.contains(".spec.size; to take it over: --force-conflicts\n"), "{text}");
    world
        .run(&["apply", "-f", &file])
        .fails(1, &["conflict with \"ann\"", ".spec.size", "--force-conflicts"]);
    world
        .run(&["apply", "--plan", plan])
        .fails(1, &["conflict with \"ann\"", ".spec.size", "--force-conflicts"]);
    let done = world.run(&["apply", "--plan", plan, "--force-conflicts"]).fine();
    assert_eq!(done, format!("bucket.{GROUP}/a configured\n"));
}
