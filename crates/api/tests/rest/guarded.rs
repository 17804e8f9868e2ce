//! With authentication: who may do what, in the words of this door.

use std::time::Duration;

use concert_model::Object;
use concert_store::{By, Delete, PageRequest, Query, Store};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::shared::client::Reply;
use crate::stage::{RESOURCES, Stage, TYPES, dns_type, record};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Lets a user do this to resources of one kind.
async fn allow(stage: &Stage, user: &str, group: &str, verbs: &[&str]) {
    let by = By::actor("test");
    let name = format!("{user}-{}", group.replace('.', "-"));
    let rules = json!([{"apiGroups": [group], "resources": ["*"], "verbs": verbs}]);
    let role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    stage.store.create(Object::from_value(role).unwrap(), &by).await.unwrap();
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    });
    stage.store.create(Object::from_value(binding).unwrap(), &by).await.unwrap();
}

async fn send_as(stage: &Stage, token: &str, method: &str, path: &str, body: &Value) -> Reply {
    let headers = [("authorization", token), ("content-type", "application/json")];
    stage.send(method, path, &headers, body.to_string()).await
}

const NOBODY: &str = "Missing or invalid Authorization header";

#[tokio::test]
async fn nobody_gets_in_without_a_name() {
    let stage = Stage::guarded().await;
    for path in [RESOURCES, TYPES, "/api/v1/resources/abc", "/api/v1/events", "/api/v1/cluster/nodes"] {
        let reply = stage.get(path).await;
        assert_eq!(reply.refusal(), (401, NOBODY.into()), "{path}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    let basic = stage.send("GET", RESOURCES, &[("authorization", "Basic eDp5")], "").await;
    assert_eq!(basic.refusal(), (401, NOBODY.into()));
    let (code, detail) =
        stage.send("GET", RESOURCES, &[("authorization", "Bearer nonsense")], "").await.refusal();
    assert_eq!((code, detail.starts_with("Invalid token: ")), (401, true), "{detail}");
}

#[tokio::test]
async fn probes_and_descriptions_are_for_everybody() {
    let stage = Stage::guarded().await;
    for path in ["/health", "/api/v1/cluster/health"] {
        assert_eq!(stage.get(path).await.expect(200), json!({"status": "ok"}));
    }
    stage.get("/openapi.json").await.expect(200);
    assert_eq!(stage.get("/docs").await.code, 200);
}

#[tokio::test]
async fn administrators_are_those_who_may_define_kinds() {
    let stage = Stage::guarded().await;
    let (admin, jane) = (stage.token("root", &["system:masters"]).await, stage.token("jane", &[]).await);
    let only_admin = (403, "Admin role required".to_owned());
    for (method, path, body) in [
        ("POST", TYPES, dns_type("v2")),
        ("POST", TYPES, json!([])),
        ("PUT", "/api/v1/resource-types/1", json!({})),
        ("DELETE", "/api/v1/resource-types/1", json!({})),
        ("GET", "/api/v1/cluster/nodes", json!({})),
    ] {
        assert_eq!(
            send_as(&stage, &jane, method, path, &body).await.refusal(),
            only_admin,
            "{method} {path}"
        );
    }
    send_as(&stage, &admin, "POST", TYPES, &dns_type("v2")).await.expect(201);
    let nodes = send_as(&stage, &admin, "GET", "/api/v1/cluster/nodes", &json!({})).await.expect(200);
    assert_eq!(
        (&nodes["this_instance_is_leader"], &nodes["nodes"][0]["role"]),
        (&json!(true), &json!("leader"))
    );
    assert_eq!(
        send_as(&stage, &jane, "GET", TYPES, &json!({})).await.expect(200).as_array().unwrap().len(),
        2
    );
}

#[tokio::test]
async fn rights_are_by_type_version_and_operation() {
    let stage = Stage::guarded().await;
    let (admin, jane) = (stage.token("root", &["system:masters"]).await, stage.token("jane", &[]).await);
    send_as(&stage, &admin, "POST", TYPES, &dns_type("v2")).await.expect(201);
    let refused = (403, "Insufficient permissions".to_owned());
    assert_eq!(send_as(&stage, &jane, "POST", RESOURCES, &record("a")).await.refusal(), refused);
    allow(&stage, "jane", "no8s.concert.dev", &["create", "get", "list"]).await;
    let created = send_as(&stage, &jane, "POST", RESOURCES, &record("a")).await.expect(201);
    let mut second = record("a");
    second["resource_type_version"] = json!("v2");
    assert_eq!(send_as(&stage, &jane, "POST", RESOURCES, &second).await.refusal(), refused);
    send_as(&stage, &admin, "POST", RESOURCES, &second).await.expect(201);
    let one = format!("{RESOURCES}/{}", created["id"]);
    send_as(&stage, &jane, "GET", &one, &json!({})).await.expect(200);
    for (method, path) in [
        ("PUT", one.clone()),
        ("DELETE", one.clone()),
        ("PUT", format!("{one}/finalizers")),
        ("POST", format!("{one}/reconcile")),
    ] {
        assert_eq!(
            send_as(&stage, &jane, method, &path, &json!({})).await.refusal(),
            refused,
            "{method} {path}"
        );
    }
    let two = format!("{RESOURCES}/2");
    for path in [two.clone(), format!("{two}/history"), format!("{two}/outputs"), format!("{two}/events")] {
        assert_eq!(send_as(&stage, &jane, "GET", &path, &json!({})).await.refusal(), refused, "{path}");
    }
    let listed = send_as(&stage, &jane, "GET", &format!("{RESOURCES}?limit=1"), &json!({})).await.expect(200);
    assert_eq!(listed[0]["resource_type_version"], "v1", "what may not be read does not use up the page");
}

#[tokio::test]
async fn a_type_that_is_not_there_is_told_to_who_may_use_any() {
    let stage = Stage::guarded().await;
    let jane = stage.token("jane", &[]).await;
    let mut body = record("a");
    body["resource_type_name"] = json!("None");
    assert_eq!(send_as(&stage, &jane, "POST", RESOURCES, &body).await.refusal().0, 403);
    allow(&stage, "jane", "no8s.concert.dev", &["create"]).await;
    assert_eq!(send_as(&stage, &jane, "POST", RESOURCES, &body).await.refusal().0, 400);
}

#[tokio::test]
async fn everybody_hears_of_what_they_may_read() {
    let stage = Stage::guarded().await;
    let (admin, jane) = (stage.token("root", &["system:masters"]).await, stage.token("jane", &[]).await);
    send_as(&stage, &admin, "POST", TYPES, &dns_type("v2")).await.expect(201);
    allow(&stage, "jane", "v2.no8s.concert.dev", &["list"]).await;
    let headers = [("authorization", &*jane), ("accept", "text/event-stream")];
    let mut stream = stage.start("GET", "/api/v1/events", &headers, "").await.into_body();
    send_as(&stage, &admin, "POST", RESOURCES, &record("a")).await.expect(201);
    let mut second = record("b");
    second["resource_type_version"] = json!("v2");
    send_as(&stage, &admin, "POST", RESOURCES, &second).await.expect(201);
    let hello = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(&hello[..], b": connected\n");
    let event = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    let event = String::from_utf8(event.to_vec()).unwrap();
    assert!(event.contains("\"resource_name\":\"b\""), "{event}");
}

#[tokio::test]
async fn plugins_are_for_those_who_may_list_workers() {
    let stage = Stage::guarded().await;
    let jane = stage.token("jane", &[]).await;
    let refused = (403, "Insufficient permissions".to_owned());
    for path in ["actions", "inputs", "reconcilers"] {
        let path = format!("/api/v1/plugins/{path}");
        assert_eq!(send_as(&stage, &jane, "GET", &path, &json!({})).await.refusal(), refused);
    }
    allow(&stage, "jane", "concert.dev", &["list"]).await;
    send_as(&stage, &jane, "GET", "/api/v1/plugins/actions", &json!({})).await.expect(200);
}

#[tokio::test]
async fn acting_as_somebody_else_works_at_this_door_too() {
    let stage = Stage::guarded().await;
    let jane = stage.token("jane", &[]).await;
    allow(&stage, "bob", "no8s.concert.dev", &["get", "list"]).await;
    let headers = [("authorization", jane.as_str()), ("impersonate-user", "bob")];
    let (code, detail) = stage.send("GET", RESOURCES, &headers, "").await.refusal();
    assert_eq!(code, 403);
    assert!(detail.contains("cannot impersonate resource \"users\""), "{detail}");
    allow(&stage, "jane", "", &["impersonate"]).await;
    stage.send("GET", RESOURCES, &headers, "").await.expect(200);
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let stage = Stage::guarded().await;
    let root = stage.token("root", &["system:masters"]).await;
    send_as(&stage, &root, "POST", RESOURCES, &record("a")).await.expect(201);
    for path in ["/api/v1/events", "/api/v1/resources/1/events"] {
        let token = stage.token("jane", &["system:masters"]).await;
        let mut body = stage.start("GET", path, &[("authorization", &token)], "").await.into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), ": connected\n");
        // As long as the token is there, it goes on.
        stage.clock.advance(Duration::from_secs(16));
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), ": heartbeat\n");
        let all = Query::all(concert_api::auth::token_kind());
        for token in stage.store.list(&all, &PageRequest::whole()).await.unwrap().items {
            if token.decode().spec()["user"] == "jane" {
                stage.store.delete(token.key(), &Delete::default(), &By::actor("test")).await.unwrap();
            }
        }
        stage.clock.advance(Duration::from_secs(3));
        assert!(body.frame().await.is_none(), "{path}");
    }
}
