//! Component reconcilers of a fleet at the routes of workers.

use serde_json::{Value, json};

use super::stage::Stage;

fn shoot() -> Value {
    json!({"name": "shoot", "handles": [{"kind": "runtime"}, {"kind": "other"}], "host_id": "h",
        "watches": [{"section": "network", "path": "/vnet_name"}, {"section": "spec"}],
        "cluster_events": [{"group": "services", "version": "v1", "kind": "ServiceInstance"}],
        "grants": {"read": ["network", "spec"], "write": ["cluster"]}, "resync_seconds": 60})
}

#[tokio::test]
async fn a_component_reconciler_says_what_wakes_it_and_what_it_may_do() {
    let stage = Stage::new().await;
    let (code, shown) = stage.call("POST", "workers", shoot()).await;
    assert_eq!(code, 201, "{shown}");
    assert_eq!(shown["handles"], json!([{"kind": "runtime"}, {"kind": "other"}]));
    for field in ["watches", "cluster_events", "resync_seconds"] {
        assert_eq!(shown[field], shoot()[field], "{field}");
    }
    assert_eq!(stage.call("POST", "workers", shoot()).await.0, 200);
    let mut other = shoot();
    other["name"] = json!("other");
    let (code, refused) = stage.call("POST", "workers", other.clone()).await;
    assert_eq!(code, 409, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("'cluster' is written by reconciler 'shoot'"));
    other["grants"] = json!({"read": ["cluster"]});
    let (code, refused) = stage.call("POST", "workers", other.clone()).await;
    assert_eq!(code, 403, "what it watches it must be granted to read: {refused}");
    assert!(refused["detail"].as_str().unwrap().contains("no grant to read section 'network'"));
    other["grants"] = json!({"read": ["network", "spec"]});
    assert_eq!(stage.call("POST", "workers", other).await.0, 201, "many may handle the same kind");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_nothing_is_registered() {
    let stage = Stage::new().await;
    for (field, value) in [
        ("handles", json!([{"kind": "A B"}])),
        ("handles", json!([{"kind": ""}])),
        ("handles", json!([{"resource_type": "DnsRecord"}])),
        ("watches", json!([{}])),
        ("watches", json!([{"section": "A B"}])),
        ("watches", json!([{"section": "network", "path": "vnet_name"}])),
        ("watches", json!([{"section": "network", "path": 7}])),
        ("watches", json!({})),
        ("cluster_events", json!([{"group": "a"}])),
        ("cluster_events", json!([{"group": "A B", "version": "v1", "kind": "C"}])),
        ("cluster_events", json!([{"group": "a", "version": "v1", "kind": "C", "namespace": "A B"}])),
        ("grants", json!({"read": ["A B"]})),
        ("grants", json!({"write": "network"})),
        ("grants", json!([])),
    ] {
        let mut body = shoot();
        body[field] = value.clone();
        let (code, answer) = stage.call("POST", "workers", body).await;
        assert_eq!(code, 422, "{field} {value}: {answer}");
        assert_eq!(stage.call("GET", "workers/shoot", Value::Null).await.0, 404);
    }
}

#[tokio::test]
async fn of_an_entry_nothing_is_written_but_results() {
    let stage = Stage::new().await;
    assert_eq!(stage.call("POST", "workers", shoot()).await.0, 201);
    let write = |op: Value| {
        let mut op = op;
        op["item"] = json!("rt-1/shoot");
        op["fence"] = json!(1);
        json!({"writes": [op]})
    };
    for (op, code) in [
        (json!({"op": "status", "status": "ready"}), 422),
        (json!({"op": "outputs", "outputs": {}}), 422),
        (json!({"op": "result", "success": true}), 422),
        (json!({"op": "release"}), 409),
    ] {
        let (_, answer) = stage.call("POST", "workers/shoot/writes", write(op.clone())).await;
        assert_eq!(answer["results"][0]["status"], code, "{op}: {answer}");
    }
    let result = |more: Value| {
        let mut result = more;
        result["item"] = json!("rt-1/shoot");
        result["fence"] = json!(1);
        json!({"results": [result]})
    };
    for (said, code) in
        [(json!({"outcome": "ready"}), 409), (json!({"outcome": "fine"}), 422), (json!({}), 422)]
    {
        let (_, answer) = stage.call("POST", "workers/shoot/results", result(said.clone())).await;
        assert_eq!(answer["results"][0]["status"], code, "{said}: {answer}");
    }
}

#[tokio::test]
async fn conditions_are_waited_for_only_of_entries_that_the_reconciler_handles() {
    let stage = Stage::new().await;
    assert_eq!(stage.call("POST", "workers", shoot()).await.0, 201);
    stage.entry("rt-2", "runtime").await;
    stage.entry("hub", "hub").await;
    // Nobody holds the item: what is allowed gets as far as that.
    for (entry, code) in [
        (Value::Null, 409),
        (json!("rt-1"), 409),
        (json!("rt-2"), 409),
        (json!("none"), 409),
        (json!("hub"), 403),
    ] {
        let result = json!({"item": "rt-1/shoot", "fence": 1, "outcome": "not_ready",
            "waits_for": [{"condition": "Ready", "entry": entry}]});
        let (_, answer) = stage.call("POST", "workers/shoot/results", json!({"results": [result]})).await;
        assert_eq!(answer["results"][0]["status"], code, "{entry}: {answer}");
    }
}

#[tokio::test]
async fn who_may_not_write_grants_gets_none() {
    let stage = Stage::guarded().await;
    assert_eq!(stage.call("POST", "workers", shoot()).await.0, 403);
}
