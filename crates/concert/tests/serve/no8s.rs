//! Resources of no8s as kubectl sees and changes them, and REST beside it.

use serde_json::{Value, json};

use crate::plane::Plane;
use crate::wire::call;

/// Sends JSON to the REST door.
fn post(plane: &Plane, path: &str, body: &Value) -> Value {
    let (code, said) = call(&plane.address, "POST", path, &body.to_string()).unwrap();
    assert!((200..300).contains(&code), "{path}: {said}");
    serde_json::from_str(&said).unwrap()
}

fn resource(plane: &Plane) -> Value {
    let path = "/api/v1/resources/by-name/DnsRecord/v1/api-record";
    serde_json::from_str(&plane.kubectl(&["get", "--raw", path])).unwrap()
}

/// A type, and the worker that owns it.
fn prepare(plane: &Plane) {
    let kind = json!({"name": "DnsRecord", "version": "v1", "schema": {"type": "object",
        "required": ["value"], "properties": {"value": {"type": "string"}, "ttl": {"type": "integer", "default": 300}}}});
    post(plane, "/api/v1/resource-types", &kind);
    let worker = json!({"name": "dns_record", "handles": [{"resource_type": "DnsRecord"}], "host_id": "h"});
    post(plane, "/api/v1/workers", &worker);
    plane.kubectl(&[
        "wait",
        "--for=condition=Established",
        "crd/dnsrecords.no8s.concert.dev",
        "--timeout=30s",
    ]);
}

fn record(spec: &Value) -> String {
    json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord", "metadata": {"name": "api-record"}, "spec": spec})
        .to_string()
}

/// What is lent next.
fn claim(plane: &Plane) -> Value {
    let ask = json!({"host_id": "h", "limit": 10, "wait_seconds": 30});
    let claimed = post(plane, "/api/v1/workers/dns_record/claim", &ask);
    assert_eq!(claimed["items"].as_array().unwrap().len(), 1, "{claimed}");
    claimed["items"][0].clone()
}

/// What its host says about it.
fn write(plane: &Plane, lent: &Value, ops: &[Value]) {
    let under = |op: &Value| {
        let mut op = op.clone();
        (op["item"], op["fence"]) = (lent["item"].clone(), lent["lease"]["fence"].clone());
        op
    };
    let writes: Vec<Value> = ops.iter().map(under).collect();
    let answers = post(plane, "/api/v1/workers/dns_record/writes", &json!({"writes": writes}));
    for answer in answers["results"].as_array().unwrap() {
        assert_eq!(answer["status"], 200, "{answer}");
    }
}

fn says(phase: &str, message: &str, generation: u64) -> Value {
    json!({"op": "status", "status": phase, "message": message, "observed_generation": generation})
}

#[test]
fn what_kubectl_does_to_a_resource_wakes_its_worker_and_the_table_says_how_that_goes() {
    let Some(plane) = Plane::start_with(&["--dev", "--plugins", "off"]) else { return };
    prepare(&plane);
    let mut table = plane.follow(&["get", "dnsrecords", "-w"]);
    let done = json!({"op": "result", "success": true});

    plane.kubectl_with(&["create", "-f", "-"], &record(&json!({"value": "203.0.113.50"})));
    let lent = claim(&plane);
    assert_eq!((&lent["item"], &lent["object"]["status"]), (&json!("1"), &json!("pending")));
    assert_eq!(lent["object"]["spec"], json!({"value": "203.0.113.50", "ttl": 300}));
    let header = table.until("NAME");
    assert_eq!(header.split_whitespace().collect::<Vec<_>>(), ["NAME", "PHASE", "MESSAGE", "AGE"]);
    table.until("api-record");
    write(&plane, &lent, &[says("reconciling", "on its way", 0)]);
    assert!(table.until("reconciling").contains("on its way"));
    write(&plane, &lent, &[says("ready", "synced", 1), done.clone()]);
    assert!(table.until("ready").contains("synced"));

    plane.kubectl(&["patch", "dnsrecord", "api-record", "--type=merge", "-p", r#"{"spec":{"ttl":60}}"#]);
    let lent = claim(&plane);
    assert_eq!((&lent["object"]["status"], &lent["object"]["generation"]), (&json!("pending"), &json!(2)));
    write(&plane, &lent, &[says("failed", "no such zone", 2), json!({"op": "result", "success": false})]);
    assert!(table.until("failed").contains("no such zone"));

    plane.kubectl(&["delete", "dnsrecord", "api-record", "--wait=false"]);
    let lent = claim(&plane);
    assert_eq!(lent["object"]["status"], "deleting", "the back-off of what failed does not hold it up");
    table.until("deleting");
    let released = json!({"op": "remove_finalizer", "finalizer": "dns_record"});
    write(&plane, &lent, &[released, done]);
    plane.kubectl(&["wait", "--for=delete", "dnsrecord/api-record", "--timeout=30s"]);
    let path = "/api/v1/resources/1/history";
    let history: Value = serde_json::from_str(&plane.kubectl(&["get", "--raw", path])).unwrap();
    let runs: Vec<&Value> = history.as_array().unwrap().iter().map(|it| &it["success"]).collect();
    assert_eq!(runs, [true, false, true]);
}

#[test]
fn kubectl_makes_follows_edits_and_deletes_resources() {
    let Some(plane) = Plane::start_with(&["--dev", "--plugins", "off"]) else { return };
    prepare(&plane);
    let mut follower = plane.follow(&["get", "dnsrecords", "-w", "-o", "name", "--output-watch-events=true"]);
    let refused = plane.refused(&["create", "-f", "-"], &record(&json!({"ttl": 1})));
    assert!(refused.contains("'value' is a required property"), "{refused}");
    plane.kubectl_with(&["create", "-f", "-"], &record(&json!({"value": "203.0.113.50"})));
    follower.until("dnsrecord.no8s.concert.dev/api-record");

    let shown = resource(&plane);
    assert_eq!(
        (&shown["id"], &shown["status"], &shown["generation"]),
        (&json!(1), &json!("pending"), &json!(1))
    );
    assert_eq!((&shown["spec"]["ttl"], &shown["finalizers"]), (&json!(300), &json!(["dns_record"])));

    let mut command = plane.command(&["edit", "dnsrecord", "api-record"]);
    let output = command.env("KUBE_EDITOR", "sed -i 's/203.0.113.50/198.51.100.7/'").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        said,
        "dnsrecord.no8s.concert.dev/api-record edited\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    follower.until("api-record");
    let shown = resource(&plane);
    assert_eq!((&shown["spec"]["value"], &shown["generation"]), (&json!("198.51.100.7"), &json!(2)));

    plane.kubectl(&["delete", "dnsrecord", "api-record", "--wait=false"]);
    follower.until("api-record");
    assert_eq!(resource(&plane)["status"], "deleting");
    let released = json!({"remove": ["dns_record"]}).to_string();
    let (code, said) = call(&plane.address, "PUT", "/api/v1/resources/1/finalizers", &released).unwrap();
    assert_eq!(code, 200, "{said}");
    plane.kubectl(&["wait", "--for=delete", "dnsrecord/api-record", "--timeout=30s"]);
}
