//! Server-side apply.

use serde_json::{Value, json};

use crate::shared::client::Reply;
use crate::stage::{Stage, WIDGETS, widget};

async fn apply(stage: &Stage, query: &str, object: &Value) -> Reply {
    let path = format!("{WIDGETS}/a?{query}");
    stage.patch(&path, "apply-patch+yaml", object).await
}

#[tokio::test]
async fn the_first_apply_creates_and_the_second_changes_nothing() {
    let stage = Stage::new().await;
    let created = apply(&stage, "fieldManager=one", &widget("a")).await.expect(201);
    let entry = &created["metadata"]["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["operation"]), (&json!("one"), &json!("Apply")));
    assert_eq!(entry["fieldsV1"], json!({"f:spec": {"f:size": {}}}));
    let again = apply(&stage, "fieldManager=one", &widget("a")).await.expect(200);
    assert_eq!(again, created);
}

#[tokio::test]
async fn yaml_is_taken_as_the_name_of_the_type_says() {
    let stage = Stage::new().await;
    let yaml = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  size: 3\n";
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{WIDGETS}/a?fieldManager=one");
    assert_eq!(stage.send("PATCH", &path, &headers, yaml).await.expect(201)["spec"]["size"], 3);
}

#[tokio::test]
async fn another_manager_must_force() {
    let stage = Stage::new().await;
    apply(&stage, "fieldManager=one", &widget("a")).await.expect(201);
    let mut other = widget("a");
    other["spec"]["size"] = json!(2);
    let refused = apply(&stage, "fieldManager=two", &other).await.expect(409);
    assert_eq!(refused["reason"], "Conflict");
    assert_eq!(refused["message"], "Apply failed with 1 conflict: conflict with \"one\": .spec.size");
    assert_eq!(
        refused["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".spec.size"}])
    );
    let forced = apply(&stage, "fieldManager=two&force=true", &other).await.expect(200);
    assert_eq!(forced["spec"]["size"], 2);
}

#[tokio::test]
async fn an_apply_must_say_who_applies() {
    let stage = Stage::new().await;
    let (code, reason, message) = apply(&stage, "", &widget("a")).await.refusal();
    assert_eq!((code, &*reason), (422, "Invalid"));
    assert_eq!(
        message,
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
    let long = format!("fieldManager={}", "x".repeat(200));
    assert_eq!(apply(&stage, &long, &widget("a")).await.refusal().0, 422);
}

#[tokio::test]
async fn a_dry_apply_shows_and_does_nothing() {
    let stage = Stage::new().await;
    let shown = apply(&stage, "fieldManager=one&dryRun=All", &widget("a")).await.expect(201);
    assert_eq!(shown["spec"]["size"], 1);
    assert_eq!(stage.get(&format!("{WIDGETS}/a")).await.code, 404);
}

#[tokio::test]
async fn unknown_fields_of_an_apply_are_refused_if_asked() {
    let stage = Stage::new().await;
    let mut object = widget("a");
    object["spec"]["weight"] = json!(1);
    let refused = apply(&stage, "fieldManager=one&fieldValidation=Strict", &object).await;
    assert_eq!(refused.refusal().0, 400);
    let warned = apply(&stage, "fieldManager=one", &object).await;
    assert_eq!(warned.code, 201);
    assert_eq!(warned.warnings(), [r#"299 - "unknown field \"spec.weight\"""#]);
}
