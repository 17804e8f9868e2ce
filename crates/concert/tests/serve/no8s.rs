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

#[test]
fn kubectl_makes_follows_edits_and_deletes_resources() {
    let Some(plane) = Plane::start_with(&["--dev", "--plugins", "off"]) else { return };
    let kind = json!({"name": "DnsRecord", "version": "v1", "schema": {"type": "object",
        "required": ["value"], "properties": {"value": {"type": "string"}, "ttl": {"type": "integer", "default": 300}}}});
    post(&plane, "/api/v1/resource-types", &kind);
    let worker = json!({"name": "dns_record", "handles": [{"resource_type": "DnsRecord"}], "host_id": "h"});
    post(&plane, "/api/v1/workers", &worker);
    plane.kubectl(&[
        "wait",
        "--for=condition=Established",
        "crd/dnsrecords.no8s.concert.dev",
        "--timeout=30s",
    ]);

    let record = |spec: Value| json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord", "metadata": {"name": "api-record"}, "spec": spec});
    let mut follower = plane.follow(&["get", "dnsrecords", "-w", "-o", "name", "--output-watch-events=true"]);
    let refused = plane.refused(&["create", "-f", "-"], &record(json!({"ttl": 1})).to_string());
    assert!(refused.contains("'value' is a required property"), "{refused}");
    plane.kubectl_with(&["create", "-f", "-"], &record(json!({"value": "203.0.113.50"})).to_string());
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
