//! There is always a way in.

use serde_json::{Value, json};

use crate::stage::{PASSWORD, Stage};

const LAST: &str = "Cannot remove the last active administrator";

#[tokio::test]
async fn the_last_administrator_stays() {
    let stage = Stage::new().await;
    assert_eq!(stage.delete("/users/1").await.detail(409), LAST);
    assert_eq!(stage.put("/users/1", json!({"is_admin": false})).await.detail(409), LAST);
    assert_eq!(stage.put("/users/1", json!({"status": "suspended"})).await.detail(409), LAST);
    let kube = "/apis/concert.dev/v1alpha1/users/admin";
    stage.ask(&stage.admin, "DELETE", kube, Value::Null).await.expect(403);
    let mut object = stage.ask(&stage.admin, "GET", kube, Value::Null).await.expect(200);
    object["spec"]["isAdmin"] = json!(false);
    stage.ask(&stage.admin, "PUT", kube, object).await.expect(403);
    stage.put("/users/1", json!({"email": "a@example.com"})).await.expect(200);
    stage.login("admin", PASSWORD).await;
}

#[tokio::test]
async fn another_administrator_or_a_token_is_a_way_in() {
    let stage = Stage::new().await;
    let ann = stage.user("ann", json!({"is_admin": true})).await;
    let token = stage.login("ann", PASSWORD).await;
    stage.delete("/users/1").await.expect(204);
    let last = stage.ask(&token, "DELETE", &format!("/api/v1/users/{ann}"), Value::Null).await;
    assert_eq!(last.detail(409), LAST);
    stage.token("ann", &["system:masters"]).await;
    stage.token("robot", &["staff"]).await;
    stage.token("admin", &["system:masters"]).await;
    let last = stage.ask(&token, "DELETE", &format!("/api/v1/users/{ann}"), Value::Null).await;
    assert_eq!(last.detail(409), LAST);
    stage.token("robot", &["system:masters"]).await;
    stage.ask(&token, "DELETE", &format!("/api/v1/users/{ann}"), Value::Null).await.expect(204);
}

#[tokio::test]
async fn two_administrators_cannot_suspend_each_other() {
    let stage = Stage::new().await;
    stage.user("ann", json!({"is_admin": true})).await;
    let token = stage.login("ann", PASSWORD).await;
    let (one, other) = tokio::join!(
        stage.ask(&stage.admin, "DELETE", "/api/v1/users/2", Value::Null),
        stage.ask(&token, "DELETE", "/api/v1/users/1", Value::Null),
    );
    let mut codes = [one.code, other.code];
    codes.sort_unstable();
    assert!(codes == [204, 401] || codes == [204, 409], "{codes:?}");
}
