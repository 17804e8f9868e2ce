//! Server-sent events, and the path that they share with Kubernetes' events.

use std::time::Duration;

use concert_api::kube::Body;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::stage::{RESOURCES, Stage, TYPES, record, spec};

const EVENTS: &str = "/api/v1/events";

/// A stream of events.
struct Events(Body);

/// One event: id, type, data.
type Event = (u64, String, Value);

impl Events {
    async fn open(stage: &Stage, path: &str, headers: &[(&str, &str)]) -> Self {
        let response = stage.start("GET", path, headers, "").await;
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        let mut events = Self(response.into_body());
        assert_eq!(events.text().await.unwrap(), ": connected\n");
        events
    }

    async fn text(&mut self) -> Option<String> {
        let frame = self.0.frame().await?.unwrap();
        Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
    }

    async fn next(&mut self) -> Event {
        let text = self.text().await.unwrap();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_else(|| panic!("{text}")).to_owned()
        };
        assert!(text.ends_with("\n\n"));
        (field("id").parse().unwrap(), field("event"), serde_json::from_str(&field("data")).unwrap())
    }

    /// Type and name of the next one.
    async fn change(&mut self) -> (String, String) {
        let (_, kind, data) = self.next().await;
        assert_eq!(data["event_type"], kind.as_str());
        (kind, data["resource_name"].as_str().unwrap().to_owned())
    }
}

fn change(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_life_is_told_from_beginning_to_end() {
    let stage = Stage::new().await;
    let mut events = Events::open(&stage, EVENTS, &[("accept", "text/event-stream")]).await;
    stage.record("a").await;
    let (id, kind, data) = events.next().await;
    assert_eq!(kind, "CREATED");
    let expected = json!({"event_type": "CREATED", "resource_id": 1, "resource_name": "a",
        "resource_type_name": "DnsRecord", "resource_type_version": "v1"});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&data[field], value);
    }
    assert!(data["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        (&data["resource_data"]["status"], data["resource_data"].get("plugin_config")),
        (&json!("pending"), None)
    );
    stage.make_ready("a").await;
    let (next, kind, data) = events.next().await;
    assert!(next > id);
    assert_eq!((&*kind, &data["resource_data"]["status"]), ("RECONCILED", &json!("ready")));
    let mut changed = spec();
    changed["value"] = json!("1");
    stage.put(&format!("{RESOURCES}/1"), &json!({"spec": changed})).await.expect(200);
    assert_eq!(events.change().await, change("MODIFIED", "a"));
    stage.delete(&format!("{RESOURCES}/1")).await.expect(202);
    assert_eq!(events.change().await, change("MODIFIED", "a"));
    assert_eq!(events.change().await, change("MODIFIED", "a"));
    stage.put(&format!("{RESOURCES}/1/finalizers"), &json!({"remove": ["dns_record"]})).await.expect(200);
    assert_eq!(events.change().await, change("DELETED", "a"));
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_cut() {
    let stage = Stage::new().await;
    let mut events = Events::open(&stage, EVENTS, &[]).await;
    stage.record("a").await;
    let (id, ..) = events.next().await;
    drop(events);
    stage.record("b").await;
    stage.post(TYPES, &json!({"name": "Zone", "version": "v1", "schema": {}})).await.expect(201);
    stage.worker("zones", json!([{"resourceType": "Zone"}])).await;
    let mut zone = record("z");
    zone["resource_type_name"] = json!("Zone");
    stage.post(RESOURCES, &zone).await.expect(201);
    let last = id.to_string();
    let mut again = Events::open(&stage, EVENTS, &[("last-event-id", &last)]).await;
    assert_eq!(again.change().await, change("CREATED", "b"));
    assert_eq!(again.change().await, change("CREATED", "z"));
    let mut zones =
        Events::open(&stage, &format!("{EVENTS}?resource_type=Zone"), &[("last-event-id", &last)]).await;
    assert_eq!(zones.change().await, change("CREATED", "z"));
    let refused = stage.send("GET", EVENTS, &[("last-event-id", "99999")], "").await;
    assert_eq!(refused.refusal().0, 400);
    assert_eq!(stage.send("GET", EVENTS, &[("last-event-id", "x")], "").await.refusal().0, 400);
}

#[tokio::test]
async fn what_is_no_longer_known_is_said() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let newest = stage.store.newest().await.unwrap();
    stage.store.compact(newest).await.unwrap();
    assert_eq!(stage.send("GET", EVENTS, &[("last-event-id", "1")], "").await.refusal().0, 410);
}

#[tokio::test]
async fn one_resource_can_be_followed_to_its_end() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let path = format!("{RESOURCES}/1/events");
    let mut events = Events::open(&stage, &path, &[("accept", "application/json")]).await;
    stage.record("b").await;
    stage.put(&format!("{RESOURCES}/1/finalizers"), &json!({"remove": ["dns_record"]})).await.expect(200);
    assert_eq!(events.change().await, change("MODIFIED", "a"));
    stage.delete(&format!("{RESOURCES}/1")).await.expect(202);
    assert_eq!(events.change().await, change("DELETED", "a"));
    assert_eq!(events.text().await, None);
}

#[tokio::test]
async fn a_quiet_stream_is_alive_and_ends_with_the_server() {
    let stage = Stage::new().await;
    let mut events = Events::open(&stage, EVENTS, &[]).await;
    let beat = async {
        let text = events.text().await.unwrap();
        (text, events)
    };
    let tick = async {
        tokio::task::yield_now().await;
        stage.clock.advance(Duration::from_secs(15));
    };
    let ((text, mut events), ()) = tokio::join!(beat, tick);
    assert_eq!(text, ": heartbeat\n");
    stage.api.close();
    assert_eq!(events.text().await, None);
}

#[tokio::test]
async fn no_secret_leaves_with_an_event() {
    let stage = Stage::bare().await;
    let schema = json!({"properties": {"pin": {"type": "string", "writeOnly": true}}});
    stage.post(TYPES, &json!({"name": "Lock", "version": "v1", "schema": schema})).await.expect(201);
    stage.worker("locks", json!([{"resourceType": "Lock"}])).await;
    let mut events = Events::open(&stage, EVENTS, &[]).await;
    let body = json!({"name": "a", "resource_type_name": "Lock", "resource_type_version": "v1",
        "spec": {"pin": "hush-1", "db_password": "hush-2", "door": "front"}, "plugin_config": {"key": "hush-3"},
        "metadata": {"apiToken": "hush-4"}});
    stage.post(RESOURCES, &body).await.expect(201);
    let (_, _, data) = events.next().await;
    assert_eq!(data["resource_data"]["spec"], json!({"door": "front"}));
    assert!(!data.to_string().contains("hush"), "{data}");
}

#[tokio::test]
async fn one_path_serves_both_sorts_of_events() {
    let stage = Stage::new().await;
    let note = json!({"metadata": {"name": "note"}, "involvedObject": {"namespace": "default"}, "reason": "Testing"});
    stage.post("/api/v1/namespaces/default/events", &note).await.expect(201);
    for (path, accept) in [
        (EVENTS, "application/json"),
        (EVENTS, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
        ("/api/v1/events?limit=500", "*/*"),
    ] {
        let listed = stage.send("GET", path, &[("accept", accept)], "").await.expect(200);
        let kind = listed["kind"].as_str().unwrap();
        assert!(matches!(kind, "EventList" | "Table"), "{path} {accept}: {listed}");
    }
    let watch = stage.start("GET", "/api/v1/events?watch=true", &[("accept", "*/*")], "").await;
    assert_eq!(watch.headers()["content-type"], "application/json");
    for accept in ["text/event-stream", "*/*"] {
        Events::open(&stage, EVENTS, &[("accept", accept)]).await;
    }
}
