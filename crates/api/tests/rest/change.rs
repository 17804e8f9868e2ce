//! `/api/v1/resources`: changing.

use concert_model::time;
use serde_json::json;

use crate::stage::{RECORDS, RESOURCES, Stage, spec};

const ONE: &str = "/api/v1/resources/1";

#[tokio::test]
async fn a_new_spec_is_a_new_generation_and_pending() {
    let stage = Stage::new().await;
    stage.record("a").await;
    stage.make_ready("a").await;
    let mut changed = spec();
    changed["value"] = json!("203.0.113.51");
    let shown = stage.put(ONE, &json!({"spec": changed})).await.expect(200);
    assert_eq!((&shown["generation"], &shown["observed_generation"]), (&json!(2), &json!(1)));
    assert_eq!((&shown["status"], &shown["retry_count"]), (&json!("pending"), &json!(0)));
    assert_eq!((&shown["spec"]["value"], &shown["spec"]["ttl"]), (&json!("203.0.113.51"), &json!(300)));
    assert!(shown["next_reconcile_time"].is_string());
}

#[tokio::test]
async fn what_changes_nothing_changes_nothing() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let before = stage.get(ONE).await;
    for body in [json!({}), json!({"spec": spec()}), json!({"plugin_config": {}}), json!({"spec": null})] {
        let after = stage.put(ONE, &body).await;
        assert_eq!(after.expect(200), before.json(), "{body}");
        assert_eq!(after.header("etag"), before.header("etag"), "{body}");
    }
}

#[tokio::test]
async fn each_part_that_is_given_replaces_what_is_there() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let change = json!({"plugin_config": {"a": 1}, "metadata": {"labels": {"team": "net"}}});
    let shown = stage.put(ONE, &change).await.expect(200);
    assert_eq!((&shown["plugin_config"], &shown["labels"]), (&json!({"a": 1}), &json!({"team": "net"})));
    assert_eq!(shown["generation"], 2);
    let shown = stage.put(ONE, &json!({"plugin_config": {"b": 2}, "metadata": {}})).await.expect(200);
    assert_eq!((&shown["plugin_config"], &shown["labels"]), (&json!({"b": 2}), &json!({})));
    assert_eq!(shown["spec"]["domain"], "api.example.com");
}

#[tokio::test]
async fn a_spec_that_is_wrong_is_refused_and_nothing_changes() {
    let stage = Stage::new().await;
    let before = stage.record("a").await;
    let mut bad = spec();
    (bad["ttl"], bad["type"]) = (json!(5), json!("MX"));
    let detail = "Spec validation failed: ttl: 5 is less than the minimum of 60; type: 'MX' is not one of ['A', \
                  'AAAA', 'CNAME', 'TXT']";
    assert_eq!(stage.put(ONE, &json!({"spec": bad})).await.refusal(), (400, detail.into()));
    assert_eq!(stage.put(ONE, &json!({"spec": []})).await.wrong()[0].0, "dict_type");
    assert_eq!(stage.put(ONE, &json!([])).await.wrong()[0].0, "model_attributes_type");
    assert_eq!(stage.get(ONE).await.expect(200), before);
}

#[tokio::test]
async fn who_names_a_state_changes_only_that_state() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let seen = stage.get(ONE).await.header("etag").unwrap().to_owned();
    let put = async |tag: &str, value: &str| {
        let mut changed = spec();
        changed["value"] = json!(value);
        let headers = [("content-type", "application/json"), ("if-match", tag)];
        stage.send("PUT", ONE, &headers, json!({"spec": changed}).to_string()).await
    };
    put(&seen, "1").await.expect(200);
    assert_eq!(put(&seen, "2").await.refusal().0, 412);
    assert_eq!(stage.send("DELETE", ONE, &[("if-match", &seen)], "").await.refusal().0, 412);
    assert_eq!(stage.get(ONE).await.expect(200)["spec"]["value"], "1");
    put("*", "3").await.expect(200);
    let now = stage.get(ONE).await.header("etag").unwrap().to_owned();
    put(&format!("\"none\", W/{now}"), "4").await.expect(200);
}

#[tokio::test]
async fn finalizers_come_and_go() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let path = format!("{ONE}/finalizers");
    let shown = stage.put(&path, &json!({"add": ["ext", "ext"], "remove": ["none"]})).await.expect(200);
    assert_eq!(shown["finalizers"], json!(["dns_record", "ext"]));
    assert_eq!(shown["generation"], 1);
    let shown = stage.put(&path, &json!({"remove": ["ext"]})).await.expect(200);
    assert_eq!(shown["finalizers"], json!(["dns_record"]));
    assert_eq!(stage.put(&path, &json!({"add": ["not ok"]})).await.wrong()[0].0, "value_error");
    assert_eq!(stage.put(&path, &json!({"add": "x", "remove": [1]})).await.wrong().len(), 2);
}

#[tokio::test]
async fn a_run_can_be_asked_for() {
    let stage = Stage::new().await;
    stage.record("a").await;
    stage.make_ready("a").await;
    let path = format!("{ONE}/reconcile");
    let said = stage.send("POST", &path, &[], "").await.expect(202);
    assert_eq!(said, json!({"message": "Reconciliation triggered", "resource_id": 1}));
    let object = stage.get(&format!("{RECORDS}/a")).await.expect(200);
    assert!(object["metadata"]["annotations"]["no8s.concert.dev/reconcile-at"].is_string());
    let shown = stage.get(&format!("{RESOURCES}/1")).await.expect(200);
    assert_eq!((&shown["generation"], &shown["status"]), (&json!(1), &json!("ready")));
}

#[tokio::test]
async fn a_run_can_be_asked_for_after_a_while() {
    let stage = Stage::new().await;
    stage.record("a").await;
    stage.make_ready("a").await;
    let path = format!("{ONE}/reconcile");
    let next = async || {
        let shown = stage.get(ONE).await.expect(200);
        time::parse(&format!("{}Z", shown["next_reconcile_time"].as_str().unwrap())).unwrap()
    };
    stage.send("POST", &path, &[], "").await.expect(202);
    let now = next().await;
    stage.post(&path, &json!({"delay_seconds": 7200})).await.expect(202);
    let late = next().await;
    assert_eq!(late.duration_since(now).as_secs(), 7200);
    for body in [
        json!({"delay_seconds": -1}),
        json!({"delay_seconds": 1e9}),
        json!({"delay_seconds": "1"}),
        json!([]),
    ] {
        stage.post(&path, &body).await.expect(422);
    }
    assert_eq!(next().await, late);
}
