//! Deletion and its options.

use serde_json::{Value, json};

use crate::shared::client::Reply;
use crate::stage::{Stage, WIDGETS, widget};

async fn delete_with(stage: &Stage, path: &str, options: &Value) -> Reply {
    stage.send("DELETE", path, &[("content-type", "application/json")], options.to_string()).await
}

async fn finalized(stage: &Stage, name: &str) -> Value {
    let mut object = widget(name);
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    stage.post(WIDGETS, &object).await.expect(201)
}

#[tokio::test]
async fn what_is_gone_is_answered_with_success() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    let path = format!("{WIDGETS}/a");
    let options = json!({"propagationPolicy": "Background"});
    assert_eq!(
        delete_with(&stage, &path, &options).await.expect(200),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": {
            "name": "a", "group": "example.com", "kind": "widgets", "uid": created["metadata"]["uid"]}})
    );
    assert_eq!(stage.delete(&path).await.refusal().0, 404);
}

#[tokio::test]
async fn what_waits_for_finalizers_is_answered_as_it_is() {
    let stage = Stage::new().await;
    finalized(&stage, "a").await;
    let waiting = stage.delete(&format!("{WIDGETS}/a")).await.expect(200);
    assert_eq!(waiting["kind"], "Widget");
    assert_eq!(waiting["metadata"]["deletionTimestamp"], "2026-01-01T00:00:00Z");
}

#[tokio::test]
async fn propagation_is_asked_for_in_the_body_or_the_query() {
    let stage = Stage::new().await;
    for name in ["a", "b", "c"] {
        stage.create(name).await;
    }
    let foreground =
        delete_with(&stage, &format!("{WIDGETS}/a"), &json!({"propagationPolicy": "Foreground"})).await;
    assert_eq!(foreground.expect(200)["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let orphan = stage.delete(&format!("{WIDGETS}/b?propagationPolicy=Orphan")).await;
    assert_eq!(orphan.expect(200)["metadata"]["finalizers"], json!(["orphan"]));
    let old = delete_with(&stage, &format!("{WIDGETS}/c"), &json!({"orphanDependents": true})).await;
    assert_eq!(old.expect(200)["metadata"]["finalizers"], json!(["orphan"]));
}

#[tokio::test]
async fn propagation_that_is_asked_for_again_replaces_what_was() {
    let stage = Stage::new().await;
    finalized(&stage, "a").await;
    let path = format!("{WIDGETS}/a");
    let hold = "example.com/hold";
    for (options, finalizers) in [
        (json!({"propagationPolicy": "Foreground"}), json!([hold, "foregroundDeletion"])),
        (json!({}), json!([hold, "foregroundDeletion"])),
        (json!({"propagationPolicy": "Orphan"}), json!([hold, "orphan"])),
        (json!({"propagationPolicy": "Background"}), json!([hold])),
    ] {
        let waiting = delete_with(&stage, &path, &options).await.expect(200);
        assert_eq!(waiting["metadata"]["finalizers"], finalizers, "{options}");
    }
}

#[tokio::test]
async fn preconditions_hold_or_it_stays() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    let path = format!("{WIDGETS}/a");
    for preconditions in [json!({"uid": "another"}), json!({"resourceVersion": "1"})] {
        let reply = delete_with(&stage, &path, &json!({"preconditions": preconditions})).await;
        assert_eq!((reply.code, &*reply.refusal().1), (409, "Conflict"));
    }
    let metadata = &created["metadata"];
    let right = json!({"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]});
    delete_with(&stage, &path, &json!({"preconditions": right})).await.expect(200);
}

#[tokio::test]
async fn a_dry_run_deletes_nothing() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let path = format!("{WIDGETS}/a");
    stage.delete(&format!("{path}?dryRun=All")).await.expect(200);
    delete_with(&stage, &path, &json!({"dryRun": ["All"]})).await.expect(200);
    stage.get(&path).await.expect(200);
}

#[tokio::test]
async fn malformed_options_are_refused() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let path = format!("{WIDGETS}/a");
    for (options, code) in [
        (json!({"propagationPolicy": "Sideways"}), 422),
        (json!({"propagationPolicy": "Orphan", "orphanDependents": true}), 422),
        (json!({"dryRun": ["Some"]}), 422),
        (json!({"gracePeriodSeconds": -1}), 400),
        (json!({"preconditions": {"name": "a"}}), 400),
        (json!({"kind": "Widget"}), 400),
        (json!({"unheardOf": 1}), 400),
        (json!([]), 400),
    ] {
        assert_eq!(delete_with(&stage, &path, &options).await.refusal().0, code, "{options}");
    }
    let full = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "propagationPolicy": null});
    delete_with(&stage, &path, &full).await.expect(200);
}

#[tokio::test]
async fn a_collection_goes_by_selector() {
    let stage = Stage::new().await;
    for name in ["a", "b"] {
        let mut object = widget(name);
        object["metadata"]["labels"] = json!({"app": name});
        stage.post(WIDGETS, &object).await.expect(201);
    }
    finalized(&stage, "c").await;
    let deleted = stage.delete(&format!("{WIDGETS}?labelSelector=app%3Da")).await.expect(200);
    assert_eq!(deleted["kind"], "WidgetList");
    assert_eq!(deleted["items"].as_array().unwrap().len(), 1);
    let rest = stage.delete(WIDGETS).await.expect(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 2);
    let left = stage.get(WIDGETS).await.expect(200);
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    assert!(left["items"][0]["metadata"]["deletionTimestamp"].is_string());
}
