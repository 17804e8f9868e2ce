//! Logins, and what their tokens are worth on both doors.

use std::net::SocketAddr;
use std::time::Duration;

use concert_api::auth::{Claims, Gate, Keys};
use concert_model::Timestamp;
use concert_store::Clock;
use serde_json::{Value, json};

use crate::stage::{PASSWORD, Stage, fields};

const KUBE: &str = "/apis/concert.dev/v1alpha1/users";
const ME: &str = "/api/v1/auth/me";

#[tokio::test]
async fn a_login_gives_a_token_that_says_who() {
    let stage = Stage::without_login().await;
    let said = stage.try_login("admin", PASSWORD).await.expect(200);
    assert_eq!((&said["token_type"], &said["username"]), (&json!("bearer"), &json!("admin")));
    assert_eq!(said["is_admin"], true);
    let token = said["access_token"].as_str().unwrap();
    let keys = Keys::new(b"a secret", Duration::from_secs(1));
    let claims = keys.check(token, stage.clock.now()).unwrap();
    assert_eq!((&*claims.sub, claims.is_admin, &*claims.source), ("1", true, "manual"));
    assert_eq!((claims.custom_role_id, claims.exp - claims.iat), (None, 24 * 3600));
    let me = stage.ask(token, "GET", ME, Value::Null).await.expect(200);
    assert_eq!((&me["id"], &me["username"], &me["status"]), (&json!(1), &json!("admin"), &json!("active")));
    assert_eq!(me["last_login_at"], "2026-01-01T00:00:00.000000Z");
    assert!(!me.to_string().contains("argon2"));
}

#[tokio::test]
async fn who_cannot_log_in_hears_the_same_whatever_the_reason() {
    let stage = Stage::new().await;
    let ann = stage.user("ann", json!({})).await;
    let deny = async |name: &str, password: &str| stage.try_login(name, password).await.detail(401);
    let long = "x".repeat(100_000);
    for (name, password) in [
        ("ann", "wrong"),
        ("ann", ""),
        ("bob", PASSWORD),
        ("", PASSWORD),
        ("A b/../c", PASSWORD),
        ("ann", &long),
    ] {
        assert_eq!(deny(name, password).await, "Invalid credentials", "{name}");
    }
    stage.delete(&format!("/users/{ann}")).await.expect(204);
    assert_eq!(deny("ann", PASSWORD).await, "Invalid credentials");
    let wrong = stage.ask("", "POST", "/api/v1/auth/login", json!({"username": "admin"})).await;
    assert_eq!(
        wrong.expect(422)["detail"],
        json!([{"type": "missing", "loc": ["body", "password"],
        "msg": "Field required", "input": {"username": "admin"}}])
    );
    let wrong = stage.ask("", "POST", "/api/v1/auth/login", json!({"username": 7, "password": []})).await;
    assert_eq!(wrong.fields(), fields(&[("string_type", "username"), ("string_type", "password")]));
}

#[tokio::test]
async fn without_a_key_nobody_logs_in() {
    let stage = Stage::without_login().await;
    let gate = Gate::guarded(stage.store.clone(), stage.clock.clone());
    let stage = Stage::with_gate(stage.store, stage.clock, gate, None);
    assert_eq!(stage.try_login("admin", PASSWORD).await.detail(503), "Auth not configured");
}

#[tokio::test]
async fn a_token_works_on_both_doors_until_it_expires() {
    let stage = Stage::new().await;
    stage.ask(&stage.admin, "GET", ME, Value::Null).await.expect(200);
    stage.ask(&stage.admin, "GET", KUBE, Value::Null).await.expect(200);
    stage.clock.advance(Duration::from_secs(24 * 3600));
    assert_eq!(stage.ask(&stage.admin, "GET", ME, Value::Null).await.detail(401), "Token has expired");
    assert_eq!(
        stage.ask(&stage.admin, "GET", KUBE, Value::Null).await.expect(401)["message"],
        "Unauthorized"
    );
}

#[tokio::test]
async fn what_is_no_token_is_named() {
    let stage = Stage::new().await;
    let said = async |token: &str| stage.ask(token, "GET", ME, Value::Null).await.detail(401);
    assert_eq!(said("").await, "Missing or invalid Authorization header");
    assert!(said("nonsense").await.starts_with("Invalid token: "));
    let forged =
        Keys::new(b"another secret", Duration::from_secs(3600)).mint(claims("1", "admin"), stage.clock.now());
    assert_eq!(said(&forged).await, "Invalid token: Signature verification failed");
    let unsigned = "eyJhbGciOiJub25lIn0.e30.";
    assert_eq!(said(unsigned).await, "Invalid token: The specified alg value is not allowed");
    for (id, name) in [("2", "admin"), ("1", "nobody"), ("0", "admin")] {
        let made =
            Keys::new(b"a secret", Duration::from_secs(3600)).mint(claims(id, name), stage.clock.now());
        assert_eq!(said(&made).await, "Invalid token: there is no such user", "{id} {name}");
    }
    assert_eq!(stage.ask("nonsense", "GET", KUBE, Value::Null).await.expect(401)["message"], "Unauthorized");
}

fn claims(id: &str, name: &str) -> Claims {
    Claims {
        sub: id.into(),
        username: name.into(),
        is_admin: true,
        source: "manual".into(),
        custom_role_id: None,
        iat: 0,
        exp: 0,
        pwd: String::new(),
    }
}

#[tokio::test]
async fn the_live_user_counts_and_not_what_the_token_says() {
    let stage = Stage::new().await;
    let ann = stage.user("ann", json!({"is_admin": true})).await;
    let token = stage.login("ann", PASSWORD).await;
    let users = async |token: &str| stage.ask(token, "GET", "/api/v1/users", Value::Null).await;
    users(&token).await.expect(200);
    stage.ask(&token, "GET", KUBE, Value::Null).await.expect(200);
    stage.put(&format!("/users/{ann}"), json!({"is_admin": false})).await.expect(200);
    assert_eq!(users(&token).await.detail(403), "Admin role required");
    stage.ask(&token, "GET", KUBE, Value::Null).await.expect(403);
    stage.put(&format!("/users/{ann}"), json!({"status": "suspended"})).await.expect(200);
    assert_eq!(users(&token).await.detail(401), "Invalid token: the user is suspended");
    stage.ask(&token, "GET", KUBE, Value::Null).await.expect(401);
    stage.put(&format!("/users/{ann}"), json!({"status": "active", "is_admin": true})).await.expect(200);
    users(&token).await.expect(200);
    stage.ask(&stage.admin, "DELETE", &format!("{KUBE}/ann"), Value::Null).await.expect(200);
    assert_eq!(users(&token).await.detail(401), "Invalid token: there is no such user");
    stage.user("ann", json!({"is_admin": true})).await;
    assert_eq!(users(&token).await.detail(401), "Invalid token: there is no such user");
}

#[tokio::test]
async fn an_opaque_token_of_somebody_suspended_is_worth_nothing() {
    let stage = Stage::new().await;
    let ann = stage.user("ann", json!({})).await;
    let opaque = stage.token("ann", &["system:masters"]).await;
    stage.ask(&opaque, "GET", "/api/v1/users", Value::Null).await.expect(200);
    stage.delete(&format!("/users/{ann}")).await.expect(204);
    stage.ask(&opaque, "GET", "/api/v1/users", Value::Null).await.expect(401);
}

#[tokio::test]
async fn an_opaque_token_of_nobody_we_know_has_no_user() {
    let stage = Stage::new().await;
    let opaque = stage.token("robot", &["system:masters"]).await;
    assert_eq!(stage.ask(&opaque, "GET", ME, Value::Null).await.detail(404), "User not found");
}

#[tokio::test]
async fn who_guesses_has_to_wait() {
    let stage = Stage::new().await;
    stage.user("ann", json!({})).await;
    let from: SocketAddr = "192.0.2.1:1000".parse().unwrap();
    let attempt = async |from: SocketAddr, name: &str, password: &str| {
        let body = json!({"username": name, "password": password});
        stage.ask_from(Some(from), "", "POST", "/api/v1/auth/login", body).await
    };
    for _ in 0..10 {
        attempt(from, "ann", "wrong").await.expect(401);
    }
    let refused = attempt(from, "ann", PASSWORD).await;
    assert_eq!(refused.headers["retry-after"], "30");
    assert_eq!(refused.detail(429), "Too many login attempts");
    let elsewhere: SocketAddr = "192.0.2.2:1000".parse().unwrap();
    attempt(elsewhere, "ann", PASSWORD).await.expect(429);
    attempt(from, "admin", PASSWORD).await.expect(200);
    stage.clock.advance(Duration::from_secs(30));
    attempt(from, "ann", PASSWORD).await.expect(200);
    for _ in 0..10 {
        attempt(from, "nobody", "wrong").await.expect(401);
    }
    attempt(from, "nobody", "wrong").await.expect(429);
}

#[tokio::test]
async fn the_first_administrator_is_made_once() {
    let stage = Stage::without_login().await;
    let first = concert_api::rest::FirstAdmin { username: "other".into(), password: PASSWORD.into() };
    assert!(!stage.accounts.start(Some(&first)).await.unwrap());
    stage.try_login("other", PASSWORD).await.expect(401);
    let short = concert_api::rest::FirstAdmin { username: "other".into(), password: "short".into() };
    assert!(stage.accounts.start(Some(&short)).await.is_err());
    let odd = concert_api::rest::FirstAdmin { username: "Other One".into(), password: PASSWORD.into() };
    assert!(stage.accounts.start(Some(&odd)).await.is_err());
    assert!(!format!("{first:?}").contains(PASSWORD));
    assert_eq!(stage.clock.now(), Timestamp::from_second(1_767_225_600).unwrap());
}

#[tokio::test]
async fn of_two_replicas_that_start_at_once_one_makes_the_first_administrator() {
    let one = Stage::without_users().await;
    let other = Stage::over(one.store.clone(), one.clock.clone());
    let first = concert_api::rest::FirstAdmin { username: "admin".into(), password: PASSWORD.into() };
    let (one_made, other_made) =
        tokio::join!(one.accounts.start(Some(&first)), other.accounts.start(Some(&first)));
    assert_ne!(one_made.unwrap(), other_made.unwrap());
    one.try_login("admin", PASSWORD).await.expect(200);
    other.try_login("admin", PASSWORD).await.expect(200);
}
