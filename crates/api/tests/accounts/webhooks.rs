//! `/api/v1/admission-webhooks`, and what they decide on both doors.

use serde_json::{Value, json};

use crate::stage::{Stage, fields};

const URL: &str = "http://127.0.0.1:9/hook";

fn webhook(name: &str, more: Value) -> Value {
    let mut body =
        json!({"name": name, "webhook_url": URL, "webhook_type": "validating", "operations": ["CREATE"]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn a_webhook_is_declared_read_changed_and_removed() {
    let stage = Stage::new().await;
    let made = stage
        .post("/admission-webhooks", webhook("quota", json!({"operations": ["UPDATE", "CREATE"]})))
        .await;
    let at = "2026-01-01T00:00:00.000000";
    let expected = json!({
        "id": 1, "name": "quota", "resource_type_name": null, "resource_type_version": null, "webhook_url": URL,
        "webhook_type": "validating", "operations": ["CREATE", "UPDATE"], "timeout_seconds": 10,
        "failure_policy": "Fail", "ordering": 0, "created_at": at, "updated_at": at,
    });
    assert_eq!(made.expect(201), expected);
    assert_eq!(stage.get("/admission-webhooks/1").await.expect(200), expected);
    let change = json!({"failure_policy": "Ignore", "ordering": -3, "timeout_seconds": 5, "webhook_url": null,
        "resource_type_name": "DnsRecord", "name": "Quota!"});
    let changed = stage.put("/admission-webhooks/1", change).await.expect(200);
    assert_eq!((&changed["failure_policy"], &changed["ordering"]), (&json!("Ignore"), &json!(-3)));
    assert_eq!((&changed["webhook_url"], &changed["timeout_seconds"]), (&json!(URL), &json!(5)));
    assert_eq!((&changed["name"], &changed["resource_type_name"]), (&json!("Quota!"), &json!("DnsRecord")));
    stage.delete("/admission-webhooks/1").await.expect(204);
    for (code, reply) in [
        (404, stage.get("/admission-webhooks/1").await),
        (404, stage.put("/admission-webhooks/1", json!({})).await),
        (404, stage.delete("/admission-webhooks/1").await),
    ] {
        assert_eq!(reply.detail(code), "Admission webhook not found");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_webhook_is_named() {
    let stage = Stage::new().await;
    let missing = stage.post("/admission-webhooks", json!({})).await;
    assert_eq!(
        missing.fields(),
        fields(&[
            ("missing", "name"),
            ("missing", "webhook_url"),
            ("missing", "webhook_type"),
            ("missing", "operations")
        ])
    );
    let cases = [
        (json!({"webhook_type": "other"}), vec![("enum", "webhook_type")]),
        (json!({"operations": ["READ"]}), vec![("value_error", "operations")]),
        (json!({"operations": []}), vec![("value_error", "operations")]),
        (json!({"operations": "CREATE"}), vec![("list_type", "operations")]),
        (json!({"failure_policy": "Maybe"}), vec![("enum", "failure_policy")]),
        (json!({"timeout_seconds": 0}), vec![("greater_than_equal", "timeout_seconds")]),
        (json!({"timeout_seconds": 61}), vec![("less_than_equal", "timeout_seconds")]),
        (json!({"ordering": "x"}), vec![("int_parsing", "ordering")]),
        (json!({"webhook_url": "ftp://a/"}), vec![("value_error", "webhook_url")]),
        (json!({"webhook_url": "http://169.254.169.254/latest"}), vec![("value_error", "webhook_url")]),
        (json!({"webhook_url": "http://[fe80::1]/"}), vec![("value_error", "webhook_url")]),
    ];
    for (more, expected) in cases {
        let refused = stage.post("/admission-webhooks", webhook("w", more.clone())).await;
        assert_eq!(refused.fields(), fields(&expected), "{more}");
    }
    stage.post("/admission-webhooks", webhook("w", json!({}))).await.expect(201);
    let twice = stage.post("/admission-webhooks", webhook("w", json!({}))).await;
    assert_eq!(twice.detail(409), "Admission webhook 'w' already exists");
    stage.post("/admission-webhooks", webhook("x", json!({}))).await.expect(201);
    let taken = stage.put("/admission-webhooks/2", json!({"name": "w"})).await;
    assert_eq!(taken.detail(409), "Admission webhook 'w' already exists");
    let wrong = stage.put("/admission-webhooks/2", json!({"webhook_url": "http://0.0.0.0/"})).await;
    assert_eq!(wrong.fields(), fields(&[("value_error", "webhook_url")]));
    let object = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "AdmissionWebhook", "metadata": {"name": "y"},
        "spec": {"url": "http://169.254.169.254/", "type": "validating", "operations": ["CREATE"]}});
    stage.ask(&stage.admin, "POST", "/apis/concert.dev/v1alpha1/admissionwebhooks", object).await.expect(422);
}

#[tokio::test]
async fn webhooks_are_listed_by_what_they_are_asked_about() {
    let stage = Stage::new().await;
    let dns = json!({"resource_type_name": "DnsRecord", "resource_type_version": "v1"});
    stage.post("/admission-webhooks", webhook("a", dns)).await.expect(201);
    stage.post("/admission-webhooks", webhook("b", json!({"webhook_type": "mutating"}))).await.expect(201);
    let names = async |query: &str| {
        let all = stage.get(&format!("/admission-webhooks{query}")).await.expect(200);
        all.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["a", "b"]);
    assert_eq!(names("?resource_type_name=DnsRecord&resource_type_version=v1").await, ["a"]);
    assert_eq!(names("?resource_type_name=Other").await, [""; 0]);
    assert_eq!(names("?webhook_type=mutating").await, ["b"]);
    assert_eq!(
        stage.get("/admission-webhooks?webhook_type=x").await.fields(),
        fields(&[("enum", "webhook_type")])
    );
}

#[tokio::test]
async fn a_webhook_that_must_answer_and_does_not_refuses_on_both_doors() {
    let stage = Stage::new().await;
    let kind = json!({"name": "DnsRecord", "version": "v1", "schema": {"type": "object"}});
    stage.post("/resource-types", kind).await.expect(201);
    stage.worker("dns", "DnsRecord").await;
    stage
        .post("/admission-webhooks", webhook("gate", json!({"webhook_url": "http://127.0.0.1:1/"})))
        .await
        .expect(201);
    let body = json!({"name": "a", "resource_type_name": "DnsRecord", "resource_type_version": "v1", "spec": {"a": 1}});
    let detail = stage.post("/resources", body.clone()).await.detail(403);
    assert!(detail.starts_with("Admission webhook gate failed: cannot connect"), "{detail}");
    let object = json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord", "metadata": {"name": "a"}, "spec": {"a": 1}});
    let kube = "/apis/no8s.concert.dev/v1/dnsrecords";
    let refused = stage.ask(&stage.admin, "POST", kube, object.clone()).await.expect(403);
    assert!(refused["message"].as_str().unwrap().contains("Admission webhook gate failed"), "{refused}");
    assert_eq!(stage.get("/resources").await.expect(200), json!([]));
    stage.put("/admission-webhooks/1", json!({"failure_policy": "Ignore"})).await.expect(200);
    stage.post("/resources", body).await.expect(201);
    let mut other = object;
    other["metadata"]["name"] = json!("b");
    stage.ask(&stage.admin, "POST", kube, other).await.expect(201);
}
