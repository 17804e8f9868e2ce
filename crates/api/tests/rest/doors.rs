//! Both doors show the same things, and the write path asks the same of all of them.

use serde_json::{Value, json};

use crate::stage::{RECORDS, RESOURCES, Stage, TYPES, dns_type, spec};

const ID: &str = "no8s.concert.dev/id";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const APPLY: &str = "apply-patch+yaml";

fn object(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord", "metadata": {"name": name}, "spec": spec})
}

/// Code and message of a refusal in the shape of Kubernetes.
fn status(reply: &crate::shared::client::Reply) -> (u16, String) {
    let said = reply.json();
    assert_eq!(said["kind"], "Status", "{said}");
    (reply.code, said["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_object_from_kubectl_is_a_resource() {
    let stage = Stage::new().await;
    let created = stage.post(RECORDS, &object("a", spec())).await.expect(201);
    assert_eq!(created["metadata"]["labels"][ID], "1");
    assert_eq!(created["metadata"]["finalizers"], json!(["dns_record"]));
    assert_eq!(created["spec"]["ttl"], 300);
    let shown = stage.get(&format!("{RESOURCES}/1")).await.expect(200);
    assert_eq!((&shown["name"], &shown["status"]), (&json!("a"), &json!("pending")));
    stage.record("b").await;
    let listed = stage.send("GET", RECORDS, &[("accept", "application/json")], "").await.expect(200);
    let ids: Vec<&Value> =
        listed["items"].as_array().unwrap().iter().map(|it| &it["metadata"]["labels"][ID]).collect();
    assert_eq!(ids, ["1", "2"]);
    let definition = stage.get(&format!("{DEFINITIONS}/dnsrecords.no8s.concert.dev")).await.expect(200);
    assert_eq!(definition["spec"]["names"]["categories"], json!(["no8s"]));
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = stage.send("GET", RECORDS, &table, "").await.expect(200);
    let columns: Vec<&Value> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(columns, ["Name", "Phase", "Message", "Age"]);
}

#[tokio::test]
async fn every_way_of_writing_is_judged() {
    let stage = Stage::new().await;
    let bad = json!({"domain": "a", "type": "MX", "value": "1"});
    let wrong = "type: 'MX' is not one of ['A', 'AAAA', 'CNAME', 'TXT']";
    let (code, message) = status(&stage.post(RECORDS, &object("a", bad.clone())).await);
    assert_eq!(code, 422);
    assert!(
        message.contains(wrong) && message.contains("DnsRecord.no8s.concert.dev \"a\" is invalid"),
        "{message}"
    );
    let path = format!("{RECORDS}/a?fieldManager=me");
    let (code, message) = status(&stage.patch(&path, APPLY, &object("a", bad.clone())).await);
    assert_eq!((code, message.contains(wrong)), (422, true), "{message}");
    let created = stage.post(RECORDS, &object("a", spec())).await.expect(201);
    let path = format!("{RECORDS}/a");
    let merge = stage.patch(&path, "merge-patch+json", &json!({"spec": {"type": "MX"}})).await;
    assert_eq!(status(&merge).0, 422);
    let operations = json!([{"op": "replace", "path": "/spec/type", "value": "MX"}]);
    assert_eq!(status(&stage.patch(&path, "json-patch+json", &operations).await).0, 422);
    let mut replaced = created.clone();
    replaced["spec"] = bad;
    assert_eq!(status(&stage.put(&path, &replaced).await).0, 422);
    assert_eq!(stage.get(&path).await.expect(200), created);
}

#[tokio::test]
async fn an_apply_makes_and_keeps_a_resource() {
    let stage = Stage::new().await;
    let path = format!("{RECORDS}/a?fieldManager=me");
    let created = stage.patch(&path, APPLY, &object("a", spec())).await.expect(201);
    assert_eq!(created["metadata"]["labels"][ID], "1");
    assert_eq!(
        (&created["metadata"]["finalizers"], &created["spec"]["ttl"]),
        (&json!(["dns_record"]), &json!(300))
    );
    let again = stage.patch(&path, APPLY, &object("a", spec())).await.expect(200);
    assert_eq!(again, created, "what nobody applied is not taken away");
    let mut changed = spec();
    changed["value"] = json!("1");
    let changed = stage.patch(&path, APPLY, &object("a", changed)).await.expect(200);
    assert_eq!((&changed["metadata"]["generation"], &changed["spec"]["ttl"]), (&json!(2), &json!(300)));
    assert_eq!(changed["metadata"]["labels"][ID], "1");
}

#[tokio::test]
async fn a_default_that_is_left_out_comes_back() {
    let stage = Stage::new().await;
    let mut object = stage.post(RECORDS, &object("a", spec())).await.expect(201);
    object["spec"].as_object_mut().unwrap().remove("ttl");
    let replaced = stage.put(&format!("{RECORDS}/a"), &object).await.expect(200);
    assert_eq!((&replaced["spec"]["ttl"], &replaced["metadata"]["generation"]), (&json!(300), &json!(1)));
}

#[tokio::test]
async fn a_dry_run_judges_and_leaves_nothing() {
    let stage = Stage::new().await;
    let path = format!("{RECORDS}?dryRun=All");
    let shown = stage.post(&path, &object("a", spec())).await.expect(201);
    assert_eq!(shown["spec"]["ttl"], 300);
    assert_eq!(status(&stage.post(&path, &object("a", json!({"a": 1}))).await).0, 422);
    assert_eq!(stage.get(RESOURCES).await.expect(200), json!([]));
    assert_eq!(stage.record("a").await["id"], 1);
}

#[tokio::test]
async fn nobody_makes_what_nobody_reconciles() {
    let stage = Stage::bare().await;
    stage.post(TYPES, &dns_type("v1")).await.expect(201);
    let (code, message) = status(&stage.post(RECORDS, &object("a", spec())).await);
    assert_eq!(code, 400);
    assert!(
        message.starts_with("No reconciler plugin registered for resource type 'DnsRecord'"),
        "{message}"
    );
    let mut with_action = object("a", spec());
    with_action["plugin"] = json!({"action": "exec"});
    assert!(status(&stage.post(RECORDS, &with_action).await).1.starts_with("Unknown action plugin: exec."));
    stage.worker("actions", json!([{"action": "exec"}])).await;
    let made = stage.post(RECORDS, &with_action).await.expect(201);
    assert_eq!(made["metadata"]["labels"]["no8s.concert.dev/action"], "exec");
    assert_eq!(made["metadata"]["finalizers"], json!(["exec"]));
    assert_eq!(status(&stage.post(RECORDS, &object("b", json!({}))).await).0, 400);
}

#[tokio::test]
async fn numbers_and_actions_cannot_be_changed() {
    let stage = Stage::new().await;
    let created = stage.post(RECORDS, &object("a", spec())).await.expect(201);
    let path = format!("{RECORDS}/a");
    let patch = async |labels: Value| {
        stage.patch(&path, "merge-patch+json", &json!({"metadata": {"labels": labels}})).await
    };
    assert_eq!(status(&patch(json!({ID: "7"})).await).0, 422);
    assert_eq!(status(&patch(json!({"no8s.concert.dev/action": "exec"})).await).0, 422);
    let kept = patch(json!({ID: null})).await.expect(200);
    assert_eq!(kept, created, "left out, it stays");
    let action = json!({"plugin": {"action": "exec"}});
    assert_eq!(status(&stage.patch(&path, "merge-patch+json", &action).await).0, 422);
    let mut claimed = object("b", spec());
    claimed["metadata"]["labels"] = json!({ID: "1"});
    let made = stage.post(RECORDS, &claimed).await.expect(201);
    assert_eq!(made["metadata"]["labels"][ID], "2", "nobody takes the number of another");
}

#[tokio::test]
async fn an_object_deleted_with_kubectl_is_deleting() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let object = stage.delete(&format!("{RECORDS}/a")).await.expect(200);
    assert_eq!(object["status"]["phase"], "deleting");
    let shown = stage.get(&format!("{RESOURCES}/1")).await.expect(200);
    assert_eq!(
        (&shown["status"], &shown["conditions"][0]["reason"]),
        (&json!("deleting"), &json!("Deleting"))
    );
    let gone = json!({"metadata": {"finalizers": null}});
    stage.patch(&format!("{RECORDS}/a"), "merge-patch+json", &gone).await.expect(200);
    assert_eq!(stage.get(&format!("{RESOURCES}/1")).await.code, 404);
}

#[tokio::test]
async fn metadata_changes_when_the_schema_no_longer_fits() {
    let stage = Stage::new().await;
    stage.record("a").await;
    stage.put(&format!("{TYPES}/1"), &json!({"schema": {"required": ["more"]}})).await.expect(200);
    let labels = json!({"metadata": {"labels": {"team": "net"}}});
    stage.patch(&format!("{RECORDS}/a"), "merge-patch+json", &labels).await.expect(200);
    stage.delete(&format!("{RESOURCES}/1")).await.expect(202);
    stage.put(&format!("{RESOURCES}/1/finalizers"), &json!({"remove": ["dns_record"]})).await.expect(200);
    assert_eq!(stage.get(&format!("{RESOURCES}/1")).await.code, 404);
}

#[tokio::test]
async fn a_type_can_come_from_kubectl() {
    let stage = Stage::new().await;
    let mut definition = stage.get(&format!("{DEFINITIONS}/dnsrecords.no8s.concert.dev")).await.expect(200);
    let number = definition["metadata"]["annotations"][ID].clone();
    definition["metadata"]["annotations"][ID] = json!("77");
    definition["metadata"]["annotations"]["no8s.concert.dev/description"] = json!("Names.");
    let path = format!("{DEFINITIONS}/dnsrecords.no8s.concert.dev");
    let kept = stage.put(&path, &definition).await.expect(200);
    assert_eq!(kept["metadata"]["annotations"][ID], number);
    assert_eq!(stage.get(&format!("{TYPES}/1")).await.expect(200)["description"], "Names.");
    let bad = json!({"metadata": {"annotations": {"no8s.concert.dev/schema": "{\"type\": 1}"}}});
    assert_eq!(status(&stage.patch(&path, "merge-patch+json", &bad).await).0, 422);
    let other = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "zones.no8s.concert.dev", "annotations": {
            "no8s.concert.dev/type": "Zone", "no8s.concert.dev/version": "v1",
            "no8s.concert.dev/schema": "{\"required\": [\"name\"]}"}},
        "spec": {"group": "no8s.concert.dev", "scope": "Cluster",
            "names": {"plural": "zones", "singular": "zone", "kind": "Zone"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    stage.post(DEFINITIONS, &other).await.expect(201);
    let shown = stage.get(&format!("{TYPES}/Zone/v1")).await.expect(200);
    assert_eq!((&shown["id"], &shown["schema"]), (&json!(2), &json!({"required": ["name"]})));
}

#[tokio::test]
async fn other_kinds_are_nobodys_business() {
    let stage = Stage::new().await;
    let map = json!({"metadata": {"name": "a"}, "data": {"x": "y"}});
    let path = "/api/v1/namespaces/default/configmaps";
    let made = stage.post(path, &map).await.expect(201);
    assert_eq!(made["metadata"].get("labels"), None);
    assert_eq!(stage.get("/api/v1/nothing").await.json()["kind"], "Status");
    assert_eq!(stage.get("/api/v1/resources/9").await.json(), json!({"detail": "Resource not found"}));
}
