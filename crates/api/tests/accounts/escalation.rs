//! Nobody makes themselves or others more than they are, whichever door they use.

use serde_json::{Value, json};

use crate::stage::{PASSWORD, Stage};

const USERS: &str = "/apis/concert.dev/v1alpha1/users";
const ROLES: &str = "/apis/concert.dev/v1alpha1/customroles";

/// Somebody who may write users and roles, and nothing else.
async fn clerk(stage: &Stage) -> String {
    stage.user("clerk", json!({})).await;
    let verbs = ["get", "list", "create", "update", "patch", "delete"];
    stage
        .allow(
            "clerk",
            json!([{"apiGroups": ["concert.dev"], "resources": ["users", "customroles"], "verbs": verbs}]),
        )
        .await;
    stage.login("clerk", PASSWORD).await
}

#[tokio::test]
async fn who_may_write_users_makes_no_administrators() {
    let stage = Stage::new().await;
    let token = clerk(&stage).await;
    let user = |spec: Value| json!({"apiVersion": "concert.dev/v1alpha1", "kind": "User", "metadata": {"name": "ann"}, "spec": spec});
    for spec in [json!({"isAdmin": true}), json!({"customRoleId": 1}), json!({})] {
        stage.ask(&token, "POST", USERS, user(spec.clone())).await.expect(403);
    }
    let admin = json!({"username": "ann", "password": PASSWORD, "is_admin": true});
    stage.ask(&token, "POST", "/api/v1/users", admin).await.expect(403);
    let own = json!({"spec": {"isAdmin": true}});
    let path = format!("{USERS}/clerk");
    let object = stage.ask(&token, "GET", &path, Value::Null).await.expect(200);
    let mut more = object.clone();
    more["spec"]["isAdmin"] = own["spec"]["isAdmin"].clone();
    stage.ask(&token, "PUT", &path, more).await.expect(403);
    stage.ask(&token, "PUT", "/api/v1/users/2", json!({"is_admin": true})).await.expect(403);
    stage.ask(&token, "PUT", "/api/v1/users/1/password", json!({"password": PASSWORD})).await.expect(403);
    // What gives no rights may be written.
    let harmless = stage.ask(&token, "PUT", "/api/v1/users/1", json!({"email": "a@example.com"})).await;
    assert_eq!(harmless.expect(200)["email"], "a@example.com");
    assert_eq!(stage.get("/users/2").await.expect(200)["is_admin"], false);
}

#[tokio::test]
async fn who_may_write_roles_gives_away_only_what_they_have() {
    let stage = Stage::new().await;
    let token = clerk(&stage).await;
    let role = |permissions: Value| {
        json!({"apiVersion": "concert.dev/v1alpha1", "kind": "CustomRole",
        "metadata": {"name": "r"}, "spec": {"permissions": permissions}})
    };
    stage.ask(&token, "POST", ROLES, role(json!([{"operations": ["DELETE"]}]))).await.expect(403);
    let body = json!({"name": "r", "permissions": [{}]});
    stage.ask(&token, "POST", "/api/v1/custom-roles", body).await.expect(403);
    let empty = stage.ask(&token, "POST", ROLES, role(json!([]))).await.expect(201);
    let id = empty["metadata"]["labels"]["no8s.concert.dev/id"].as_str().unwrap();
    let path = format!("/api/v1/custom-roles/{id}/permissions");
    stage.ask(&token, "POST", &path, json!({})).await.expect(403);
    assert_eq!(stage.get(&format!("/custom-roles/{id}")).await.expect(200)["permissions"], json!([]));
}

#[tokio::test]
async fn numbers_cannot_be_chosen_or_changed() {
    let stage = Stage::new().await;
    let label = "no8s.concert.dev/id";
    let object = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "User",
        "metadata": {"name": "ann", "labels": {label: "1"}}, "spec": {}});
    let made = stage.ask(&stage.admin, "POST", USERS, object).await.expect(201);
    assert_eq!(made["metadata"]["labels"][label], "2");
    let mut other = made.clone();
    other["metadata"]["labels"][label] = json!("1");
    stage.ask(&stage.admin, "PUT", &format!("{USERS}/ann"), other).await.expect(422);
}
