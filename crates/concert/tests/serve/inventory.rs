//! The fleet as kubectl shows and edits it, beside the inventory's own door.

use serde_json::{Value, json};

use crate::plane::Plane;
use crate::wait::eventually;
use crate::wire::call;

fn ask(plane: &Plane, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (code, text) = call(&plane.address, method, &format!("/inventory/v1{path}"), &body).unwrap();
    (code, serde_json::from_str(&text).unwrap_or_default())
}

#[test]
fn kubectl_shows_the_fleet_and_of_secrets_only_where_they_are() {
    let Some(plane) = Plane::start_with(&["--dev", "--only", "inventory"]) else { return };
    assert_eq!(ask(&plane, "PUT", "/section-types/credentials", &json!({"secret": true})).0, 201);
    let sections = json!({"network": {"vnet_name": "a"}, "credentials": {"kubeconfig": "canary"}});
    let entry = json!({"id": "rt-1", "kind": "runtime", "sections": sections});
    assert_eq!(ask(&plane, "POST", "/entries", &entry).0, 201);
    let table = plane.kubectl(&["get", "clusters.inventory.concert.dev"]);
    assert!(table.starts_with("NAME   KIND      PHASE   READY   AGE\nrt-1   runtime"), "{table}");
    let table = plane.kubectl(&["get", "sections", "-l", "inventory.concert.dev/entry=rt-1"]);
    assert!(table.contains("rt-1.credentials   rt-1    credentials   1         true"), "{table}");
    for form in ["yaml", "json", "wide"] {
        let shown = plane.kubectl(&["get", "sections,clusters.inventory.concert.dev", "-o", form]);
        assert!(!shown.contains("canary"), "{shown}");
    }
    let secret = plane.get("section", "rt-1.credentials")["spec"]["secretRef"]["name"].clone();
    assert!(secret.as_str().is_some_and(|it| it.starts_with("rt-1.credentials.1-")), "{secret}");

    // What is edited is the contents; the server counts.
    let edit = json!({"spec": {"data": {"vnet_name": "b"}, "version": 50}}).to_string();
    plane.kubectl(&["patch", "section", "rt-1.network", "--type=merge", "-p", &edit]);
    let (_, shown) = ask(&plane, "GET", "/entries/rt-1/sections/network", &Value::Null);
    assert_eq!((&shown["version"], &shown["data"]["vnet_name"]), (&json!(2), &json!("b")));
    let grant = |name: &str| {
        json!({"apiVersion": "inventory.concert.dev/v1alpha1", "kind": "Grant", "metadata": {"name": name},
            "spec": {"write": ["network"]}})
    };
    plane.apply(&grant("network"));
    let refused = plane.refused(&["apply", "-f", "-"], &grant("second").to_string());
    assert!(refused.contains("written by reconciler 'network'"), "{refused}");

    plane.kubectl(&["delete", "clusters.inventory.concert.dev", "rt-1"]);
    eventually("everything of the entry is collected", || {
        let left = plane.kubectl(&["get", "sections,secrets", "-n", "concert-inventory", "-o", "name"]);
        if left.is_empty() { Ok(()) } else { Err(left) }
    });
}
