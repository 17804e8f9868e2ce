//! Bad requests: a Status that clients can switch on, and nothing has changed.

use concert_api::kube::Limits;
use serde_json::json;

use crate::stage::{Stage, WIDGETS, widget};

#[tokio::test]
async fn what_is_not_there_is_named() {
    let stage = Stage::new().await;
    let reply = stage.get(&format!("{WIDGETS}/a")).await;
    assert_eq!(
        reply.expect(404),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "widgets.example.com \"a\" not found", "reason": "NotFound",
            "details": {"name": "a", "group": "example.com", "kind": "widgets"}, "code": 404,
        })
    );
    let secret = stage.get("/api/v1/namespaces/default/secrets/a").await.refusal();
    assert_eq!(secret.2, "secrets \"a\" not found");
    let missing = stage.post("/apis/example.com/v1/namespaces/none/widgets", &widget("a")).await.refusal();
    assert_eq!(missing, (404, "NotFound".into(), "namespaces \"none\" not found".into()));
}

#[tokio::test]
async fn a_name_that_is_taken_is_a_conflict_of_its_own() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let reply = stage.post(WIDGETS, &widget("a")).await.expect(409);
    assert_eq!(reply["reason"], "AlreadyExists");
    assert_eq!(reply["message"], "widgets.example.com \"a\" already exists");
    assert_eq!(reply["details"], json!({"name": "a", "group": "example.com", "kind": "widgets"}));
}

#[tokio::test]
async fn invalid_fields_are_causes() {
    let stage = Stage::new().await;
    let mut object = widget("a");
    object["spec"]["size"] = json!(-1);
    let reply = stage.post(WIDGETS, &object).await.expect(422);
    assert_eq!(reply["reason"], "Invalid");
    let message = reply["message"].as_str().unwrap();
    assert!(
        message.starts_with("Widget.example.com \"a\" is invalid: spec.size: Invalid value: -1"),
        "{message}"
    );
    let details = &reply["details"];
    assert_eq!((&details["name"], &details["group"]), (&json!("a"), &json!("example.com")));
    assert_eq!(details["kind"], "Widget");
    assert_eq!(details["causes"][0]["reason"], "FieldValueInvalid");
    assert_eq!(details["causes"][0]["field"], "spec.size");
}

#[tokio::test]
async fn paths_behind_which_there_is_nothing() {
    let stage = Stage::new().await;
    stage.create("a").await;
    for path in [
        "/nothing",
        "/openapi/v2/api",
        "/api/v2",
        "/apis/nobody.io",
        "/apis/example.com/v2",
        "/apis/example.com/v1/gadgets",
        "/apis/example.com/v1/widgets/a",
        "/apis/example.com/v1/namespaces/default/widgets/a/scale",
        "/api/v1/namespaces/default/namespaces",
        "/api/v1/namespaces/default/configmaps/a/status",
        "/openapi/v3/apis/nobody.io/v1",
        "/api/v1/pods",
    ] {
        let (code, reason, message) = stage.get(path).await.refusal();
        assert_eq!((code, &*reason), (404, "NotFound"), "{path}");
        assert_eq!(message, "the server could not find the requested resource", "{path}");
    }
}

#[tokio::test]
async fn methods_that_a_path_does_not_have() {
    let stage = Stage::new().await;
    for (method, path) in [
        ("PUT", WIDGETS),
        ("PATCH", WIDGETS),
        ("POST", "/apis/example.com/v1/namespaces/default/widgets/a"),
        ("POST", "/apis/example.com/v1/widgets"),
        ("DELETE", "/apis/example.com/v1/widgets"),
        ("DELETE", "/apis/example.com/v1/namespaces/default/widgets/a/status"),
        ("OPTIONS", WIDGETS),
        ("POST", "/version"),
        ("GET", "/apis/authentication.k8s.io/v1/selfsubjectreviews"),
    ] {
        let (code, reason, message) = stage.send(method, path, &[], "").await.refusal();
        assert_eq!((code, &*reason), (405, "MethodNotAllowed"), "{method} {path}");
        assert_eq!(message, "the server does not allow this method on the requested resource");
    }
}

#[tokio::test]
async fn bodies_that_cannot_be_read() {
    let stage = Stage::new().await;
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    for body in ["", "{", "[]", "1", "null", "\"a\"", &deep, "{\"metadata\":[]}", "{\"kind\":1}"] {
        let reply =
            stage.send("POST", WIDGETS, &[("content-type", "application/json")], body.to_owned()).await;
        let (code, reason, _) = reply.refusal();
        assert_eq!((code, &*reason), (400, "BadRequest"), "{body:.20}");
    }
    let laughs = (1..20).map(|level| format!("a{level}: &a{level} [*a{0}, *a{0}, *a{0}]\n", level - 1));
    let laughs = format!("a0: &a0 [x, x]\n{}", laughs.collect::<String>());
    for body in [
        "",
        "{",
        "- 1",
        "1",
        "a: [",
        "a: b: c",
        "\t- x",
        "*nobody",
        &deep,
        "metadata: []",
        "kind: 1",
        &laughs,
    ] {
        let reply =
            stage.send("POST", WIDGETS, &[("content-type", "application/yaml")], body.to_owned()).await;
        let (code, reason, _) = reply.refusal();
        assert_eq!((code, &*reason), (400, "BadRequest"), "{body:.20}");
    }
    let invalid = stage.send("POST", WIDGETS, &[], &b"\xff\xfe"[..]).await.refusal();
    assert_eq!(invalid.0, 400);
    assert!(stage.get(WIDGETS).await.expect(200)["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn content_types_that_are_not_spoken() {
    let stage = Stage::new().await;
    let protobuf = b"k8s\0\x0a\x18\x0a\x0eexample.com/v1\x12\x06Widget\x12\x00".to_vec();
    let json = || widget("a").to_string().into_bytes();
    for (kind, body) in [
        ("application/vnd.kubernetes.protobuf", protobuf),
        ("text/plain", json()),
        ("application/x-www-form-urlencoded", json()),
    ] {
        let reply = stage.send("POST", WIDGETS, &[("content-type", kind)], body).await;
        let (code, reason, message) = reply.refusal();
        assert_eq!((code, &*reason), (415, "UnsupportedMediaType"));
        assert!(message.contains("application/json, application/yaml"), "{message}");
    }
    let (code, reason, message) =
        stage.get_as(WIDGETS, "application/vnd.kubernetes.protobuf").await.refusal();
    assert_eq!((code, &*reason), (406, "NotAcceptable"));
    assert_eq!(message, "only the following media types are accepted: application/json, application/yaml");
}

#[tokio::test]
async fn bodies_and_queries_have_a_bound() {
    let limits = Limits { body_bytes_max: 4000, query_bytes_max: 100, ..Limits::default() };
    let stage = Stage::with_limits(limits).await;
    let large = json!({"spec": "x".repeat(5000)});
    let (code, reason, message) = stage.post(WIDGETS, &large).await.refusal();
    assert_eq!((code, &*reason), (413, "RequestEntityTooLarge"));
    assert_eq!(message, "Request entity too large: limit is 4000");
    let long = format!("{WIDGETS}?labelSelector={}", "a".repeat(200));
    assert_eq!(stage.get(&long).await.refusal().0, 400);
}

#[tokio::test]
async fn parameters_that_nobody_knows_are_not_ignored() {
    let stage = Stage::new().await;
    stage.create("a").await;
    for (method, path) in [
        ("GET", format!("{WIDGETS}?shard=1")),
        ("GET", format!("{WIDGETS}/a/status?watch=true")),
        ("GET", format!("{WIDGETS}?watch=perhaps")),
        ("GET", format!("{WIDGETS}?limit=many")),
        ("POST", format!("{WIDGETS}?limit=1")),
        ("DELETE", format!("{WIDGETS}/a?force=true")),
        ("GET", "/version?x=1".to_owned()),
        ("GET", format!("{WIDGETS}?limit=%zz")),
    ] {
        let reply = stage.send(method, &path, &[], widget("b").to_string()).await;
        assert_eq!(reply.refusal().0, 400, "{method} {path}");
    }
    assert_eq!(stage.get(WIDGETS).await.expect(200)["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn odd_names_are_refused_by_rule() {
    let stage = Stage::new().await;
    for name in ["A", "a_b", "-a", "ä", "a b"] {
        let (code, reason, _) = stage.post(WIDGETS, &widget(name)).await.refusal();
        assert_eq!((code, &*reason), (422, "Invalid"), "{name}");
    }
}

#[tokio::test]
async fn a_namespace_on_its_way_out_takes_nothing_in() {
    let stage = Stage::new().await;
    stage.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await.expect(201);
    let terminating = stage.delete("/api/v1/namespaces/n").await.expect(200);
    assert_eq!(terminating["status"]["phase"], "Terminating");
    let path = "/apis/example.com/v1/namespaces/n/widgets";
    let reply = stage.post(path, &widget("a")).await.expect(403);
    assert_eq!(reply["reason"], "Forbidden");
    assert_eq!(
        reply["message"],
        "widgets.example.com \"a\" is forbidden: unable to create new content in namespace n because it is being \
         terminated"
    );
    assert_eq!(reply["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let namespace = json!({"metadata": {"name": "n"}, "spec": {}});
    stage.put("/api/v1/namespaces/n/finalize", &namespace).await.expect(200);
    assert_eq!(stage.get("/api/v1/namespaces/n").await.code, 404);
}

#[tokio::test]
async fn what_a_namespace_waits_for_changes_through_finalize_alone() {
    let stage = Stage::new().await;
    let path = "/api/v1/namespaces/n";
    let mut namespace =
        stage.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await.expect(201);
    for _ in 0..2 {
        namespace["spec"]["finalizers"] = json!([]);
        namespace["metadata"]["labels"] = json!({"a": "b"});
        namespace = stage.put(path, &namespace).await.expect(200);
        assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
        for patch in [json!({"spec": {"finalizers": []}}), json!({"spec": null})] {
            let patched = stage.patch(path, "merge-patch+json", &patch).await.expect(200);
            assert_eq!(patched["spec"]["finalizers"], json!(["kubernetes"]), "{patch}");
        }
        let others = json!([{"op": "add", "path": "/spec/finalizers/-", "value": "a.dev/other"}]);
        let patched = stage.patch(path, "json-patch+json", &others).await.expect(200);
        assert_eq!(patched["spec"]["finalizers"], json!(["kubernetes"]));
        // Once more, on its way out.
        namespace = stage.delete(path).await.expect(200);
        assert_eq!(namespace["status"]["phase"], "Terminating");
    }
    stage.put(&format!("{path}/finalize"), &namespace).await.expect(200);
    namespace["spec"]["finalizers"] = json!([]);
    stage.put(&format!("{path}/finalize"), &namespace).await.expect(200);
    assert_eq!(stage.get(path).await.code, 404);
}

#[tokio::test]
async fn namespaces_that_everything_counts_on_cannot_be_deleted() {
    let stage = Stage::new().await;
    stage.post("/api/v1/namespaces", &json!({"metadata": {"name": "kube-system"}})).await.expect(201);
    for name in ["default", "kube-system"] {
        let path = format!("/api/v1/namespaces/{name}");
        let (code, reason, message) = stage.delete(&path).await.refusal();
        assert_eq!((code, &*reason), (403, "Forbidden"));
        assert_eq!(message, format!("namespaces {name:?} is forbidden: this namespace may not be deleted"));
        assert_eq!(stage.get(&path).await.expect(200)["status"]["phase"], "Active");
    }
}
