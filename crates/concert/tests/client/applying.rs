use serde_json::{Value, json};

use crate::world::{GROUP, World, bucket, definition, documents};

#[test]
fn says_what_became_of_each_object() {
    let Some(world) = World::enter("applying") else { return };
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}});
    let many = documents(&[bucket("a", 1), config, bucket("b", 2)]);
    let apply = |input: &str| world.run_with(&["apply", "-f", "-"], input).fine();
    assert_eq!(
        apply(&many),
        format!("bucket.{GROUP}/a created\nconfigmap/c created\nbucket.{GROUP}/b created\n")
    );
    assert_eq!(
        apply(&many),
        format!("bucket.{GROUP}/a unchanged\nconfigmap/c unchanged\nbucket.{GROUP}/b unchanged\n")
    );
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [bucket("a", 1), bucket("b", 3)]});
    let dry = world.run_with(&["apply", "-f", "-", "--dry-run"], &list.to_string()).fine();
    let told = format!("bucket.{GROUP}/a unchanged (dry run)\nbucket.{GROUP}/b configured (dry run)\n");
    assert_eq!(dry, told);
    assert_eq!(apply(&list.to_string()), told.replace(" (dry run)", ""));
    assert_eq!(world.kubectl(&["get", "bucket", "b", "-o", "jsonpath={.spec.size}"]), "3");
    let manager =
        world.kubectl(&["get", "bucket", "b", "-o", "jsonpath={.metadata.managedFields[0].manager}"]);
    assert_eq!(manager, "concert");
}

#[test]
fn a_kind_may_be_defined_by_the_document_before() {
    let Some(world) = World::enter("defining") else { return };
    let crate_object =
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Crate", "metadata": {"name": "one"}});
    world.file("manifests/1.yaml", &definition("crates", "Crate", "crt").to_string());
    world.file("manifests/2.yaml", &crate_object.to_string());
    let folder = world.path("manifests");
    let out = world.run(&["apply", "-f", folder.to_str().unwrap()]).fine();
    assert_eq!(
        out,
        format!(
            "customresourcedefinition.apiextensions.k8s.io/crates.{GROUP} created\ncrate.{GROUP}/one created\n"
        )
    );
}

#[test]
fn fields_of_others_are_taken_over_only_by_force() {
    let Some(world) = World::enter("conflicting") else { return };
    let manifest = bucket("shared", 1).to_string();
    let arguments = ["-n", world.namespace, "apply", "--server-side", "--field-manager=other", "-f", "-"];
    world.cluster.kubectl_with(&arguments, &manifest).unwrap();
    let wanted = bucket("shared", 2).to_string();
    let refused = world.run_with(&["apply", "-f", "-"], &wanted);
    refused.fails(
        1,
        &["conflict with \"other\"", ".spec.size", "1 of 1 could not be applied", "--force-conflicts"],
    );
    let out = world.run_with(&["apply", "-f", "-", "--force-conflicts"], &wanted).fine();
    assert_eq!(out, format!("bucket.{GROUP}/shared configured\n"));
}

#[test]
fn what_is_wrong_does_not_keep_the_rest() {
    let Some(world) = World::enter("mistaken") else { return };
    let unknown = json!({"apiVersion": "nowhere.example.com/v1", "kind": "Ghost", "metadata": {"name": "g"}});
    let wrong = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Bucket", "metadata": {"name": "w"}, "spec": {"size": "x"}});
    let ran = world.run_with(&["apply", "-f", "-"], &documents(&[unknown, wrong, bucket("fine", 1)]));
    assert_eq!(ran.out, format!("bucket.{GROUP}/fine created\n"));
    ran.fails(1, &["no Ghost of nowhere.example.com/v1", "spec.size", "2 of 3", "concert api-resources"]);
    let elsewhere =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}});
    let ran = world.run_with(&["apply", "-f", "-", "-n", world.namespace], &elsewhere.to_string());
    ran.fails(1, &["in namespace default, but --namespace says mistaken"]);
    world.run_with(&["apply", "-f", "-"], "a: [").fails(1, &["line 1"]);
    world.run(&["apply", "-f", "/no/such/file"]).fails(1, &["/no/such/file"]);
}

#[test]
fn waits_until_everything_is_ready() {
    let Some(world) = World::enter("readiness") else { return };
    let manifest = bucket("slow", 1).to_string();
    let wait =
        |timeout: &str| world.run_with(&["apply", "-f", "-", "--wait", "--timeout", timeout], &manifest);
    wait("1s").fails(1, &["is not ready after 1 s", &format!("concert explain bucket.{GROUP}/slow")]);
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Available", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    world.report("slow", &json!({ "conditions": ready }));
    assert_eq!(wait("60s").fine(), format!("bucket.{GROUP}/slow unchanged\n"));
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    world.run_with(&["apply", "-f", "-", "--wait"], &config.to_string()).fine();
}

#[test]
fn answers_in_the_form_that_was_asked_for() {
    let Some(world) = World::enter("formed") else { return };
    let out = world.run_with(&["apply", "-f", "-", "-o", "json"], &bucket("a", 1).to_string()).fine();
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["metadata"]["namespace"], "formed");
    let out = world.run_with(&["apply", "-f", "-", "-o", "name"], &bucket("a", 1).to_string()).fine();
    assert_eq!(out, format!("bucket.{GROUP}/a\n"));
}
