//! What the door says of itself, and what it answers to nonsense.

use serde_json::json;

use crate::stage::{RESOURCES, Stage};

#[tokio::test]
async fn plugins_are_those_of_the_workers() {
    let stage = Stage::new().await;
    stage.worker("actions", json!([{"action": "http_api"}, {"action": "exec", "version": "2.0.0"}])).await;
    let actions = stage.get("/api/v1/plugins/actions").await.expect(200);
    assert_eq!(
        actions,
        json!([{"name": "exec", "version": "2.0.0"}, {"name": "http_api", "version": "1.0.0"}])
    );
    assert_eq!(stage.get("/api/v1/plugins/inputs").await.expect(200), json!([]));
    let reconcilers = stage.get("/api/v1/plugins/reconcilers").await.expect(200);
    assert_eq!(
        reconcilers,
        json!([{"name": "dns_record", "version": "1.0.0", "resource_types": ["DnsRecord"]}])
    );
}

#[tokio::test]
async fn the_cluster_is_one_process() {
    let stage = Stage::new().await;
    let nodes = stage.get("/api/v1/cluster/nodes").await.expect(200);
    assert_eq!(nodes["this_instance_id"], "here:1:x");
    assert_eq!(
        (&nodes["leader_lock"]["holder_id"], &nodes["leader_lock"]["is_valid"]),
        (&json!("here:1:x"), &json!(true))
    );
    let node = &nodes["nodes"][0];
    assert_eq!(
        (&node["status"], &node["pid"], &node["hostname"]),
        (&json!("Ready"), &json!(1), &json!("here"))
    );
    assert!(node["age"].is_string());
}

#[tokio::test]
async fn every_route_of_the_description_is_there() {
    let stage = Stage::new().await;
    let document = stage.get("/openapi.json").await.expect(200);
    let elsewhere =
        ["/auth/", "/users", "/custom-roles", "/admission-webhooks", "/workers", "/status", "/conditions"];
    for (path, methods) in document["paths"].as_object().unwrap() {
        if elsewhere.iter().any(|it| path.contains(it)) || path.ends_with("/events") {
            continue;
        }
        for method in
            methods.as_object().unwrap().keys().filter(|it| !(path.ends_with("/outputs") && *it == "put"))
        {
            let filled = path.replace("{name}", "x").replace("{version}", "v1");
            let filled: String = filled
                .split('/')
                .map(|it| if it.starts_with('{') { "9" } else { it })
                .collect::<Vec<_>>()
                .join("/");
            let reply = stage.send(&method.to_uppercase(), &filled, &[], "").await;
            let said = String::from_utf8_lossy(&reply.bytes).into_owned();
            assert!(reply.code != 405 && said != "{\"detail\":\"Not Found\"}", "{method} {filled}: {said}");
        }
    }
}

#[tokio::test]
async fn the_page_is_whole() {
    let stage = Stage::new().await;
    let page = stage.get("/docs").await;
    assert_eq!((page.code, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
}

#[tokio::test]
async fn nonsense_is_answered_in_the_shape_of_this_door() {
    let stage = Stage::new().await;
    let not_found = (404, "Not Found".to_owned());
    for path in [
        "/api/v1/plugins",
        "/api/v1/resources/1/none",
        "/api/v1/cluster/none",
        "/api/v1/resources/%ff",
        "/api/v1/resources/1/2/3/4/5/6/7/8/9",
    ] {
        assert_eq!(stage.get(path).await.refusal(), not_found, "{path}");
    }
    let reply = stage.send("PATCH", &format!("{RESOURCES}/1"), &[], "").await;
    assert_eq!(reply.refusal(), (405, "Method Not Allowed".into()));
    assert_eq!(reply.header("allow"), Some("GET, PUT, DELETE"));
    assert_eq!(stage.send("POST", "/health", &[], "").await.refusal().0, 405);
    let query = format!("{RESOURCES}?a={}", "x".repeat(40_000));
    assert_eq!(stage.get(&query).await.refusal().0, 400);
    let large = "x".repeat(4 * 1024 * 1024);
    assert_eq!(stage.send("POST", RESOURCES, &[], large).await.refusal().0, 413);
    let text = stage.send("POST", RESOURCES, &[("content-type", "text/plain")], "{}").await;
    assert_eq!(text.wrong()[0].0, "model_attributes_type");
    assert_eq!(stage.get(&format!("{RESOURCES}/")).await.expect(200), json!([]));
}
