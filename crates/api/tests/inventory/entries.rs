//! Entries come, are listed, change and go.

use concert_model::{GroupKind, ObjectKey};
use concert_store::{By, Delete, Store as _};
use serde_json::{Value, json};

use crate::stage::{OBJECTS, Stage, data, section};

#[tokio::test]
async fn r2_an_entry_comes_with_its_sections_or_not_at_all() {
    let stage = Stage::new().await;
    let whole = json!({"id": "rt-1", "kind": "runtime", "tenant": "acme", "labels": {"tier": "gold"},
        "sections": {"spec": {"region": "eu"}, "credentials": {"kubeconfig": "x"}}});
    let shown = stage.post("/entries", whole.clone()).await.expect(201);
    assert_eq!(
        (&shown["id"], &shown["kind"], &shown["tenant"]),
        (&json!("rt-1"), &json!("runtime"), &json!("acme"))
    );
    assert_eq!((&shown["labels"], &shown["paused"]), (&json!({"tier": "gold"}), &json!(false)));
    assert_eq!(shown["revision"], 2);
    assert_eq!(shown["sections"]["spec"]["data"], json!({"region": "eu"}));
    assert_eq!(shown["sections"]["credentials"]["secret"], true);
    stage.post("/entries", whole).await.detail(409);
    let bad = json!({"id": "rt-2", "kind": "runtime", "sections": {"network": {}, "spec": {}}});
    assert!(stage.post("/entries", bad).await.detail(422).contains("vnet_name"));
    stage.get("/entries/rt-2").await.detail(404);
}

#[tokio::test]
async fn r2_an_entry_whose_sections_cannot_be_written_is_taken_back() {
    let stage = Stage::new().await;
    // Where contents of secret sections would go.
    let place = ObjectKey::cluster(GroupKind::new("", "Namespace"), "concert-inventory");
    stage.store.delete(&place, &Delete::default(), &By::actor("test")).await.unwrap();
    let entry = |sections: Value| json!({"id": "rt-1", "kind": "runtime", "sections": sections});
    let whole = json!({"a": {"b": 1}, "credentials": {"kubeconfig": "x"}});
    let refused = stage.post("/entries", entry(whole)).await;
    assert!(refused.code >= 400, "{}", refused.code);
    stage.get("/entries/rt-1").await.detail(404);
    let shown = stage.post("/entries", entry(json!({"a": {"b": 1}}))).await.expect(201);
    assert_eq!((&shown["revision"], &shown["sections"]["a"]["version"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn entries_are_listed_by_kind_and_label_in_pages() {
    let stage = Stage::new().await;
    for (id, kind, tier) in [("a", "runtime", "gold"), ("b", "byoc", "gold"), ("c", "runtime", "tin")] {
        let entry = json!({"id": id, "kind": kind, "labels": {"tier": tier}});
        stage.post("/entries", entry).await.expect(201);
    }
    let ids = async |query: &str| {
        let list = stage.get(&format!("/entries{query}")).await.expect(200);
        let ids = list["items"].as_array().unwrap().iter();
        (ids.map(|it| it["id"].as_str().unwrap().to_owned()).collect::<String>(), list["continue"].clone())
    };
    assert_eq!(ids("").await.0, "abc");
    assert_eq!(ids("?kind=runtime").await.0, "ac");
    assert_eq!(ids("?label=tier%3Dgold").await.0, "ab");
    assert_eq!(ids("?kind=byoc&label=tier%3Dtin").await.0, "");
    let (first, token) = ids("?limit=2").await;
    assert_eq!(first, "ab");
    assert_eq!(
        ids(&format!("?limit=2&continue={}", token.as_str().unwrap())).await,
        ("c".into(), Value::Null)
    );
}

#[tokio::test]
async fn labels_tenant_and_pause_can_be_changed_and_nothing_else() {
    let stage = Stage::with_entries().await;
    let patch = async |body: Value| stage.ask(&stage.admin, "PATCH", "/entries/rt-1", body).await;
    let shown = patch(json!({"labels": {"a": "b"}, "tenant": "acme", "paused": true})).await.expect(200);
    assert_eq!(
        (&shown["labels"]["a"], &shown["tenant"], &shown["paused"]),
        (&json!("b"), &json!("acme"), &json!(true))
    );
    let shown = patch(json!({"labels": {"a": null}})).await.expect(200);
    assert_eq!((&shown["labels"], &shown["paused"]), (&json!({}), &json!(true)));
    patch(json!({"kind": "byoc"})).await.detail(422);
    patch(json!({"labels": {"inventory.concert.dev/entry": "rt-2"}})).await.detail(422);
    stage.ask(&stage.admin, "PATCH", "/entries/none", json!({"paused": true})).await.detail(404);
}

#[tokio::test]
async fn an_entry_goes_when_nobody_holds_it_and_counts_anew_when_it_comes_again() {
    let stage = Stage::with_entries().await;
    stage.put(&section("rt-1", "spec"), data(json!({"n": 1}))).await.expect(200);
    let hold = json!({"metadata": {"finalizers": ["concert.dev/held"]}});
    let path = format!("{OBJECTS}/clusters/rt-1");
    let merge = [("content-type", "application/merge-patch+json")];
    let bearer = format!("Bearer {}", stage.admin);
    let headers = [merge[0], ("authorization", bearer.as_str())];
    assert_eq!(stage.client.send("PATCH", &path, &headers, hold.to_string()).await.code, 200);
    assert_eq!(stage.delete("/entries/rt-1").await.expect(202)["deleting"], true);
    assert_eq!(stage.get("/entries/rt-1").await.expect(200)["deleting"], true);
    // Who takes it down may still write.
    stage.put(&section("rt-1", "spec"), data(json!({"n": 2}))).await.expect(200);
    let free = json!({"metadata": {"finalizers": null}});
    assert_eq!(stage.client.send("PATCH", &path, &headers, free.to_string()).await.code, 200);
    stage.get("/entries/rt-1").await.detail(404);
    // Nobody collects here: what is left of it is not the new one's.
    stage.post("/entries", json!({"id": "rt-1", "kind": "runtime"})).await.expect(201);
    stage.get(&section("rt-1", "spec")).await.detail(404);
    let shown = stage.get("/entries/rt-1").await.expect(200);
    assert_eq!((&shown["revision"], &shown["sections"]), (&json!(0), &json!({})));
    let first = stage.put(&section("rt-1", "spec"), data(json!({"n": 2}))).await.expect(200);
    assert_eq!(first, json!({"version": 1, "revision": 1}));
}
