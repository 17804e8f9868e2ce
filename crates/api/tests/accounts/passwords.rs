//! Changing passwords.

use serde_json::{Value, json};

use crate::stage::{PASSWORD, Stage, fields};

const OWN: &str = "/api/v1/auth/password";
const NEW: &str = "battery staple";

#[tokio::test]
async fn ones_own_password_needs_the_old_one_and_ends_old_tokens() {
    let stage = Stage::new().await;
    stage.user("ann", json!({})).await;
    let token = stage.login("ann", PASSWORD).await;
    let change = async |body: Value| stage.ask(&token, "PUT", OWN, body).await;
    assert_eq!(change(json!({"password": NEW})).await.detail(400), "current_password is required");
    let wrong = change(json!({"password": NEW, "current_password": "wrong"})).await;
    assert_eq!(wrong.detail(403), "Current password is incorrect");
    let short = change(json!({"password": "x", "current_password": PASSWORD})).await;
    assert_eq!(short.fields(), fields(&[("string_too_short", "password")]));
    stage.ask(&token, "GET", "/api/v1/auth/me", Value::Null).await.expect(200);
    change(json!({"password": NEW, "current_password": PASSWORD})).await.expect(204);
    let old = stage.ask(&token, "GET", "/api/v1/auth/me", Value::Null).await;
    assert_eq!(old.detail(401), "Invalid token: the password was changed");
    stage.try_login("ann", PASSWORD).await.expect(401);
    stage.login("ann", NEW).await;
}

#[tokio::test]
async fn by_number_it_is_the_same_for_oneself_and_an_administrator_needs_none() {
    let stage = Stage::new().await;
    let ann = stage.user("ann", json!({})).await;
    let bob = stage.user("bob", json!({})).await;
    let token = stage.login("ann", PASSWORD).await;
    let path = |id: u64| format!("/api/v1/users/{id}/password");
    let body = json!({"password": NEW, "current_password": PASSWORD});
    let other = stage.ask(&token, "PUT", &path(bob), body.clone()).await;
    assert_eq!(other.detail(403), "Admin role required");
    stage.ask(&token, "PUT", &path(99), body.clone()).await.expect(403);
    stage.ask(&token, "PUT", &path(ann), json!({"password": NEW})).await.expect(400);
    stage.ask(&token, "PUT", &path(ann), body).await.expect(204);
    stage.login("ann", NEW).await;
    stage.put(&format!("/users/{bob}/password"), json!({"password": NEW})).await.expect(204);
    stage.login("bob", NEW).await;
    stage.try_login("bob", PASSWORD).await.expect(401);
    let missing = stage.put("/users/99/password", json!({"password": NEW})).await;
    assert_eq!(missing.detail(404), "User not found");
}

#[tokio::test]
async fn a_token_for_a_name_is_not_the_person() {
    let stage = Stage::new().await;
    stage.user("ann", json!({})).await;
    let opaque = stage.token("ann", &[]).await;
    let body = json!({"password": NEW, "current_password": PASSWORD});
    stage.ask(&opaque, "PUT", OWN, body.clone()).await.expect(404);
    stage.ask(&opaque, "PUT", "/api/v1/users/2/password", body).await.expect(403);
}

#[tokio::test]
async fn guessing_the_old_password_is_slowed_down_too() {
    let stage = Stage::new().await;
    stage.user("ann", json!({})).await;
    let token = stage.login("ann", PASSWORD).await;
    let body = json!({"password": NEW, "current_password": "wrong"});
    for _ in 0..10 {
        stage.ask(&token, "PUT", OWN, body.clone()).await.expect(403);
    }
    stage.ask(&token, "PUT", OWN, body).await.expect(429);
}
