//! Bad input: the documented code, and nothing changed.

use serde_json::{Value, json};

use crate::stage::{Stage, data, section};

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let stage = Stage::with_entries().await;
    stage.put(&section("rt-1", "spec"), data(json!({"a": 1}))).await.expect(200);
    let before = stage.store.newest().await.unwrap();
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let large = "x".repeat(1024 * 1024);
    for (method, path, body, code) in [
        ("GET", "/entries/none", Value::Null, 404),
        ("GET", "/entries/..", Value::Null, 404),
        ("GET", &section("none", "spec"), Value::Null, 404),
        ("GET", &section("rt-1", "none"), Value::Null, 404),
        ("GET", &section("rt-1", "Not A Name").replace(' ', "%20"), Value::Null, 404),
        ("PUT", &section("none", "spec"), data(json!({})), 404),
        ("PUT", &section("rt-1", "Bad.Name"), data(json!({})), 422),
        ("PUT", &section("rt-1", "spec"), Value::Null, 422),
        ("PUT", &section("rt-1", "spec"), json!([]), 422),
        ("PUT", &section("rt-1", "spec"), json!({}), 422),
        ("PUT", &section("rt-1", "spec"), data(json!("text")), 422),
        ("PUT", &section("rt-1", "spec"), data(json!([1])), 422),
        ("PUT", &section("rt-1", "spec"), json!({"data": {}, "more": 1}), 422),
        ("PUT", &section("rt-1", "spec"), data(json!({"a": deep})), 422),
        ("PUT", &section("rt-1", "spec"), data(json!({"a": large})), 413),
        ("PUT", &section("rt-1", "network"), data(json!({"vnet_name": 7})), 422),
        ("PUT", &section("rt-1", "network"), data(json!({})), 422),
        ("DELETE", &section("rt-1", "none"), Value::Null, 404),
        ("POST", "/entries", json!({"id": "rt-1", "kind": "runtime"}), 409),
        ("POST", "/entries", json!({"id": "A.b", "kind": "runtime"}), 422),
        ("POST", "/entries", json!({"id": "rt-9"}), 422),
        ("POST", "/entries", json!({"id": "rt-9", "kind": "runtime", "labels": {"a b": "c"}}), 422),
        ("POST", "/entries", json!({"id": "rt-9", "kind": "runtime", "sections": []}), 422),
        ("PATCH", "/entries/rt-1", json!({"paused": "yes"}), 422),
        ("DELETE", "/entries/none", Value::Null, 404),
        ("GET", "/entries?limit=0", Value::Null, 422),
        ("GET", "/entries?sort=name", Value::Null, 422),
        ("GET", "/entries?label=a%20b%20c", Value::Null, 422),
        ("GET", "/entries?continue=nonsense", Value::Null, 422),
        ("GET", "/grants/none", Value::Null, 404),
        ("GET", "/section-types/none", Value::Null, 404),
        ("PUT", "/section-types/Bad.Name", json!({}), 422),
        ("GET", "/nothing", Value::Null, 404),
        ("GET", "/entries/rt-1/sections", Value::Null, 404),
        ("POST", "/entries/rt-1", json!({}), 405),
        ("PUT", "/watch", json!({}), 405),
    ] {
        let reply = stage.ask(&stage.admin, method, path, body).await;
        assert_eq!(reply.code, code, "{method} {path}: {}", reply.json());
        assert!(reply.json()["detail"].is_string() || reply.json()["detail"].is_array());
    }
    assert_eq!(stage.store.newest().await.unwrap(), before);
}

#[tokio::test]
async fn a_body_beyond_all_bounds_is_not_even_read() {
    let stage = Stage::with_entries().await;
    let huge = data(json!({"a": "x".repeat(4 * 1024 * 1024)}));
    assert_eq!(stage.put(&section("rt-1", "spec"), huge).await.code, 413);
}

#[tokio::test]
async fn a_writer_without_a_grant_changes_nothing() {
    let stage = Stage::with_entries().await;
    let before = stage.store.newest().await.unwrap();
    let shoot = stage.work("rt-1", "shoot").await;
    for (name, method) in [("network", "PUT"), ("credentials", "PUT"), ("free", "PUT"), ("network", "DELETE")]
    {
        let reply = stage.ask(&shoot, method, &section("rt-1", name), data(json!({"vnet_name": "a"}))).await;
        let said = format!("reconciler 'shoot' has no grant to write section '{name}'");
        assert_eq!(reply.detail(403), said);
    }
    assert_eq!(stage.store.newest().await.unwrap(), before);
}
