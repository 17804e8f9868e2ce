//! Patches that are no apply.

use serde_json::json;

use crate::stage::{Stage, WIDGETS, definition};

#[tokio::test]
async fn a_merge_patch_lays_over_and_removes() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let path = format!("{WIDGETS}/a");
    let patch = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"size": null, "colour": "red"}});
    let patched = stage.patch(&path, "merge-patch+json", &patch).await.expect(200);
    assert_eq!(patched["spec"], json!({"colour": "red"}));
    assert_eq!(patched["metadata"]["labels"], json!({"x": "y"}));
    assert_eq!(patched["metadata"]["generation"], 2);
    let stale = json!({"metadata": {"resourceVersion": "1"}, "spec": {"size": 9}});
    let (code, reason, _) = stage.patch(&path, "merge-patch+json", &stale).await.refusal();
    assert_eq!((code, &*reason), (409, "Conflict"));
}

#[tokio::test]
async fn a_json_patch_tests_before_it_changes() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    let path = format!("{WIDGETS}/a");
    let version = &created["metadata"]["resourceVersion"];
    let patch = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": "/spec/size", "value": 5},
    ]);
    let patched = stage.patch(&path, "json-patch+json", &patch).await.expect(200);
    assert_eq!(patched["spec"]["size"], 5);
    let (code, reason, _) = stage.patch(&path, "json-patch+json", &patch).await.refusal();
    assert_eq!((code, &*reason), (422, "Invalid"));
    let malformed = stage.patch(&path, "json-patch+json", &json!([{"op": "jump"}])).await.refusal();
    assert_eq!((malformed.0, &*malformed.1), (400, "BadRequest"));
}

#[tokio::test]
async fn strategic_patches_are_for_built_in_kinds_only() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let (code, reason, message) =
        stage.patch(&format!("{WIDGETS}/a"), "strategic-merge-patch+json", &json!({})).await.refusal();
    assert_eq!((code, &*reason), (415, "UnsupportedMediaType"));
    assert_eq!(
        message,
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
    let secrets = "/api/v1/namespaces/default/secrets";
    stage.post(secrets, &json!({"metadata": {"name": "s"}, "data": {"a": "YQ=="}})).await.expect(201);
    let patch = json!({"data": {"b": "Yg=="}});
    let patched =
        stage.patch(&format!("{secrets}/s"), "strategic-merge-patch+json", &patch).await.expect(200);
    assert_eq!(patched["data"], json!({"a": "YQ==", "b": "Yg=="}));
}

#[tokio::test]
async fn patches_of_other_types_and_options_are_refused() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let path = format!("{WIDGETS}/a");
    assert_eq!(stage.patch(&path, "json", &json!({})).await.refusal().0, 415);
    assert_eq!(stage.patch(&path, "merge-patch+json", &json!([])).await.refusal().0, 400);
    let forced = stage.patch(&format!("{path}?force=true"), "merge-patch+json", &json!({})).await.refusal();
    assert_eq!((forced.0, &*forced.1), (422, "Invalid"));
    assert!(forced.2.contains("force: Forbidden: may not be specified for non-apply patch"), "{}", forced.2);
    let missing = stage.patch(&format!("{WIDGETS}/b"), "merge-patch+json", &json!({})).await.refusal();
    assert_eq!(missing.0, 404);
    let dry =
        stage.patch(&format!("{path}?dryRun=All"), "merge-patch+json", &json!({"spec": {"size": 7}})).await;
    assert_eq!(dry.expect(200)["spec"]["size"], 7);
    assert_eq!(stage.get(&path).await.json()["spec"]["size"], 1);
}

#[tokio::test]
async fn a_patch_in_another_version_is_answered_in_it() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let path = "/apis/example.com/v1beta1/namespaces/default/widgets/a";
    let patched = stage.patch(path, "merge-patch+json", &json!({"spec": {"size": 4}})).await.expect(200);
    assert_eq!(
        (&patched["apiVersion"], &patched["spec"]["size"]),
        (&json!("example.com/v1beta1"), &json!(4))
    );
}

#[tokio::test]
async fn a_patch_knows_the_fields_of_the_version_it_is_sent_to() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    let mut changed = definition();
    let schema = &mut changed["spec"]["versions"][1]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["later"] = json!({"type": "string"});
    schema["properties"]["status"]["properties"]["seen"] = json!({"type": "integer"});
    let versions = json!({"spec": {"versions": changed["spec"]["versions"]}});
    stage.patch(path, "merge-patch+json", &versions).await.expect(200);

    let path = "/apis/example.com/v1beta1/namespaces/default/widgets/a";
    let strict = format!("{path}?fieldValidation=Strict");
    let merge = json!({"spec": {"later": "x"}});
    let merged = stage.patch(&strict, "merge-patch+json", &merge).await.expect(200);
    assert_eq!(merged["spec"], json!({"size": 1, "later": "x"}));
    let operations = json!([
        {"op": "test", "path": "/apiVersion", "value": "example.com/v1beta1"},
        {"op": "replace", "path": "/spec/later", "value": "y"},
    ]);
    let operated = stage.patch(&strict, "json-patch+json", &operations).await.expect(200);
    assert_eq!(operated["spec"], json!({"size": 1, "later": "y"}));
    let observed = json!({"status": {"seen": 3}});
    let told = stage.patch(&format!("{path}/status"), "merge-patch+json", &observed).await.expect(200);
    assert_eq!((&told["status"], &told["spec"]["later"]), (&json!({"seen": 3}), &json!("y")));
    let wrong = json!({"spec": {"later": 1}});
    assert_eq!(stage.patch(path, "merge-patch+json", &wrong).await.refusal().0, 422);
}
