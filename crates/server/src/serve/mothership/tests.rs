//! A fleet over HTTP, once with everything in one process and once with the inventory in another.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::serve::tests::{call, call_with};
use crate::serve::{Layer, Plane, Running};

async fn plane(
    folder: &tempfile::TempDir,
    name: &str,
    only: Option<&str>,
    inventory: Option<String>,
) -> Running {
    let layer = Layer {
        data_dir: Some(folder.path().join(name)),
        listen: Some("127.0.0.1:0".into()),
        admin_listen: Some("127.0.0.1:0".into()),
        plugins: Some("off".into()),
        dev: Some(true),
        only: only.map(str::to_owned),
        inventory,
        ..Layer::default()
    };
    Plane::new(layer.resolve().unwrap()).start().await.unwrap()
}

async fn text(address: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Where the inventory and the mothership are.
struct Fleet {
    inventory: SocketAddr,
    mothership: SocketAddr,
}

impl Fleet {
    async fn register(&self, name: &str, watches: Value, grants: Value) -> u16 {
        let body = json!({"name": name, "handles": [{"kind": "runtime"}], "watches": watches,
            "grants": grants, "resync_seconds": 3600, "host_id": "h",
            "cluster_events": [{"group": "services", "version": "v1", "kind": "ServiceInstance"}]});
        call(self.mothership, "POST", "/api/v1/workers", body).await.0
    }

    async fn claim(&self, name: &str) -> Value {
        let ask = json!({"limit": 5, "wait_seconds": 10, "host_id": "h"});
        let (code, answer) =
            call(self.mothership, "POST", &format!("/api/v1/workers/{name}/claim"), ask).await;
        assert_eq!((code, answer["items"].as_array().map(Vec::len)), (200, Some(1)), "{name}: {answer}");
        answer["items"][0].clone()
    }

    async fn report(&self, name: &str, item: &Value, result: Value) -> Value {
        let mut result = result;
        result["item"] = item["item"].clone();
        result["fence"] = item["lease"]["fence"].clone();
        let body = json!({"results": [result]});
        let path = format!("/api/v1/workers/{name}/results");
        let (code, answer) = call(self.mothership, "POST", &path, body).await;
        assert_eq!(code, 200, "{answer}");
        answer["results"][0].clone()
    }

    async fn ready(&self, name: &str, item: &Value) {
        let result = json!({"outcome": "ready", "observed_revision": item["inventory"]["revision"]});
        assert_eq!(self.report(name, item, result).await["status"], 200);
    }

    /// What a reconciler does with the token of its claim.
    async fn put(&self, item: &Value, section: &str, data: Value) -> u16 {
        let path = self.path(item, section);
        let token = item["inventory"]["token"].as_str().unwrap();
        call_with(self.inventory, "PUT", &path, token, json!({"data": data})).await.0
    }

    fn path(&self, item: &Value, section: &str) -> String {
        let url = item["inventory"]["url"].as_str().unwrap();
        let path = url.strip_prefix(&format!("http://{}", self.inventory)).unwrap_or(url);
        format!("{path}/sections/{section}")
    }

    async fn phase(&self, wanted: &str) -> Value {
        loop {
            let path = "/apis/inventory.concert.dev/v1alpha1/clusters/rt-1";
            let (code, entry) = call(self.inventory, "GET", path, Value::Null).await;
            let phase = if code == 404 { "gone" } else { entry["status"]["phase"].as_str().unwrap_or("") };
            if phase == wanted {
                return entry;
            }
        }
    }
}

async fn life(fleet: &Fleet) {
    let entry = json!({"id": "rt-1", "kind": "runtime", "tenant": "acme", "labels": {"a": "b"}});
    assert_eq!(call(fleet.inventory, "POST", "/inventory/v1/entries", entry).await.0, 201);
    let watches = json!([{"section": "network", "path": "/vnet_name"}]);
    let grants = json!({"read": ["network"], "write": ["cluster"]});
    let nosy = json!([{"section": "credentials"}]);
    assert_eq!(fleet.register("shoot", nosy, grants.clone()).await, 403, "it may not read that");
    assert_eq!(fleet.register("shoot", watches, grants).await, 201);

    let shoot = fleet.claim("shoot").await;
    assert_eq!(shoot["item"], "rt-1/shoot");
    let object = json!({"entry": "rt-1", "kind": "runtime", "tenant": "acme", "labels": {"a": "b"},
        "deleting": false});
    assert_eq!(shoot["object"], object);
    let nosy = json!({"outcome": "not_ready", "waits_for": [{"section": "credentials"}]});
    assert_eq!(fleet.report("shoot", &shoot, nosy).await["status"], 403);
    let waits = json!({"outcome": "not_ready", "message": "no network", "observed_revision": 0,
        "waits_for": [{"section": "network", "path": "/vnet_name"}]});
    assert_eq!(fleet.report("shoot", &shoot, waits).await["status"], 200);
    let entry = fleet.phase("Reconciling").await;
    assert_eq!(entry["status"]["message"], "shoot waits for section network /vnet_name: no network");

    let second = json!({"write": ["cluster"]});
    assert_eq!(fleet.register("second", json!([]), second).await, 409, "a section has one writer");
    assert_eq!(fleet.register("network", json!([]), json!({"write": ["network"]})).await, 201);
    let network = fleet.claim("network").await;
    assert_eq!(fleet.put(&network, "cluster", json!({})).await, 403, "nobody granted that");
    assert_eq!(fleet.put(&network, "network", json!({"vnet_name": "a"})).await, 200);
    fleet.ready("network", &network).await;

    let shoot = fleet.claim("shoot").await;
    let reasons: Vec<&str> = shoot["reasons"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(reasons.contains(&"dependency"), "{reasons:?}");
    let mut late = shoot.clone();
    late["lease"]["fence"] = json!(shoot["lease"]["fence"].as_u64().unwrap() + 1);
    let refused = fleet.report("shoot", &late, json!({"outcome": "ready"})).await;
    assert_eq!(refused["status"], 409, "{refused}");
    assert_eq!(fleet.put(&shoot, "cluster", json!({"name": "c"})).await, 200);
    fleet.ready("shoot", &shoot).await;
    let entry = fleet.phase("Ready").await;
    assert_eq!(entry["status"]["items"], json!({"ready": 2}));

    let (code, overview) = call(fleet.mothership, "GET", "/mothership/v1/fleet", Value::Null).await;
    assert_eq!((code, &overview["items"]["ready"], &overview["entries"]), (200, &json!(2), &json!(1)));
    let path = "/mothership/v1/entries/rt-1/explain";
    let (code, explained) = call(fleet.mothership, "GET", path, Value::Null).await;
    assert_eq!((code, &explained["isReady"]), (200, &json!(true)), "{explained}");
    let chain = explained["chain"].as_array().unwrap();
    assert!(chain.iter().any(|it| it["name"] == "shoot"), "{explained}");
    assert_eq!(call(fleet.mothership, "GET", &path.replace("rt-1", "rt-9"), Value::Null).await.0, 404);
    let (code, entry) = call(fleet.mothership, "GET", "/mothership/v1/entries/rt-1", Value::Null).await;
    assert_eq!((code, entry["items"].as_array().map(Vec::len)), (200, Some(2)), "{entry}");
    let post = async |path: &str, body: Value| call(fleet.mothership, "POST", path, body).await;
    assert_eq!(post("/mothership/v1/entries/rt-1/nobody/run", Value::Null).await.0, 404);
    assert_eq!(post("/mothership/v1/entries/rt-1/network/run", Value::Null).await.0, 202);
    let network = fleet.claim("network").await;
    assert_eq!(network["reasons"], json!(["asked"]));
    assert_eq!(post("/mothership/v1/entries/rt-1/network/stop", Value::Null).await.0, 202);
    assert_eq!(fleet.report("network", &network, json!({"outcome": "ready"})).await["status"], 409);
    // Nobody has claimed it since, and its token is good for minutes.
    assert_eq!(fleet.put(&network, "network", json!({"vnet_name": "stopped"})).await, 409);
    fleet.phase("Stopped").await;
    assert_eq!(post("/mothership/v1/entries/rt-1/network/run", Value::Null).await.0, 202);
    let (late, network) = (network, fleet.claim("network").await);
    // The first host has not noticed yet, and the second one has not written yet.
    assert_eq!(fleet.put(&late, "network", json!({"vnet_name": "a", "by": "the first"})).await, 409);
    let written = json!({"vnet_name": "a", "by": "the second"});
    assert_eq!(fleet.put(&network, "network", written.clone()).await, 200);
    assert_eq!(fleet.put(&late, "network", json!({"vnet_name": "late"})).await, 409);
    assert_eq!(fleet.put(&late, "network", written).await, 409, "although it would change nothing");
    fleet.ready("network", &network).await;
    fleet.phase("Ready").await;

    let event = json!({"events": [{"entry": "rt-1", "group": "services", "kind": "ServiceInstance",
        "namespace": "default", "name": "a", "verb": "create"}]});
    let (code, woken) = post("/mothership/v1/events", event).await;
    assert_eq!((code, &woken["woken"]), (202, &json!(2)), "{woken}");
    for name in ["shoot", "network"] {
        let item = fleet.claim(name).await;
        assert_eq!(item["reasons"], json!(["cluster-event"]));
        fleet.ready(name, &item).await;
    }
    assert_eq!(post("/mothership/v1/events", json!({"events": [{"entry": "A B"}]})).await.0, 422);

    assert_eq!(call(fleet.inventory, "DELETE", "/inventory/v1/entries/rt-1", Value::Null).await.0, 202);
    for name in ["shoot", "network"] {
        let item = fleet.claim(name).await;
        assert_eq!(item["object"]["deleting"], true);
        fleet.ready(name, &item).await;
    }
    fleet.phase("gone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_fleet_lives_in_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let running = plane(&folder, "all", None, None).await;
    life(&Fleet { inventory: running.address(), mothership: running.address() }).await;
    let admin = running.admin_address().unwrap();
    let metrics = text(admin, "/metrics").await;
    for line in [
        "concert_mothership_requeue_reason_total{reason=\"not_ready\",type=\"intended\"} 1",
        "concert_mothership_requeue_reason_total{reason=\"lease_expired\",type=\"unexpected\"} 0",
        "concert_mothership_queue_age_seconds{reconciler=\"shoot\"} 0",
        "concert_mothership_occupancy_ratio{reconciler=\"shoot\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
    assert!(!metrics.contains("rt-1"), "no label has an entry in it");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_a_fleet_lives_with_its_inventory_in_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let inventory = plane(&folder, "inventory", Some("inventory"), None).await;
    let url = Some(format!("http://{}", inventory.address()));
    let mothership = plane(&folder, "mothership", Some("mothership"), url).await;
    life(&Fleet { inventory: inventory.address(), mothership: mothership.address() }).await;
    mothership.stop().await;
    inventory.stop().await;
}
