//! A control plane as a whole, with a worker that speaks HTTP to it.

use std::net::SocketAddr;
use std::time::Duration;

use concert_store::{Clock, SystemClock};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Layer, Plane, Running};

async fn plane(folder: &tempfile::TempDir) -> Running {
    let layer = Layer {
        data_dir: Some(folder.path().join("data")),
        listen: Some("127.0.0.1:0".into()),
        admin_listen: Some("0".into()),
        dev: Some(true),
        plugins: Some("off".into()),
        ..Layer::default()
    };
    Plane::new(layer.resolve().unwrap()).start().await.unwrap()
}

pub(super) async fn call(address: SocketAddr, method: &str, path: &str, body: Value) -> (u16, Value) {
    call_with(address, method, path, "nobody", body).await
}

/// The same, with a token.
pub(super) async fn call_with(
    address: SocketAddr,
    method: &str,
    path: &str,
    token: &str,
    body: Value,
) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Authorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() })
}

/// The one item that becomes due.
async fn claim(address: SocketAddr) -> Value {
    let ask = json!({"limit": 10, "wait_seconds": 20, "host_id": "h"});
    let (code, answer) = call(address, "POST", "/api/v1/workers/dns_record/claim", ask).await;
    assert_eq!((code, answer["items"].as_array().map(Vec::len)), (200, Some(1)), "{answer}");
    answer["items"][0].clone()
}

/// Does all of `ops` under the lease of `item`.
async fn write(address: SocketAddr, item: &Value, ops: &[Value]) -> Vec<Value> {
    let under = |op: &Value| {
        let mut write = op.clone();
        (write["item"], write["fence"]) = (item["item"].clone(), item["lease"]["fence"].clone());
        write
    };
    let writes: Vec<Value> = ops.iter().map(under).collect();
    let (_, answer) =
        call(address, "POST", "/api/v1/workers/dns_record/writes", json!({"writes": writes})).await;
    let results = answer["results"].as_array().unwrap().clone();
    assert!(results.iter().all(|it| it["status"] == 200), "{answer}");
    results
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_takes_a_resource_through_its_life() {
    let folder = tempfile::tempdir().unwrap();
    let running = plane(&folder).await;
    let at = running.address();
    let kind =
        json!({"name": "DnsRecord", "version": "v1", "schema": {"type": "object", "required": ["domain"]}});
    assert_eq!(call(at, "POST", "/api/v1/resource-types", kind).await.0, 201);
    let record = json!({"name": "api-record", "resource_type_name": "DnsRecord", "resource_type_version": "v1",
        "spec": {"domain": "api.example.com"}});
    let (code, refused) = call(at, "POST", "/api/v1/resources", record.clone()).await;
    assert_eq!(code, 400, "nobody reconciles it: {refused}");
    let worker = json!({"name": "dns_record", "handles": [{"resource_type": "DnsRecord"}], "host_id": "h"});
    assert_eq!(call(at, "POST", "/api/v1/workers", worker).await.0, 201);
    let (code, created) = call(at, "POST", "/api/v1/resources", record).await;
    assert_eq!((code, &created["status"]), (201, &json!("pending")), "{created}");
    assert_eq!(created["finalizers"], json!(["dns_record"]));
    let path = format!("/api/v1/resources/{}", created["id"]);

    let item = claim(at).await;
    assert_eq!(item["object"]["spec"], json!({"domain": "api.example.com"}));
    let explained =
        call(at, "GET", "/apis/no8s.concert.dev/v1/dnsrecords/api-record/explain", Value::Null).await;
    assert!(explained.1.to_string().contains("plugins/dns_record"), "{explained:?}");
    let condition = json!({"op": "condition", "type": "DnsRecordSynced", "status": "True", "reason": "RecordUpserted", "observed_generation": 1});
    let ops = [
        json!({"op": "status", "status": "reconciling", "message": "Syncing DNS record"}),
        condition,
        json!({"op": "status", "status": "ready", "message": "synced", "observed_generation": 1}),
        json!({"op": "result", "success": true, "trigger_reason": "spec_change"}),
    ];
    write(at, &item, &ops).await;
    let (_, ready) = call(at, "GET", &path, Value::Null).await;
    assert_eq!((&ready["status"], &ready["observed_generation"]), (&json!("ready"), &json!(1)), "{ready}");
    let kinds: Vec<&str> =
        ready["conditions"].as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Ready", "Reconciling", "Degraded", "DnsRecordSynced"]);

    assert_eq!(call(at, "POST", &format!("{path}/reconcile"), Value::Null).await.0, 202);
    let item = claim(at).await;
    write(at, &item, &[json!({"op": "result", "success": false, "message": "boom"})]).await;
    let (_, failed) = call(at, "GET", &path, Value::Null).await;
    assert_eq!((&failed["status"], &failed["retry_count"]), (&json!("failed"), &json!(1)), "{failed}");

    assert_eq!(call(at, "DELETE", &path, Value::Null).await.0, 202);
    let item = claim(at).await;
    assert_eq!(item["object"]["status"], "deleting");
    let ops = [
        json!({"op": "remove_finalizer", "finalizer": "dns_record"}),
        json!({"op": "get_finalizers"}),
        json!({"op": "hard_delete"}),
        json!({"op": "result", "success": true}),
    ];
    let answers = write(at, &item, &ops).await;
    assert_eq!((&answers[1]["finalizers"], &answers[2]["deleted"]), (&json!([]), &json!(true)));
    assert_eq!(call(at, "GET", &path, Value::Null).await.0, 404);
    let (code, history) = call(at, "GET", &format!("{path}/history"), Value::Null).await;
    let successes: Vec<&Value> = history.as_array().unwrap().iter().map(|it| &it["success"]).collect();
    assert_eq!((code, successes), (200, vec![&json!(true), &json!(false), &json!(true)]), "{history}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_work_does_not_hold_up_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let running = plane(&folder).await;
    let at = running.address();
    let worker = json!({"name": "dns_record", "handles": [{"resource_type": "DnsRecord"}], "host_id": "h"});
    assert_eq!(call(at, "POST", "/api/v1/workers", worker).await.0, 201);
    let ask = json!({"limit": 1, "wait_seconds": 60, "host_id": "h"});
    let clock = SystemClock::new();
    let waits = call(at, "POST", "/api/v1/workers/dns_record/claim", ask);
    let ((code, answer), ()) = tokio::join!(waits, async {
        while call(at, "GET", "/api/v1/workers/dns_record", Value::Null).await.1["hosts"][0].is_null() {}
        running.stop().await;
    });
    assert_eq!((code, &answer["items"]), (200, &json!([])));
    assert!(clock.elapsed() < Duration::from_secs(30), "{:?}", clock.elapsed());
}
