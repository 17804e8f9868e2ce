//! An inventory in a process of its own, and whoever uses it from another one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use concert_api::auth::issue_for_user;
use concert_api::inventory::{Unminted, Wanted};
use concert_engine::{Tasks, TokioSpawn};
use concert_model::inventory::names;
use concert_model::{GroupKind, Object, ObjectKey};
use concert_store::{By, Chance, Clock, Event, PageRequest, Query, Store as _, SystemClock};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Inventory;
use crate::serve::tests::call;
use crate::serve::{Elsewhere, Layer, Plane, Running};

const RBAC: &str = "rbac.authorization.k8s.io";

async fn plane(folder: &tempfile::TempDir, name: &str, more: Layer) -> Running {
    let layer = Layer {
        data_dir: Some(folder.path().join(name)),
        listen: Some("127.0.0.1:0".into()),
        admin_listen: Some("0".into()),
        plugins: Some("off".into()),
        ..Layer::default()
    };
    Plane::new(more.over(layer).resolve().unwrap()).start().await.unwrap()
}

fn only(part: &str) -> Layer {
    Layer { only: Some(part.into()), ..Layer::default() }
}

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn entry(id: &str) -> Object {
    object(json!({"apiVersion": "inventory.concert.dev/v1alpha1", "kind": "Cluster",
        "metadata": {"name": id}, "spec": {"kind": "runtime"}}))
}

async fn elsewhere(url: String, token: Option<&std::path::Path>, ca: Option<&std::path::Path>) -> Inventory {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
    let [token_file, ca_file] = [token, ca].map(|it| it.map(std::path::Path::to_owned));
    Inventory::elsewhere(&Elsewhere { url, token_file, ca_file }, &clock, &tasks).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_part_serves_what_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let dev = || Layer { dev: Some(true), ..Layer::default() };
    let inventory = plane(&folder, "inventory", only("inventory").over(dev())).await;
    let at = inventory.address();
    let url = Some(format!("http://{at}"));
    let mothership = Layer { inventory: url, ..only("mothership").over(dev()) };
    let mothership = plane(&folder, "mothership", mothership).await;
    let codes = async |path: &str| {
        let one = call(at, "GET", path, Value::Null).await.0;
        (one, call(mothership.address(), "GET", path, Value::Null).await.0)
    };
    assert_eq!(codes("/inventory/v1/entries").await, (200, 404));
    assert_eq!(codes("/apis/inventory.concert.dev/v1alpha1/clusters").await, (200, 404));
    assert_eq!(codes("/apis/mothership.concert.dev/v1alpha1/items").await, (404, 200));
    assert_eq!(codes("/api/v1/workers").await, (404, 200));
    assert_eq!(codes("/api/v1/namespaces/concert-inventory").await, (200, 404));
    mothership.stop().await;
    inventory.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_made_elsewhere_is_good_for_one_entry_there() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Layer { dev: Some(true), ..Layer::default() };
    let running = plane(&folder, "inventory", only("inventory").over(dev)).await;
    let at = running.address();
    for id in ["rt-1", "rt-2"] {
        let (code, _) = call(at, "POST", "/inventory/v1/entries", json!({"id": id, "kind": "runtime"})).await;
        assert_eq!(code, 201);
    }
    let (code, _) = call(at, "PUT", "/inventory/v1/grants/network", json!({"write": ["network"]})).await;
    assert_eq!(code, 201);
    let remote = elsewhere(format!("http://{at}"), None, None).await;
    let wanted = |entry: &str| Wanted { entry: entry.into(), reconciler: "network".into(), lease: None };
    let minted =
        remote.minting.mint(&[wanted("rt-1"), wanted("none")], Duration::from_secs(60)).await.unwrap();
    assert!(minted[1].is_none());
    let token = &minted[0].as_ref().unwrap().token;
    let url = remote.minting.url("rt-1");
    assert_eq!(url, format!("http://{at}/inventory/v1/entries/rt-1"));
    let client = |entry: &str| format!("/inventory/v1/entries/{entry}/sections/network");
    let body = json!({"data": {"vnet_name": "a"}});
    let with = crate::serve::tests::call_with;
    assert_eq!(with(at, "PUT", &client("rt-1"), token, body.clone()).await.0, 200);
    assert_eq!(with(at, "PUT", &client("rt-2"), token, body).await.0, 403);
    let section = remote.store.get(&names::section_key("rt-1", "network")).await.unwrap().decode();
    assert_eq!(section.spec()["writer"], "network");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_of_a_mothership_is_enough_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let running = plane(&folder, "inventory", only("inventory")).await;
    let store = running.store();
    let by = By::actor("test");
    store.create(entry("rt-1"), &by).await.unwrap();
    let binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": "mothership"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "system:mothership"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "mothership"}]});
    store.create(object(binding), &by).await.unwrap();
    let ca = folder.path().join("ca.crt");
    let kubeconfig = std::fs::read_to_string(folder.path().join("inventory/kubeconfig")).unwrap();
    let kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).unwrap();
    let authority = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"].as_str().unwrap();
    std::fs::write(&ca, concert_model::base64::decode(authority).unwrap()).unwrap();
    let url = format!("https://{}", running.address());
    let token_of = async |user: &str| {
        let (chance, clock) = (Chance::from_system(), SystemClock::new());
        let issued = issue_for_user(store, &clock, &chance, user, &[], None, &by).await.unwrap();
        let path = folder.path().join(user);
        std::fs::write(&path, issued.token).unwrap();
        path
    };
    let token = token_of("mothership").await;
    let remote = elsewhere(url.clone(), Some(&token), Some(&ca)).await;

    let page = remote.store.list(&Query::all(names::entry_kind()), &PageRequest::whole()).await.unwrap();
    assert_eq!(page.items.len(), 1);
    let mut events =
        remote.store.watch(&Query::all(names::section_kind()), Some(&page.position)).await.unwrap();
    let section = concert_model::inventory::Section::of(
        concert_model::inventory::Entry(&page.items[0].decode()),
        "network",
    );
    store.create(section, &by).await.unwrap();
    let event = loop {
        match events.next().await.unwrap().unwrap() {
            Event::Bookmark { .. } => {}
            event => break event,
        }
    };
    assert_eq!(&*event.object().unwrap().key().name, "rt-1.network");
    let mut entry = remote.store.get(&names::entry_key("rt-1")).await.unwrap().decode();
    entry.set("status", json!({"phase": "Ready"}));
    let written = remote.store.update_status(entry, &by).await.unwrap().decode();
    assert_eq!(written.status()["phase"], "Ready");
    let wanted = [Wanted { entry: "rt-1".into(), reconciler: "network".into(), lease: None }];
    let minted = remote.minting.mint(&wanted, Duration::from_secs(60)).await.unwrap();
    assert!(minted[0].as_ref().unwrap().token.starts_with("concert_inventory_"));

    let secret = ObjectKey::namespaced(GroupKind::new("", "Secret"), "concert-inventory", "a");
    assert!(remote.store.get(&secret).await.is_err());
    let stranger = token_of("stranger").await;
    let stranger = elsewhere(url, Some(&stranger), Some(&ca)).await;
    assert!(stranger.store.get(&names::entry_key("rt-1")).await.is_err());
    let refused = stranger.minting.mint(&wanted, Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(refused, Unminted::Refused(_)), "{refused}");
    running.stop().await;
}

#[tokio::test]
async fn files_that_are_not_there_are_said_by_name() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
    let elsewhere =
        Elsewhere { url: "http://127.0.0.1:1".into(), token_file: Some("/none/token".into()), ca_file: None };
    let error = Inventory::elsewhere(&elsewhere, &clock, &tasks).await.err().unwrap();
    assert!(error.to_string().contains("/none/token"), "{error}");
}

/// What is served at a path, whatever it is.
async fn text(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_is_in_no_metric_and_in_no_file() {
    const CANARY: &str = "canary-51c0";
    let folder = tempfile::tempdir().unwrap();
    let dev = Layer { dev: Some(true), admin_listen: Some("127.0.0.1:0".into()), ..Layer::default() };
    let running = plane(&folder, "inventory", only("inventory").over(dev)).await;
    let at = running.address();
    let kind = "/inventory/v1/section-types/credentials";
    assert_eq!(call(at, "PUT", kind, json!({"secret": true})).await.0, 201);
    let entry = json!({"id": "byoc", "kind": "byoc", "sections": {"credentials": {"kubeconfig": CANARY}}});
    assert_eq!(call(at, "POST", "/inventory/v1/entries", entry).await.0, 201);
    let path = "/inventory/v1/entries/byoc/sections/credentials";
    assert_eq!(call(at, "GET", path, Value::Null).await.1["data"]["kubeconfig"], CANARY);
    let metrics = text(running.admin_address().unwrap(), "/metrics").await;
    assert!(metrics.contains("# TYPE") && !metrics.contains(CANARY));
    running.stop().await;
    let mut files = 0;
    for file in std::fs::read_dir(folder.path().join("inventory")).unwrap() {
        let path = file.unwrap().path();
        let Ok(bytes) = std::fs::read(&path) else { continue };
        files += 1;
        let has_canary = bytes.windows(CANARY.len()).any(|it| it == CANARY.as_bytes());
        assert!(!has_canary, "{}", path.display());
    }
    assert!(files > 2, "the store and the audit trail are files");
}
