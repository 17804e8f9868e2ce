//! With authentication: who may do what, as the answers say it.

use std::time::Duration;

use concert_model::{GroupKind, Object, ObjectKey};
use concert_store::{By, Delete, PageRequest, Query, Store};
use serde_json::{Value, json};

use crate::shared::client::Reply;
use crate::stage::{Stage, WIDGETS, Watch, widget};

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
async fn an_explanation_is_for_readers_of_the_object_and_its_history_is_not() {
    let stage = Stage::guarded().await;
    let mut object = widget("a");
    object["metadata"]["namespace"] = json!("default");
    stage.store.create(Object::from_value(object).unwrap(), &By::actor("test")).await.unwrap();
    // Nobody here explains, which is said to those who may ask only.
    let code = async |token: &str, part: &str| {
        let headers = [("authorization", token)];
        stage.send("GET", &format!("{WIDGETS}/a/{part}"), &headers, "").await.code
    };
    let (jane, joe) = (stage.token("jane").await, stage.token("joe").await);
    assert_eq!((code(&jane, "explain").await, code(&jane, "history").await), (403, 403));
    allow(&stage, "jane", json!([rule("example.com", &["widgets"], &["get"])])).await;
    assert_eq!((code(&jane, "explain").await, code(&jane, "history").await), (404, 403));
    let parts = ["widgets/explain", "widgets/history"];
    allow(&stage, "joe", json!([rule("example.com", &parts, &["get"])])).await;
    assert_eq!((code(&joe, "explain").await, code(&joe, "history").await), (404, 200));
    let list = [("authorization", jane.as_str())];
    assert_eq!(stage.send("GET", WIDGETS, &list, "").await.code, 403, "to read one is not to list all");
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

#[tokio::test]
async fn a_watch_ends_with_what_allowed_it() {
    let stage = Stage::guarded().await;
    let jane = stage.token("jane").await;
    let every = Duration::from_secs(3);
    for (number, take_away) in ["binding", "token"].into_iter().enumerate() {
        if number == 0 {
            allow(&stage, "jane", json!([rule("example.com", &["widgets"], &["watch"])])).await;
        }
        let headers = [("authorization", jane.as_str())];
        let response = stage.start("GET", &format!("{WIDGETS}?watch=true"), &headers, "").await;
        assert_eq!(response.status(), 200);
        let mut watch = Watch::new(response);
        // As long as it is allowed it goes on, whatever else is written.
        stage.store.create(labelled(&format!("w{number}")), &By::actor("test")).await.unwrap();
        stage.clock.advance(every);
        let first = watch.next().await.unwrap();
        assert_eq!(first["type"], "ADDED", "{first}");
        let (code, by) = (if take_away == "binding" { 403 } else { 401 }, By::actor("test"));
        let gone = match take_away {
            "binding" => ObjectKey::cluster(GroupKind::new(RBAC, "ClusterRoleBinding"), "jane"),
            _ => {
                let all = Query::all(concert_api::auth::token_kind());
                stage.store.list(&all, &PageRequest::whole()).await.unwrap().items[0].key().clone()
            }
        };
        stage.store.delete(&gone, &Delete::default(), &by).await.unwrap();
        stage.clock.advance(every);
        let mut last = watch.next().await.unwrap();
        while last["type"] == "ADDED" {
            last = watch.next().await.unwrap();
        }
        assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(code)), "{last}");
        assert_eq!(watch.next().await, None);
        let role = ObjectKey::cluster(GroupKind::new(RBAC, "ClusterRole"), "jane");
        if take_away == "binding" {
            stage.store.delete(&role, &Delete::default(), &by).await.unwrap();
            allow(&stage, "jane", json!([rule("example.com", &["widgets"], &["watch"])])).await;
        }
    }
}

#[tokio::test]
async fn who_may_see_one_object_may_watch_and_list_that_one() {
    let stage = Stage::guarded().await;
    let jane = stage.token("jane").await;
    let mut only = rule("example.com", &["widgets"], &["get", "list", "watch"]);
    only["resourceNames"] = json!(["mine"]);
    allow(&stage, "jane", json!([only])).await;
    let headers = [("authorization", jane.as_str())];
    let code = async |query: &str| {
        let response = stage.start("GET", &format!("{WIDGETS}{query}"), &headers, "").await;
        response.status().as_u16()
    };
    assert_eq!(code("?fieldSelector=metadata.name%3Dmine").await, 200);
    assert_eq!(code("?watch=true&fieldSelector=metadata.name%3Dmine").await, 200);
    assert_eq!(code("/mine?watch=true").await, 200);
    for query in [
        "",
        "?watch=true",
        "?fieldSelector=metadata.name%3Dyours",
        "/yours?watch=true",
        "?fieldSelector=metadata.name!%3Dmine",
    ] {
        assert_eq!(code(query).await, 403, "{query}");
    }
}

#[tokio::test]
async fn who_may_watch_a_namespace_from_within_goes_on() {
    let stage = Stage::guarded().await;
    let jane = stage.token("jane").await;
    let by = By::actor("test");
    for object in [
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": {"name": "r", "namespace": "default"},
            "rules": [rule("", &["namespaces"], &["watch"])]}),
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "r", "namespace": "default"},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "r"},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "jane"}]}),
    ] {
        stage.store.create(Object::from_value(object).unwrap(), &by).await.unwrap();
    }
    let headers = [("authorization", jane.as_str())];
    let path = "/api/v1/namespaces/default?watch=true";
    let response = stage.start("GET", path, &headers, "").await;
    assert_eq!(response.status(), 200);
    let mut watch = Watch::new(response);
    assert_eq!(watch.next().await.unwrap()["type"], "ADDED");
    let key = ObjectKey::cluster(GroupKind::new("", "Namespace"), "default");
    let mut namespace = stage.store.get(&key).await.unwrap().decode();
    namespace.set_label("a", "b");
    stage.store.update(namespace, &by).await.unwrap();
    stage.clock.advance(Duration::from_secs(3));
    assert_eq!(watch.next().await.unwrap()["type"], "MODIFIED");
    let all = stage.start("GET", "/api/v1/namespaces?watch=true", &headers, "").await;
    assert_eq!(all.status(), 403);
}

fn labelled(name: &str) -> Object {
    let mut object = widget(name);
    object["metadata"]["namespace"] = json!("default");
    Object::from_value(object).unwrap()
}

#[tokio::test]
async fn acting_as_somebody_else_needs_the_right_to_and_gives_theirs() {
    let stage = Stage::guarded().await;
    let jane = stage.token("jane").await;
    allow(&stage, "bob", json!([rule("example.com", &["widgets"], &["list"])])).await;
    let list = async |extra: &[(&str, &str)]| {
        let headers = [&[("authorization", jane.as_str())][..], extra].concat();
        stage.send("GET", WIDGETS, &headers, "").await
    };
    let as_bob = [("impersonate-user", "bob")];
    let (code, _, message) = list(&as_bob).await.refusal();
    assert_eq!(code, 403);
    assert!(message.contains("User \"jane\" cannot impersonate resource \"users\""), "{message}");
    let only_bob = json!([{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["bob"]}]);
    allow(&stage, "jane", only_bob).await;
    list(&as_bob).await.expect(200);
    // Without it she is herself again, and nobody else.
    assert_eq!(list(&[]).await.refusal().0, 403);
    assert_eq!(list(&[("impersonate-user", "root")]).await.refusal().0, 403);
    let masters = [("impersonate-user", "bob"), ("impersonate-group", "system:masters")];
    assert_eq!(list(&masters).await.refusal().0, 403);
    let extra = [("impersonate-user", "bob"), ("impersonate-extra-scopes", "x")];
    let (code, _, message) = list(&extra).await.refusal();
    assert_eq!(code, 403);
    assert!(message.contains("impersonate-extra-scopes is not supported"), "{message}");
    let nobody = stage.send("GET", WIDGETS, &as_bob, "").await;
    assert_eq!(nobody.refusal().0, 401);
}

#[tokio::test]
async fn a_watch_as_somebody_else_ends_with_the_right_to_be_them() {
    let stage = Stage::guarded().await;
    let jane = stage.token("jane").await;
    allow(&stage, "bob", json!([rule("example.com", &["widgets"], &["watch"])])).await;
    allow(&stage, "jane", json!([rule("", &["users"], &["impersonate"])])).await;
    let headers = [("authorization", jane.as_str()), ("impersonate-user", "bob")];
    let response = stage.start("GET", &format!("{WIDGETS}?watch=true"), &headers, "").await;
    assert_eq!(response.status(), 200);
    let mut watch = Watch::new(response);
    let key = ObjectKey::cluster(GroupKind::new(RBAC, "ClusterRoleBinding"), "jane");
    stage.store.delete(&key, &Delete::default(), &By::actor("test")).await.unwrap();
    stage.clock.advance(Duration::from_secs(3));
    let last = watch.next().await.unwrap();
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(403)), "{last}");
}
