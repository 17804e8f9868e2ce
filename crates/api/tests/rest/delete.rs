//! `/api/v1/resources`: the way out.

use serde_json::json;

use crate::stage::{RESOURCES, Stage, record, spec};

const ONE: &str = "/api/v1/resources/1";

#[tokio::test]
async fn what_is_to_go_is_seen_until_it_is_gone() {
    let stage = Stage::new().await;
    stage.record("a").await;
    stage.make_ready("a").await;
    let said = stage.delete(ONE).await.expect(202);
    assert_eq!(said, json!({"message": "Resource marked for deletion", "resource_id": 1}));
    let shown = stage.get(ONE).await.expect(200);
    assert_eq!(shown["status"], "deleting");
    assert!(shown["deleted_at"].is_string() && shown["next_reconcile_time"].is_string());
    let told: Vec<_> = shown["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["type"], it["status"], it["reason"]]))
        .collect();
    assert_eq!(told, [json!(["Ready", "Unknown", "Deleting"]), json!(["Reconciling", "False", "Deleting"])]);
    let listed = stage.get(&format!("{RESOURCES}?status=deleting")).await.expect(200);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    stage.delete(ONE).await.expect(202);
    assert_eq!(stage.get(ONE).await.expect(200), shown);
}

#[tokio::test]
async fn the_last_finalizer_lets_it_go() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let path = format!("{ONE}/finalizers");
    stage.put(&path, &json!({"add": ["ext"]})).await.expect(200);
    stage.delete(ONE).await.expect(202);
    let shown = stage.put(&path, &json!({"remove": ["dns_record"]})).await.expect(200);
    assert_eq!((&shown["status"], &shown["finalizers"]), (&json!("deleting"), &json!(["ext"])));
    assert_eq!(stage.put(&path, &json!({"add": ["more"]})).await.refusal().0, 409);
    let said = stage.put(&path, &json!({"remove": ["ext"]})).await.expect(200);
    assert_eq!(said, json!({"message": "All finalizers removed, resource deleted", "resource_id": 1}));
    assert_eq!(stage.get(ONE).await.refusal(), (404, "Resource not found".into()));
    assert_eq!(stage.get(RESOURCES).await.expect(200), json!([]));
}

#[tokio::test]
async fn what_is_to_go_is_not_changed_any_more() {
    let stage = Stage::new().await;
    stage.record("a").await;
    stage.delete(ONE).await.expect(202);
    let mut changed = spec();
    changed["value"] = json!("1");
    assert_eq!(stage.put(ONE, &json!({"spec": changed})).await.refusal().0, 409);
    stage.send("POST", &format!("{ONE}/reconcile"), &[], "").await.expect(202);
}

#[tokio::test]
async fn history_outlives_the_resource() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let details = json!({"success": true, "resource_type_name": "DnsRecord", "resource_type_version": "v1", "name": "a"});
    stage.attempt(1, details).await;
    stage.delete(ONE).await.expect(202);
    stage.put(&format!("{ONE}/finalizers"), &json!({"remove": ["dns_record"]})).await.expect(200);
    assert_eq!(stage.get(ONE).await.code, 404);
    let rows = stage.get(&format!("{ONE}/history")).await.expect(200);
    assert_eq!((&rows[0]["resource_id"], &rows[0]["phase"]), (&json!(1), &json!("completed")));
}

#[tokio::test]
async fn without_finalizers_it_is_gone_at_once() {
    let stage = Stage::new().await;
    stage.post(RESOURCES, &record("a")).await.expect(201);
    stage.put(&format!("{ONE}/finalizers"), &json!({"remove": ["dns_record"]})).await.expect(200);
    stage.delete(ONE).await.expect(202);
    assert_eq!(stage.get(ONE).await.code, 404);
}
