//! The status subresource.

use serde_json::json;

use crate::stage::{Stage, WIDGETS};

#[tokio::test]
async fn status_is_written_apart_from_the_rest() {
    let stage = Stage::new().await;
    let mut object = stage.create("a").await;
    let path = format!("{WIDGETS}/a/status");
    object["status"] = json!({"phase": "Ready"});
    object["spec"]["size"] = json!(9);
    let updated = stage.put(&path, &object).await.expect(200);
    assert_eq!((&updated["status"]["phase"], &updated["spec"]["size"]), (&json!("Ready"), &json!(1)));
    assert_eq!(updated["metadata"]["generation"], 1);
    assert_eq!(stage.get(&path).await.expect(200), updated);
    let patch = json!({"status": {"phase": "Gone"}, "spec": {"size": 5}});
    let patched = stage.patch(&path, "merge-patch+json", &patch).await.expect(200);
    assert_eq!((&patched["status"]["phase"], &patched["spec"]["size"]), (&json!("Gone"), &json!(1)));
    let main = stage.patch(&format!("{WIDGETS}/a"), "merge-patch+json", &patch).await.expect(200);
    assert_eq!((&main["status"]["phase"], &main["spec"]["size"]), (&json!("Gone"), &json!(5)));
}

#[tokio::test]
async fn a_status_can_be_applied() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let status = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "status": {"phase": "Ready"}});
    let path = format!("{WIDGETS}/a/status?fieldManager=one");
    let applied = stage.patch(&path, "apply-patch+yaml", &status).await.expect(200);
    assert_eq!(applied["status"], json!({"phase": "Ready"}));
    assert_eq!(applied["spec"], json!({"size": 1}));
}
