//! `/api/v1/users`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{PASSWORD, Stage, fields};

#[tokio::test]
async fn a_user_is_made_read_changed_and_suspended() {
    let stage = Stage::new().await;
    let body =
        json!({"username": "ann", "password": PASSWORD, "email": "ann@example.com", "display_name": "Ann"});
    let made = stage.post("/users", body).await.expect(201);
    let expected = json!({
        "id": 2, "username": "ann", "email": "ann@example.com", "display_name": "Ann", "source": "manual",
        "is_admin": false, "status": "active", "custom_role_id": null, "created_at": "2026-01-01T00:00:00.000000Z",
        "updated_at": "2026-01-01T00:00:00.000000Z", "last_login_at": null, "last_synced_at": null,
    });
    assert_eq!(made, expected);
    assert_eq!(stage.get("/users/2").await.expect(200), expected);
    stage.clock.advance(Duration::from_secs(60));
    let changed =
        stage.put("/users/2", json!({"email": "a@example.com", "is_admin": null})).await.expect(200);
    assert_eq!((&changed["email"], &changed["display_name"]), (&json!("a@example.com"), &json!("Ann")));
    assert_eq!(changed["updated_at"], "2026-01-01T00:01:00.000000Z");
    assert_eq!(stage.put("/users/2", json!({})).await.expect(200), changed);
    assert_eq!(stage.delete("/users/2").await.expect(204), Value::Null);
    assert_eq!(stage.get("/users/2").await.expect(200)["status"], "suspended");
    stage.delete("/users/2").await.expect(204);
}

#[tokio::test]
async fn what_is_wrong_with_a_user_is_named() {
    let stage = Stage::new().await;
    let wrong = stage.post("/users", json!({"username": "ann", "password": "x"})).await.expect(422);
    assert_eq!(
        wrong["detail"],
        json!([{"type": "string_too_short", "loc": ["body", "password"],
        "msg": "String should have at least 8 characters", "input": "x", "ctx": {"min_length": 8}}])
    );
    for name in ["Ann", "-ann", "ann-", "a b", "", "system:admin", &"a".repeat(64), "a.b"] {
        let wrong = stage.post("/users", json!({"username": name, "password": PASSWORD})).await;
        assert_eq!(wrong.fields(), fields(&[("value_error", "username")]), "{name}");
    }
    let long = "x".repeat(1025);
    let cases = [
        (json!({}), vec![("missing", "username"), ("missing", "password")]),
        (json!({"username": "a", "password": long}), vec![("string_too_long", "password")]),
        (
            json!({"username": "a", "password": PASSWORD, "is_admin": "yes"}),
            vec![("bool_parsing", "is_admin")],
        ),
        (
            json!({"username": "a", "password": PASSWORD, "custom_role_id": 9}),
            vec![("value_error", "custom_role_id")],
        ),
        (
            json!({"username": "a", "password": PASSWORD, "custom_role_id": -1}),
            vec![("value_error", "custom_role_id")],
        ),
        (
            json!({"username": "a", "password": PASSWORD, "custom_role_id": "x"}),
            vec![("int_parsing", "custom_role_id")],
        ),
        (json!({"username": "a", "password": PASSWORD, "email": 7}), vec![("string_type", "email")]),
    ];
    for (body, expected) in cases {
        assert_eq!(stage.post("/users", body.clone()).await.fields(), fields(&expected), "{body}");
    }
    let wrong = stage.put("/users/1", json!({"status": "asleep", "custom_role_id": 9})).await;
    assert_eq!(wrong.fields(), fields(&[("enum", "status"), ("value_error", "custom_role_id")]));
    assert_eq!(stage.get("/users/abc").await.fields(), fields(&[("int_parsing", "user_id")]));
    stage.user("ann", json!({})).await;
    let twice = stage.post("/users", json!({"username": "ann", "password": PASSWORD})).await;
    assert_eq!(twice.detail(409), "User 'ann' already exists");
    for path in ["/users/99", "/users/0", "/users/-1", "/users/99999999999999999999"] {
        assert_eq!(stage.get(path).await.detail(404), "User not found", "{path}");
        assert_eq!(stage.put(path, json!({})).await.detail(404), "User not found", "{path}");
        assert_eq!(stage.delete(path).await.detail(404), "User not found", "{path}");
    }
    assert_eq!(stage.post("/users/ldap-sync", Value::Null).await.detail(503), "LDAP is not configured");
    stage.post("/users/1", json!({})).await.expect(405);
    stage.get("/users/1/nothing").await.expect(404);
}

#[tokio::test]
async fn users_are_listed_by_what_they_are() {
    let stage = Stage::new().await;
    stage.user("ann", json!({})).await;
    let bob = stage.user("bob", json!({"is_admin": true})).await;
    stage.delete(&format!("/users/{bob}")).await.expect(204);
    let names = async |query: &str| {
        let all = stage.get(&format!("/users{query}")).await.expect(200);
        all.as_array()
            .unwrap()
            .iter()
            .map(|it| it["username"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["admin", "ann", "bob"]);
    assert_eq!(names("?is_admin=true").await, ["admin", "bob"]);
    assert_eq!(names("?status=suspended").await, ["bob"]);
    assert_eq!(names("?source=manual&is_admin=false").await, ["ann"]);
    assert_eq!(names("?source=ldap").await, [""; 0]);
    assert_eq!(names("?limit=1").await, ["admin"]);
    assert_eq!(stage.get("/users?source=nowhere").await.fields(), fields(&[("enum", "source")]));
    assert_eq!(stage.get("/users?status=asleep").await.fields(), fields(&[("enum", "status")]));
    assert_eq!(stage.get("/users?limit=-1").await.fields(), fields(&[("greater_than_equal", "limit")]));
}

#[tokio::test]
async fn only_administrators_see_or_change_users() {
    let stage = Stage::new().await;
    stage.user("ann", json!({})).await;
    let token = stage.login("ann", PASSWORD).await;
    for (method, path) in [
        ("POST", "/users"),
        ("GET", "/users"),
        ("GET", "/users/1"),
        ("PUT", "/users/1"),
        ("DELETE", "/users/1"),
        ("POST", "/users/ldap-sync"),
        ("PUT", "/users/1/password"),
        ("POST", "/custom-roles"),
        ("GET", "/custom-roles"),
        ("GET", "/custom-roles/1"),
        ("PUT", "/custom-roles/1"),
        ("DELETE", "/custom-roles/1"),
        ("POST", "/custom-roles/1/permissions"),
        ("PUT", "/custom-roles/1/permissions/1"),
        ("DELETE", "/custom-roles/1/permissions/1"),
        ("POST", "/admission-webhooks"),
        ("PUT", "/admission-webhooks/1"),
        ("DELETE", "/admission-webhooks/1"),
    ] {
        let body = if method == "GET" { Value::Null } else { json!({}) };
        let path = format!("/api/v1{path}");
        let refused = stage.ask(&token, method, &path, body.clone()).await;
        assert_eq!(refused.detail(403), "Admin role required", "{method} {path}");
        let refused = stage.ask("", method, &path, body).await;
        assert_eq!(refused.detail(401), "Missing or invalid Authorization header", "{method} {path}");
    }
}

#[tokio::test]
async fn a_role_can_be_given_and_taken() {
    let stage = Stage::new().await;
    let role = stage.post("/custom-roles", json!({"name": "r"})).await.expect(201)["id"].clone();
    let made =
        stage.post("/users", json!({"username": "ann", "password": PASSWORD, "custom_role_id": role})).await;
    assert_eq!(made.expect(201)["custom_role_id"], role);
    let kept = stage.put("/users/2", json!({"email": "a@example.com"})).await.expect(200);
    assert_eq!(kept["custom_role_id"], role);
    let taken = stage.put("/users/2", json!({"custom_role_id": null})).await.expect(200);
    assert_eq!(taken["custom_role_id"], Value::Null);
    stage.put("/users/2", json!({"custom_role_id": role})).await.expect(200);
    stage.delete(&format!("/custom-roles/{role}")).await.expect(204);
    assert_eq!(stage.get("/users/2").await.expect(200)["custom_role_id"], Value::Null);
}

#[tokio::test]
async fn a_user_made_with_kubectl_is_one() {
    let stage = Stage::new().await;
    let users = "/apis/concert.dev/v1alpha1/users";
    let object = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "User", "metadata": {"name": "ann"}, "spec": {}});
    stage.ask(&stage.admin, "POST", users, object).await.expect(201);
    let shown = stage.get("/users/2").await.expect(200);
    assert_eq!((&shown["username"], &shown["status"]), (&json!("ann"), &json!("active")));
    stage.try_login("ann", "").await.expect(401);
    stage.put("/users/2/password", json!({"password": PASSWORD})).await.expect(204);
    stage.login("ann", PASSWORD).await;
}
