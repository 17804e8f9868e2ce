//! The same fleet through the Kubernetes-shaped door: what is shown there, and what is kept right.

use serde_json::{Value, json};

use crate::stage::{OBJECTS, Stage, data, section};

fn object(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "inventory.concert.dev/v1alpha1", "kind": "Section", "metadata": {"name": name},
        "spec": spec})
}

fn network(vnet: &str) -> Value {
    json!({"entry": "rt-1", "section": "network", "data": {"vnet_name": vnet}})
}

async fn patch(stage: &Stage, path: &str, body: Value) -> crate::shared::Reply {
    let bearer = format!("Bearer {}", stage.admin);
    let headers = [("content-type", "application/merge-patch+json"), ("authorization", bearer.as_str())];
    stage.client.send("PATCH", &format!("{OBJECTS}/{path}"), &headers, body.to_string()).await
}

#[tokio::test]
async fn secret_sections_are_shown_as_references_only() {
    let stage = Stage::with_entries().await;
    stage.put(&section("rt-1", "credentials"), data(json!({"kubeconfig": "canary"}))).await.expect(200);
    let shown = stage.get(&format!("{OBJECTS}/sections/rt-1.credentials")).await;
    let spec = shown.expect(200)["spec"].clone();
    assert_eq!(spec["secretRef"]["namespace"], "concert-inventory");
    assert!(spec["secretRef"]["name"].as_str().unwrap().starts_with("rt-1.credentials.1-"), "{spec}");
    assert_eq!((&spec["secret"], spec.get("data")), (&json!(true), None));
    for path in ["sections", "sections/rt-1.credentials/history", "clusters/rt-1", "clusters/rt-1/history"] {
        let reply = stage.get(&format!("{OBJECTS}/{path}")).await;
        assert_eq!(reply.code, 200, "{path}");
        assert!(!String::from_utf8_lossy(&reply.bytes).contains("canary"), "{path}");
    }
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let path = format!("{OBJECTS}/sections");
    let table = stage.ask_with(&stage.admin, "GET", &path, &table, Value::Null).await.expect(200);
    assert_eq!(
        table["rows"][0]["cells"].as_array().unwrap()[..4],
        [json!("rt-1.credentials"), json!("rt-1"), json!("credentials"), json!(1)]
    );
}

#[tokio::test]
async fn an_entry_does_not_become_another_kind_of_thing() {
    let stage = Stage::with_entries().await;
    let refused = patch(&stage, "clusters/rt-1", json!({"spec": {"kind": "byoc"}})).await;
    assert!(refused.expect(422)["message"].as_str().unwrap().contains("kind cannot change"));
    patch(&stage, "clusters/rt-1", json!({"spec": {"kind": "runtime", "tenant": "acme"}})).await.expect(200);
}

#[tokio::test]
async fn a_fleet_is_a_table_for_kubectl() {
    let stage = Stage::with_entries().await;
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let path = format!("{OBJECTS}/clusters?fieldSelector=spec.kind%3Druntime");
    let table = stage.ask_with(&stage.admin, "GET", &path, &table, Value::Null).await.expect(200);
    let columns: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["Name", "KIND", "PHASE", "READY", "TENANT", "PAUSED", "AGE"]);
    assert_eq!(table["rows"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_server_keeps_version_hash_and_writer_whatever_is_sent() {
    let stage = Stage::with_entries().await;
    let mut sent = object("rt-1.network", network("a"));
    sent["spec"]["version"] = json!(77);
    sent["spec"]["writer"] = json!("somebody else");
    let made = stage.ask(&stage.admin, "POST", &format!("{OBJECTS}/sections"), sent).await.expect(201);
    assert_eq!((&made["spec"]["version"], &made["spec"]["writer"]), (&json!(1), &json!("root")));
    assert_eq!(made["metadata"]["ownerReferences"][0]["name"], "rt-1");
    assert_eq!(made["metadata"]["labels"]["inventory.concert.dev/entry"], "rt-1");
    let shown = stage.get("/entries/rt-1").await.expect(200);
    assert_eq!((&shown["revision"], &shown["sections"]["network"]["version"]), (&json!(1), &json!(1)));

    let edit = json!({"spec": {"data": {"vnet_name": "b"}, "version": 40, "hash": "x"}});
    let edited = patch(&stage, "sections/rt-1.network", edit).await.expect(200);
    assert_eq!(edited["spec"]["version"], 2);
    assert_ne!(edited["spec"]["hash"], made["spec"]["hash"]);
    // Nothing but what the server keeps: nothing changes.
    let forged =
        patch(&stage, "sections/rt-1.network", json!({"spec": {"version": 9, "writer": "me"}})).await;
    let forged = forged.expect(200);
    assert_eq!(forged["spec"], edited["spec"]);
    assert_eq!(forged["metadata"]["resourceVersion"], edited["metadata"]["resourceVersion"]);
    // The hash is that of the other door: equal contents are no write there.
    let same = stage.put(&section("rt-1", "network"), data(json!({"vnet_name": "b"}))).await.expect(200);
    assert_eq!(same, json!({"version": 2, "revision": 2, "unchanged": true}));
}

#[tokio::test]
async fn rules_hold_at_every_door() {
    let stage = Stage::with_entries().await;
    for (name, spec, said) in [
        ("rt-1.network", json!({"entry": "rt-1", "section": "network", "data": {}}), "vnet_name"),
        ("rt-1.network", json!({"entry": "rt-2", "section": "network", "data": {}}), "ENTRY.SECTION"),
        ("none.free", json!({"entry": "none", "section": "free"}), "no entry"),
        (
            "rt-1.credentials",
            json!({"entry": "rt-1", "section": "credentials", "data": {"kubeconfig": "canary"}}),
            "/inventory/v1/entries/rt-1/sections/credentials",
        ),
    ] {
        let reply = stage.ask(&stage.admin, "POST", &format!("{OBJECTS}/sections"), object(name, spec)).await;
        let message = reply.expect(422)["message"].as_str().unwrap().to_owned();
        assert!(message.contains(said) && !message.contains("canary"), "{message}");
    }
    let dotted = json!({"apiVersion": "inventory.concert.dev/v1alpha1", "kind": "Cluster",
        "metadata": {"name": "a.b"}, "spec": {"kind": "runtime"}});
    stage.ask(&stage.admin, "POST", &format!("{OBJECTS}/clusters"), dotted).await.expect(422);
    assert!(stage.all("inventory.concert.dev", "Section").await.is_empty());
}

#[tokio::test]
async fn a_secret_section_can_be_removed_and_labelled_but_not_written_by_kubectl() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "credentials");
    stage.put(&path, data(json!({"kubeconfig": "x"}))).await.expect(200);
    let own = "sections/rt-1.credentials";
    let before = stage.get(&format!("{OBJECTS}/{own}")).await.expect(200)["spec"].clone();
    let forged = json!({"spec": {"data": {"kubeconfig": "y"}}});
    assert_eq!(patch(&stage, own, forged).await.code, 422);
    let stolen = json!({"spec": {"secretRef": {"namespace": "default", "name": "other"}, "secret": false}});
    let kept = patch(&stage, own, stolen).await.expect(200);
    assert_eq!(kept["spec"], before);
    let labelled = patch(&stage, own, json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    assert_eq!(labelled["spec"]["version"], 1);
    stage.delete(&format!("{OBJECTS}/{own}")).await.expect(200);
    assert!(stage.all("", "Secret").await.is_empty());
    let again = stage.put(&path, data(json!({"kubeconfig": "x"}))).await.expect(200);
    assert_eq!(again, json!({"version": 3, "revision": 3}), "versions go on");
}

#[tokio::test]
async fn whether_a_section_is_secret_cannot_change_while_there_are_any() {
    let stage = Stage::with_entries().await;
    stage.put(&section("rt-1", "credentials"), data(json!({"kubeconfig": "x"}))).await.expect(200);
    stage.put(&section("rt-1", "free"), data(json!({}))).await.expect(200);
    assert!(stage.put("/section-types/credentials", json!({})).await.detail(422).contains("cannot change"));
    assert!(stage.delete("/section-types/credentials").await.detail(422).contains("cannot change"));
    stage.put("/section-types/free", json!({"secret": true})).await.detail(422);
    stage.put("/section-types/free", json!({})).await.expect(201);
    stage.delete(&section("rt-1", "credentials")).await.expect(200);
    stage.put("/section-types/credentials", json!({})).await.expect(200);
    let bad = json!({"schema": {"type": "nonsense"}});
    stage.put("/section-types/free", bad).await.detail(422);
    assert_eq!(stage.get("/section-types").await.expect(200)["items"].as_array().unwrap().len(), 3);
}
