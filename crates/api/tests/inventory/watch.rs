//! Which section changed, as it happens, for those who may know.

use std::time::Duration;

use concert_api::kube::Body;
use concert_store::{By, Delete, PageRequest, Query, Store};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::stage::{BASE, Stage, data, section};

struct Events(Body);

impl Events {
    async fn open(stage: &Stage, token: &str, query: &str, last: Option<&str>) -> Self {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(last.map(|it| ("last-event-id", it)));
        let response = stage.client.start("GET", &format!("{BASE}/watch{query}"), &headers, "").await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut events = Self(response.into_body());
        assert_eq!(events.text().await, ": connected\n");
        events
    }

    async fn text(&mut self) -> String {
        let frame = self.0.frame().await.unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    }

    /// Id and data of the next event.
    async fn next(&mut self) -> (String, Value) {
        let text = self.text().await;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_else(|| panic!("{text}")).to_owned()
        };
        (field("id"), serde_json::from_str(&field("data")).unwrap())
    }
}

async fn put(stage: &Stage, entry: &str, name: &str, contents: Value) {
    stage.put(&section(entry, name), data(contents)).await.expect(200);
}

#[tokio::test]
async fn changes_are_told_in_order_without_contents_and_no_ops_are_not() {
    let stage = Stage::with_entries().await;
    let mut events = Events::open(&stage, &stage.admin, "", None).await;
    put(&stage, "rt-1", "free", json!({"a": 1})).await;
    put(&stage, "rt-1", "free", json!({"a": 1})).await;
    put(&stage, "rt-2", "credentials", json!({"kubeconfig": "canary"})).await;
    stage.delete(&section("rt-1", "free")).await.expect(200);
    let (first, event) = events.next().await;
    assert_eq!(
        (&event["entry"], &event["section"], &event["version"]),
        (&json!("rt-1"), &json!("free"), &json!(1))
    );
    let (_, event) = events.next().await;
    assert_eq!(event, json!({"entry": "rt-2", "section": "credentials", "version": 1, "revision": 1}));
    let (_, event) = events.next().await;
    assert_eq!(
        event,
        json!({"entry": "rt-1", "section": "free", "version": 1, "revision": 2, "removed": true})
    );
    // Who was away goes on where it was.
    let mut again = Events::open(&stage, &stage.admin, "?entry=rt-1", Some(&first)).await;
    assert_eq!(again.next().await.1["removed"], true);
    let headers = [("last-event-id", "999999")];
    let future = stage.ask_with(&stage.admin, "GET", "/watch", &headers, Value::Null).await;
    assert_eq!(future.code, 400);
}

#[tokio::test]
async fn one_hears_of_what_one_may_read() {
    let stage = Stage::with_entries().await;
    let shoot = stage.work("rt-1", "shoot").await;
    let mut events = Events::open(&stage, &shoot, "", None).await;
    let mut networks = Events::open(&stage, &stage.admin, "?section=network", None).await;
    put(&stage, "rt-2", "network", json!({"vnet_name": "a"})).await;
    put(&stage, "rt-1", "free", json!({})).await;
    put(&stage, "rt-1", "network", json!({"vnet_name": "a"})).await;
    stage.put("/grants/shoot", json!({"write": ["cluster"]})).await.expect(200);
    put(&stage, "rt-1", "network", json!({"vnet_name": "b"})).await;
    put(&stage, "rt-1", "cluster", json!({})).await;
    // By the time the stream is read, network is no longer its business.
    let (_, event) = events.next().await;
    assert_eq!((&event["entry"], &event["section"]), (&json!("rt-1"), &json!("cluster")));
    for entry in ["rt-2", "rt-1", "rt-1"] {
        assert_eq!(networks.next().await.1["entry"], entry);
    }
    let stranger = stage.token_of("stranger", &[]).await;
    stage.ask(&stranger, "GET", "/watch", Value::Null).await.detail(403);
    stage.allow("clerk", "sections", &["watch"], &["network"]).await;
    let clerk = stage.token_of("clerk", &[]).await;
    stage.ask(&clerk, "GET", "/watch", Value::Null).await.detail(403);
    Events::open(&stage, &clerk, "?section=network", None).await;
}

#[tokio::test]
async fn a_role_can_name_one_section_of_one_entry_to_be_watched() {
    let stage = Stage::with_entries().await;
    stage.allow("local", "sections", &["watch"], &["rt-1.network"]).await;
    let local = stage.token_of("local", &[]).await;
    for query in
        ["", "?entry=rt-1", "?section=network", "?entry=rt-2&section=network", "?entry=rt-1&section=free"]
    {
        stage.ask(&local, "GET", &format!("/watch{query}"), Value::Null).await.detail(403);
    }
    let mut events = Events::open(&stage, &local, "?entry=rt-1&section=network", None).await;
    put(&stage, "rt-2", "network", json!({"vnet_name": "a"})).await;
    put(&stage, "rt-1", "network", json!({"vnet_name": "a"})).await;
    let (_, event) = events.next().await;
    assert_eq!((&event["entry"], &event["section"]), (&json!("rt-1"), &json!("network")));
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let stage = Stage::with_entries().await;
    let shoot = stage.work("rt-1", "shoot").await;
    let mut reconciler = Events::open(&stage, &shoot, "", None).await;
    let mut person = Events::open(&stage, &stage.token_of("jane", &["system:masters"]).await, "", None).await;
    stage.clock.advance(Duration::from_secs(16));
    assert_eq!(reconciler.text().await, ": heartbeat\n");
    assert_eq!(person.text().await, ": heartbeat\n");
    let all = Query::all(concert_api::auth::token_kind());
    for token in stage.store.list(&all, &PageRequest::whole()).await.unwrap().items {
        if token.decode().spec()["user"] == "jane" {
            stage.store.delete(token.key(), &Delete::default(), &By::actor("test")).await.unwrap();
        }
    }
    stage.clock.advance(Duration::from_secs(3));
    assert!(person.0.frame().await.is_none());
    // The token of a claim ends by itself.
    stage.clock.advance(Duration::from_secs(50));
    assert!(reconciler.0.frame().await.is_none());
}
