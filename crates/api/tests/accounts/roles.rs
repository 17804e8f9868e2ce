//! `/api/v1/custom-roles`, and what they allow on both doors.

use std::sync::Arc;

use concert_api::auth::PLUGIN_HOSTS;
use concert_model::{GroupKind, ObjectKey};
use concert_store::{Error, Store};
use serde_json::{Value, json};

use crate::stage::{PASSWORD, RBAC, Stage, fields};

async fn type_of(stage: &Stage, name: &str, version: &str) {
    let body = json!({"name": name, "version": version, "schema": {"type": "object"}});
    stage.post("/resource-types", body).await.expect(201);
}

#[tokio::test]
async fn a_role_and_its_permissions_are_written_as_one() {
    let stage = Stage::new().await;
    let body = json!({"name": "dns", "description": "Records", "system_permissions": ["view_webhooks"],
        "permissions": [{"resource_type_name": "DnsRecord", "resource_type_version": "v1", "operations": ["UPDATE", "READ"]}, {}]});
    let made = stage.post("/custom-roles", body).await.expect(201);
    let at = "2026-01-01T00:00:00.000000Z";
    let expected = json!({
        "id": 1, "name": "dns", "description": "Records", "system_permissions": ["view_webhooks"],
        "permissions": [
            {"id": 1, "role_id": 1, "resource_type_name": "DnsRecord", "resource_type_version": "v1",
                "operations": ["READ", "UPDATE"], "created_at": at},
            {"id": 2, "role_id": 1, "resource_type_name": "*", "resource_type_version": "*",
                "operations": ["CREATE", "READ", "UPDATE", "DELETE"], "created_at": at},
        ],
        "created_at": at, "updated_at": at,
    });
    assert_eq!(made, expected);
    assert_eq!(stage.get("/custom-roles/1").await.expect(200), expected);
    assert_eq!(stage.get("/custom-roles").await.expect(200), json!([expected]));
    let changed = stage.put("/custom-roles/1", json!({"name": "DNS people", "system_permissions": []})).await;
    let changed = changed.expect(200);
    assert_eq!((&changed["name"], &changed["description"]), (&json!("DNS people"), &json!("Records")));
    assert_eq!(changed["permissions"], expected["permissions"]);
    assert_eq!(changed["system_permissions"], json!([]));
    stage.delete("/custom-roles/1").await.expect(204);
    assert_eq!(stage.get("/custom-roles/1").await.detail(404), "Role not found");
    assert_eq!(stage.get("/custom-roles").await.expect(200), json!([]));
    assert_eq!(stage.post("/custom-roles", json!({"name": "dns"})).await.expect(201)["id"], 2);
}

#[tokio::test]
async fn what_is_wrong_with_a_role_is_named_and_leaves_nothing() {
    let stage = Stage::new().await;
    let cases = [
        (json!({}), vec![("missing", "name")]),
        (json!({"name": ""}), vec![("string_too_short", "name")]),
        (json!({"name": "r", "system_permissions": ["root"]}), vec![("value_error", "system_permissions")]),
        (json!({"name": "r", "permissions": [{}, 7]}), vec![("model_attributes_type", "permissions.1")]),
        (
            json!({"name": "r", "permissions": [{"operations": ["ALL"]}]}),
            vec![("value_error", "permissions.0.operations")],
        ),
        (json!({"name": "r", "permissions": {}}), vec![("list_type", "permissions")]),
    ];
    for (body, expected) in cases {
        assert_eq!(stage.post("/custom-roles", body.clone()).await.fields(), fields(&expected), "{body}");
    }
    let twins = stage
        .post("/custom-roles", json!({"name": "r", "permissions": [{}, {"resource_type_name": "*"}]}))
        .await;
    assert_eq!(twins.detail(409), "Permission for this resource type/version already exists");
    assert_eq!(stage.get("/custom-roles").await.expect(200), json!([]));
    stage.post("/custom-roles", json!({"name": "r"})).await.expect(201);
    assert_eq!(
        stage.post("/custom-roles", json!({"name": "r"})).await.detail(409),
        "Role 'r' already exists"
    );
    stage.post("/custom-roles", json!({"name": "s"})).await.expect(201);
    let taken = stage.put("/custom-roles/2", json!({"name": "r"})).await;
    assert_eq!(taken.detail(409), "Role 'r' already exists");
    assert_eq!(stage.put("/custom-roles/2", json!({"name": "s"})).await.expect(200)["name"], "s");
    let unknown = stage.put("/custom-roles/2", json!({"system_permissions": ["root"]})).await;
    assert_eq!(unknown.fields(), fields(&[("value_error", "system_permissions")]));
    for path in ["/custom-roles/99", "/custom-roles/0"] {
        assert_eq!(stage.get(path).await.detail(404), "Role not found");
        assert_eq!(stage.put(path, json!({})).await.detail(404), "Role not found");
        assert_eq!(stage.delete(path).await.detail(404), "Role not found");
        let path = format!("{path}/permissions");
        assert_eq!(stage.post(&path, json!({})).await.detail(404), "Role not found");
    }
    assert_eq!(stage.get("/custom-roles/x").await.fields(), fields(&[("int_parsing", "role_id")]));
}

#[tokio::test]
async fn a_renamed_role_frees_its_name() {
    let stage = Stage::new().await;
    stage.post("/custom-roles", json!({"name": "one"})).await.expect(201);
    stage.put("/custom-roles/1", json!({"name": "two"})).await.expect(200);
    let again = stage.post("/custom-roles", json!({"name": "one"})).await.expect(201);
    assert_eq!((&again["id"], &again["name"]), (&json!(2), &json!("one")));
    let odd = stage.post("/custom-roles", json!({"name": "Ünïcode & spaces"})).await.expect(201);
    assert_eq!(odd["name"], "Ünïcode & spaces");
}

#[tokio::test]
async fn permissions_come_change_and_go_by_number() {
    let stage = Stage::new().await;
    stage.post("/custom-roles", json!({"name": "r"})).await.expect(201);
    stage.post("/custom-roles", json!({"name": "s"})).await.expect(201);
    let permission =
        json!({"resource_type_name": "DnsRecord", "resource_type_version": "v1", "operations": ["READ"]});
    let added = stage.post("/custom-roles/1/permissions", permission.clone()).await.expect(201);
    assert_eq!((&added["role_id"], &added["operations"]), (&json!(1), &json!(["READ"])));
    let id = added["id"].as_u64().unwrap();
    let twice = stage.post("/custom-roles/1/permissions", permission).await;
    assert_eq!(twice.detail(409), "Permission for this resource type/version already exists");
    let path = format!("/custom-roles/1/permissions/{id}");
    let changed = stage.put(&path, json!({"operations": ["DELETE"]})).await.expect(200);
    assert_eq!((&changed["id"], &changed["operations"]), (&json!(id), &json!(["DELETE"])));
    let wrong = stage.put(&path, json!({"operations": ["ALL"]})).await;
    assert_eq!(wrong.fields(), fields(&[("value_error", "operations")]));
    // A permission belongs to the role in the path.
    let elsewhere = format!("/custom-roles/2/permissions/{id}");
    assert_eq!(stage.put(&elsewhere, json!({"operations": []})).await.detail(404), "Permission not found");
    assert_eq!(stage.delete(&elsewhere).await.detail(404), "Permission not found");
    stage.delete(&path).await.expect(204);
    assert_eq!(stage.delete(&path).await.detail(404), "Permission not found");
    let other = stage.post("/custom-roles/1/permissions", json!({})).await.expect(201);
    assert_ne!(other["id"], id);
}

#[tokio::test]
async fn a_role_allows_what_it_says_on_both_doors_at_once() {
    let stage = Stage::new().await;
    type_of(&stage, "DnsRecord", "v1").await;
    let role = json!({"name": "dns", "permissions": [
        {"resource_type_name": "DnsRecord", "resource_type_version": "v1", "operations": ["READ"]},
        {"resource_type_name": "DnsRecord", "resource_type_version": "v2", "operations": ["CREATE"]}]});
    let role = stage.post("/custom-roles", role).await.expect(201)["id"].clone();
    let ann = stage.user("ann", json!({})).await;
    let token = stage.login("ann", PASSWORD).await;
    let kube = "/apis/no8s.concert.dev/v1/dnsrecords";
    let create = async |version: &str| {
        let body = json!({"name": "a", "resource_type_name": "DnsRecord", "resource_type_version": version, "spec": {"a": 1}});
        stage.ask(&token, "POST", "/api/v1/resources", body).await
    };
    stage.ask(&token, "GET", kube, Value::Null).await.expect(403);
    assert_eq!(create("v1").await.detail(403), "Insufficient permissions");
    stage.put(&format!("/users/{ann}"), json!({"custom_role_id": role})).await.expect(200);
    stage.ask(&token, "GET", kube, Value::Null).await.expect(200);
    stage.ask(&token, "POST", kube, json!({})).await.expect(403);
    stage.ask(&token, "GET", "/api/v1/users", Value::Null).await.expect(403);
    create("v1").await.expect(403);
    // A type that comes later is allowed as soon as it is there.
    type_of(&stage, "DnsRecord", "v2").await;
    assert_eq!(
        create("v2").await.detail(400),
        "No reconciler plugin registered for resource type 'DnsRecord' and no action_plugin specified"
    );
    create("v1").await.expect(403);
    // What is taken from the role is gone at once.
    let permission =
        stage.get(&format!("/custom-roles/{role}")).await.expect(200)["permissions"][0]["id"].clone();
    stage.delete(&format!("/custom-roles/{role}/permissions/{permission}")).await.expect(204);
    stage.ask(&token, "GET", kube, Value::Null).await.expect(403);
    create("v2").await.expect(400);
    stage.put(&format!("/users/{ann}"), json!({"custom_role_id": null})).await.expect(200);
    create("v2").await.expect(403);
}

#[tokio::test]
async fn a_role_is_a_cluster_role_that_goes_with_it() {
    let stage = Stage::new().await;
    type_of(&stage, "DnsRecord", "v1").await;
    let body = json!({"name": "dns", "permissions": [{"operations": ["DELETE"]}]});
    stage.post("/custom-roles", body).await.expect(201);
    let key = |kind: &str| ObjectKey::cluster(GroupKind::new(RBAC, kind), "no8s:dns");
    let role = stage.store.get(&key("ClusterRole")).await.unwrap().decode();
    assert_eq!(
        role.get("rules"),
        &json!([{"apiGroups": ["no8s.concert.dev"], "resources": ["dnsrecords"],
        "verbs": ["delete", "deletecollection"]}])
    );
    let binding = stage.store.get(&key("ClusterRoleBinding")).await.unwrap().decode();
    assert_eq!(binding.get("subjects")[0]["name"], "no8s:role:1");
    // Who tampers with it changes nothing for long: the next start makes it right.
    let mut tampered = role.clone();
    tampered.set("rules", json!([]));
    stage.store.update(tampered, &concert_store::By::actor("test")).await.unwrap();
    stage.accounts.start(None).await.unwrap();
    assert_eq!(stage.store.get(&key("ClusterRole")).await.unwrap().decode().get("rules"), role.get("rules"));
    stage.delete("/custom-roles/1").await.expect(204);
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        assert!(matches!(stage.store.get(&key(kind)).await, Err(Error::NotFound { .. })), "{kind}");
    }
}

#[tokio::test]
async fn a_role_made_with_kubectl_works_the_same() {
    let stage = Stage::new().await;
    type_of(&stage, "DnsRecord", "v1").await;
    let object = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "CustomRole", "metadata": {"name": "dns"},
        "spec": {"permissions": [{"resourceType": "DnsRecord", "operations": ["READ"]}]}});
    stage.ask(&stage.admin, "POST", "/apis/concert.dev/v1alpha1/customroles", object).await.expect(201);
    let shown = stage.get("/custom-roles/1").await.expect(200);
    assert_eq!((&shown["name"], &shown["permissions"][0]["id"]), (&json!("dns"), &json!(1)));
    stage.user("ann", json!({"custom_role_id": 1})).await;
    let token = stage.login("ann", PASSWORD).await;
    stage.ask(&token, "GET", "/apis/no8s.concert.dev/v1/dnsrecords", Value::Null).await.expect(200);
}

#[tokio::test]
async fn system_permissions_let_one_look_at_webhooks_and_plugins() {
    let stage = Arc::new(Stage::new().await);
    stage
        .post("/custom-roles", json!({"name": "w", "system_permissions": ["view_webhooks"]}))
        .await
        .expect(201);
    stage
        .post("/custom-roles", json!({"name": "p", "system_permissions": ["view_plugins"]}))
        .await
        .expect(201);
    stage.user("ann", json!({"custom_role_id": 1})).await;
    stage.user("bob", json!({"custom_role_id": 2})).await;
    let (ann, bob) = (stage.login("ann", PASSWORD).await, stage.login("bob", PASSWORD).await);
    let code = async |token: &str, path: &str| stage.ask(token, "GET", path, Value::Null).await.code;
    assert_eq!(code(&ann, "/api/v1/admission-webhooks").await, 200);
    assert_eq!(code(&bob, "/api/v1/admission-webhooks").await, 403);
    assert_eq!(code(&ann, "/api/v1/plugins/actions").await, 403);
    assert_eq!(code(&bob, "/api/v1/plugins/actions").await, 200);
}

#[tokio::test]
async fn a_plugin_host_reads_and_changes_resources_of_every_type_and_version_and_makes_none() {
    let stage = Stage::new().await;
    stage.worker("dns", "DnsRecord").await;
    let host = stage.token("system:plugin-host", &[PLUGIN_HOSTS]).await;
    let record = |version: &str| {
        json!({"name": format!("record-{version}"), "resource_type_name": "DnsRecord",
        "resource_type_version": version, "spec": {"a": 1}})
    };
    for version in ["v1", "v2", "v3beta1"] {
        type_of(&stage, "DnsRecord", version).await;
        let id = stage.post("/resources", record(version)).await.expect(201)["id"].clone();
        let path = format!("/api/v1/resources/{id}");
        stage.ask(&host, "GET", &path, Value::Null).await.expect(200);
        stage.ask(&host, "POST", &format!("{path}/reconcile"), Value::Null).await.expect(202);
        assert_eq!(
            stage.ask(&host, "DELETE", &path, Value::Null).await.detail(403),
            "Insufficient permissions"
        );
    }
    let seen = stage.ask(&host, "GET", "/api/v1/resources", Value::Null).await.expect(200);
    assert_eq!(seen.as_array().unwrap().len(), 3);
    stage.ask(&host, "POST", "/api/v1/resources", record("v2")).await.expect(403);
    stage.ask(&host, "GET", "/api/v1/users", Value::Null).await.expect(403);
    let stranger = stage.token("somebody", &[]).await;
    stage.ask(&stranger, "GET", "/api/v1/resources/1", Value::Null).await.expect(403);
}
