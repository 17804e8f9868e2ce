//! With authentication: who may do what, as the answers say it.

use concert_model::Object;
use concert_store::{By, Store};
use serde_json::{Value, json};

use crate::stage::{Reply, Stage, WIDGETS, widget};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Lets a user do this, everywhere.
async fn allow(stage: &Stage, user: &str, rules: Value) {
    let by = By::actor("test");
    let role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": user}, "rules": rules});
    stage.store.create(Object::from_value(role).unwrap(), &by).await.unwrap();
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": user},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    });
    stage.store.create(Object::from_value(binding).unwrap(), &by).await.unwrap();
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

async fn send_as(stage: &Stage, token: &str, method: &str, path: &str, kind: &str, body: &Value) -> Reply {
    let headers = [("authorization", token), ("content-type", kind)];
    stage.send(method, path, &headers, body.to_string()).await
}

#[tokio::test]
async fn nobody_gets_in_without_a_name() {
    let stage = Stage::guarded().await;
    assert_eq!(stage.get("/healthz").await.code, 200);
    let (code, reason, message) = stage.get(WIDGETS).await.refusal();
    assert_eq!((code, &*reason, &*message), (401, "Unauthorized", "Unauthorized"));
    let wrong = stage.send("GET", WIDGETS, &[("authorization", "Bearer nonsense")], "").await;
    assert_eq!(wrong.refusal().0, 401);
}

#[tokio::test]
async fn what_is_not_allowed_is_named() {
    let stage = Stage::guarded().await;
    let token = stage.token("jane").await;
    let reply = stage.send("GET", WIDGETS, &[("authorization", &token)], "").await.expect(403);
    assert_eq!(reply["reason"], "Forbidden");
    assert_eq!(
        reply["message"],
        "widgets.example.com is forbidden: User \"jane\" cannot list resource \"widgets\" in API group \
         \"example.com\" in the namespace \"default\""
    );
    assert_eq!(reply["details"], json!({"group": "example.com", "kind": "widgets"}));
    allow(&stage, "jane", json!([rule("example.com", &["widgets"], &["list"])])).await;
    stage.send("GET", WIDGETS, &[("authorization", &token)], "").await.expect(200);
}

#[tokio::test]
async fn an_apply_that_would_create_needs_the_right_to() {
    let stage = Stage::guarded().await;
    let token = stage.token("jane").await;
    allow(&stage, "jane", json!([rule("example.com", &["widgets"], &["patch"])])).await;
    let path = format!("{WIDGETS}/a?fieldManager=jane&force=true");
    let apply = async |size: u32| {
        let mut object = widget("a");
        object["spec"]["size"] = json!(size);
        send_as(&stage, &token, "PATCH", &path, "application/apply-patch+yaml", &object).await
    };
    let (code, _, message) = apply(1).await.refusal();
    assert_eq!(code, 403);
    assert!(message.contains("cannot create resource \"widgets\""), "{message}");
    let mut object = widget("a");
    object["metadata"]["namespace"] = json!("default");
    stage.store.create(Object::from_value(object).unwrap(), &By::actor("test")).await.unwrap();
    assert_eq!(apply(2).await.expect(200)["spec"]["size"], 2);
}

#[tokio::test]
async fn nobody_gives_away_more_than_they_have() {
    let stage = Stage::guarded().await;
    let token = stage.token("jane").await;
    let verbs = ["create", "update", "patch", "get"];
    allow(&stage, "jane", json!([rule(RBAC, &["roles"], &verbs), rule("", &["configmaps"], &["get"])])).await;
    let roles = format!("/apis/{RBAC}/v1/namespaces/default/roles");
    let role = |rules: Value| json!({"metadata": {"name": "r"}, "rules": rules});
    let own = json!([rule("", &["configmaps"], &["get"])]);
    let more = json!([rule("", &["secrets"], &["get"])]);
    let json_type = "application/json";
    let refused = send_as(&stage, &token, "POST", &roles, json_type, &role(more.clone())).await;
    assert_eq!(refused.refusal().0, 403);
    send_as(&stage, &token, "POST", &roles, json_type, &role(own)).await.expect(201);
    let path = format!("{roles}/r");
    for kind in ["merge-patch+json", "strategic-merge-patch+json"] {
        let kind = format!("application/{kind}");
        let refused = send_as(&stage, &token, "PATCH", &path, &kind, &json!({"rules": more})).await;
        assert_eq!(refused.refusal().0, 403, "{kind}");
    }
    let operations = json!([{"op": "replace", "path": "/rules", "value": more}]);
    let refused = send_as(&stage, &token, "PATCH", &path, "application/json-patch+json", &operations).await;
    assert_eq!(refused.refusal().0, 403);
    let refused = send_as(&stage, &token, "PUT", &path, json_type, &role(more)).await;
    assert_eq!(refused.refusal().0, 403);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    send_as(&stage, &token, "PATCH", &path, "application/merge-patch+json", &labels).await.expect(200);
}

#[tokio::test]
async fn a_review_says_no() {
    let stage = Stage::guarded().await;
    let token = stage.token("jane").await;
    allow(&stage, "jane", json!([rule("authorization.k8s.io", &["selfsubjectaccessreviews"], &["create"])]))
        .await;
    let spec = json!({"resourceAttributes": {"namespace": "default", "verb": "get", "resource": "secrets"}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = send_as(&stage, &token, "POST", path, "application/json", &json!({"spec": spec})).await;
    assert_eq!(answer.expect(201)["status"], json!({"allowed": false}));
}
