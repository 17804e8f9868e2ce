//! The routes of workers against a real store, a real board and a controller that lends everything.

mod components;
mod stage;

use std::time::Duration;

use concert_engine::{Seen, Wait};
use concert_model::no8s::{Phase, Resource};
use serde_json::{Value, json};

use crate::rest::call::IfMatch;
use stage::Stage;

fn register(name: &str, handles: Value) -> Value {
    json!({"name": name, "handles": handles, "host_id": "h"})
}

#[tokio::test]
async fn a_type_has_one_owner_until_it_gives_it_free() {
    let stage = Stage::new().await;
    let dns = json!([{"resource_type": "DnsRecord"}]);
    assert_eq!(stage.call("POST", "workers", register("dns_record", dns.clone())).await.0, 201);
    assert_eq!(stage.call("POST", "workers", register("dns_record", dns.clone())).await.0, 200);
    let (code, refused) = stage.call("POST", "workers", register("other_dns", dns.clone())).await;
    let text = "Resource type 'DnsRecord' is already claimed by reconciler 'dns_record'. Cannot register 'other_dns'.";
    assert_eq!((code, &refused["detail"]), (409, &json!(text)));
    let one_version = json!([{"resource_type": "DnsRecord", "version": "v9"}]);
    assert_eq!(stage.call("POST", "workers", register("other_dns", one_version)).await.0, 409);
    let (_, all) = stage.call("GET", "workers", Value::Null).await;
    assert_eq!((&all[0]["name"], &all[0]["status"]), (&json!("dns_record"), &json!("Ready")));
    assert_eq!(stage.call("DELETE", "workers/dns_record", Value::Null).await.0, 204);
    assert_eq!(stage.call("GET", "workers/dns_record", Value::Null).await.0, 404);
    assert_eq!(stage.call("POST", "workers", register("other_dns", dns)).await.0, 201);
}

#[tokio::test]
async fn versions_of_a_type_and_actions_may_have_owners_of_their_own() {
    let stage = Stage::new().await;
    let of = |version: &str| json!([{"resource_type": "DnsRecord", "version": version}]);
    assert_eq!(stage.call("POST", "workers", register("one", of("v1"))).await.0, 201);
    assert_eq!(stage.call("POST", "workers", register("two", of("v2"))).await.0, 201);
    let exec = json!([{"action": "exec"}]);
    assert_eq!(stage.call("POST", "workers", register("actions", exec.clone())).await.0, 201);
    let (code, refused) = stage.call("POST", "workers", register("more", exec)).await;
    assert_eq!(code, 409);
    assert!(refused["detail"].as_str().unwrap().contains("Action plugin 'exec'"), "{refused}");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_field() {
    let stage = Stage::new().await;
    for (path, body) in [
        ("workers", json!({})),
        ("workers", json!({"name": "a b", "handles": []})),
        ("workers", json!({"name": "a/b", "handles": [{"kind": "runtime"}]})),
        ("workers", json!({"name": "a"})),
        ("workers", json!({"name": "a", "handles": [{}]})),
        ("workers", json!({"name": "a", "handles": [], "concurrency": 0})),
        ("workers/dns_record/claim", json!({"limit": -1})),
        ("workers/dns_record/claim", json!({"claim_id": "x".repeat(129)})),
        ("workers/dns_record/writes", json!({})),
        ("workers/dns_record/writes", json!({"writes": 7})),
    ] {
        let (code, refused) = stage.call("POST", path, body.clone()).await;
        assert_eq!(code, 422, "{path} {body}: {refused}");
        assert!(refused["detail"][0]["loc"].is_array(), "{refused}");
    }
    assert_eq!(stage.call("POST", "workers/nobody/claim", json!({"limit": 1})).await.0, 404);
    for what in ["writes", "results"] {
        let path = format!("workers/nobody/{what}");
        assert_eq!(stage.call("POST", &path, json!({what: []})).await.0, 404, "{what}");
    }
    assert_eq!(stage.call("PATCH", "workers", Value::Null).await.0, 405);
    assert_eq!(stage.call("GET", "workers/a/b/c", Value::Null).await.0, 404);
}

#[tokio::test]
async fn a_host_claims_writes_and_reports() {
    let stage = Stage::with_worker().await;
    stage.create(7).await;
    let item = stage.one().await;
    assert_eq!((&item["item"], &item["object"]["name"]), (&json!("7"), &json!("r7")));
    let fence = item["lease"]["fence"].as_u64().unwrap();
    let write = |op: Value| {
        let mut write = json!({"item": "7", "fence": fence});
        write.as_object_mut().unwrap().extend(op.as_object().unwrap().clone());
        write
    };
    let condition = json!({"op": "condition", "type": "DnsRecordSynced", "status": "True", "reason": "R", "observed_generation": 1});
    let writes = json!({"writes": [
        write(json!({"op": "status", "status": "reconciling", "message": "Syncing"})),
        write(condition),
        write(json!({"op": "condition", "type": "X", "status": "maybe", "reason": "R"})),
        write(json!({"op": "outputs", "outputs": {"ip": "1.2.3.4"}})),
        write(json!({"op": "add_finalizer", "finalizer": "ext"})),
        write(json!({"op": "status", "status": "ready", "message": "synced", "observed_generation": 1})),
        write(json!({"op": "status", "status": "shiny"})),
        write(json!({"op": "nothing"})),
        {"item": "8", "fence": 1, "op": "get_finalizers"},
        {"op": "get_finalizers"},
        write(json!({"op": "result", "success": true, "message": "Synced", "trigger_reason": "spec_change"})),
        write(json!({"op": "result", "success": true})),
        write(json!({"op": "status", "status": "failed"})),
    ]});
    let (code, answers) = stage.call("POST", "workers/dns_record/writes", writes).await;
    let codes: Vec<u64> =
        answers["results"].as_array().unwrap().iter().map(|it| it["status"].as_u64().unwrap()).collect();
    assert_eq!((code, codes), (200, vec![200, 200, 422, 200, 200, 200, 422, 422, 409, 422, 200, 200, 409]));
    assert_eq!(answers["results"][4]["finalizers"], json!(["dns_record", "ext"]));
    assert!(answers["results"][12]["detail"].as_str().unwrap().starts_with("stale fence: "), "{answers}");
    let object = stage.get(7).await;
    let it = Resource(&object);
    assert_eq!((it.phase().as_str(), it.message(), it.observed_generation()), ("ready", Some("synced"), 1));
    assert_eq!(it.outputs(), &json!({"ip": "1.2.3.4"}));
    let kinds: Vec<String> = it.conditions().into_iter().map(|it| it.kind).collect();
    assert_eq!(kinds, ["Ready", "Reconciling", "Degraded", "DnsRecordSynced"]);
    assert_eq!(stage.ends(), ["7 Some(true) Synced said ready"]);
}

#[tokio::test]
async fn the_last_finalizer_takes_the_object_along_and_the_rest_of_the_lease_still_works() {
    let stage = Stage::with_worker().await;
    stage.create(7).await;
    stage.delete(7).await;
    let item = stage.one().await;
    let under = |op: &str| json!({"item": 7, "fence": item["lease"]["fence"], "op": op, "finalizer": "dns_record", "success": true});
    let writes = ["hard_delete", "remove_finalizer", "get_finalizers", "hard_delete", "result"].map(under);
    let (_, answers) = stage.call("POST", "workers/dns_record/writes", json!({"writes": writes})).await;
    let results = answers["results"].as_array().unwrap();
    assert!(results.iter().all(|it| it["status"] == 200), "{answers}");
    assert_eq!(results[0]["deleted"], false);
    assert_eq!((&results[2]["finalizers"], &results[3]["deleted"]), (&json!([]), &json!(true)));
    assert_eq!(stage.ends().len(), 1);
}

#[tokio::test]
async fn a_failure_whose_answer_was_lost_and_that_is_sent_again_counts_once() {
    let stage = Stage::with_worker().await;
    stage.create(7).await;
    let fence = stage.one().await["lease"]["fence"].clone();
    let failed = json!({"item": "7", "fence": fence, "op": "status", "status": "failed", "message": "boom"});
    for _ in 0..2 {
        let body = json!({"writes": [failed]});
        let (_, answers) = stage.call("POST", "workers/dns_record/writes", body).await;
        assert_eq!(answers["results"][0]["status"], 200, "{answers}");
    }
    assert_eq!(Resource(&stage.get(7).await).retry_count(), 1);
}

#[tokio::test]
async fn a_failure_that_is_sent_twice_at_one_instant_counts_once() {
    let stage = Stage::with_writer().await.registered().await;
    stage.create(7).await;
    let fence = stage.one().await["lease"]["fence"].clone();
    let failed = json!({"fence": fence, "status": "failed", "message": "boom"});
    let call = || stage.call("PUT", "resources/7/status", failed.clone());
    let (one, two, three) = tokio::join!(call(), call(), call());
    assert_eq!((one.0, two.0, three.0), (200, 200, 200), "{one:?} {two:?} {three:?}");
    assert_eq!(Resource(&stage.get(7).await).retry_count(), 1);
}

#[tokio::test]
async fn heartbeats_tell_what_is_lost() {
    let stage = Stage::with_worker().await;
    stage.create(7).await;
    let fence = stage.one().await["lease"]["fence"].clone();
    let items = json!([{"item": "7", "fence": fence}, {"item": "8", "fence": 1}]);
    let (_, answer) =
        stage.call("POST", "workers/dns_record/heartbeat", json!({"host_id": "h", "items": items})).await;
    assert_eq!((&answer["items"][0]["item"], &answer["lost"][0]["item"]), (&json!("7"), &json!("8")));
    assert!(answer["items"][0]["expires_at"].is_string());
    for bad in [json!({"item": "7"}), json!({"item": "7", "fence": "1"}), json!({"fence": 1}), json!("7")] {
        let body = json!({"host_id": "h", "items": [{"item": "7", "fence": fence}, bad]});
        let (code, said) = stage.call("POST", "workers/dns_record/heartbeat", body).await;
        assert_eq!(code, 422, "{bad}: {said}");
    }
}

#[tokio::test]
async fn a_version_that_is_no_text_is_refused() {
    let stage = Stage::new().await;
    for version in [json!(1), json!(["v1"]), json!(true)] {
        let handles = json!([{"resource_type": "DnsRecord", "version": version}]);
        let (code, said) = stage.call("POST", "workers", register("one", handles)).await;
        assert_eq!(code, 422, "{said}");
        assert_eq!(said["detail"][0]["loc"], json!(["body", "handles"]));
    }
}

#[tokio::test]
async fn a_write_without_a_lease_is_of_the_state_that_if_match_names() {
    let stage = Stage::with_worker().await;
    stage.create(7).await;
    let version = stage.get(7).await.resource_version().unwrap();
    let seen = IfMatch(Some(&*version.0));
    let ready = json!({"status": "ready", "observed_generation": 1});
    assert_eq!(stage.call_if("PUT", "resources/7/status", ready, seen).await.0, 200);
    for (path, body) in [
        ("resources/7/status", json!({"status": "failed"})),
        ("resources/7/outputs", json!({"outputs": {"a": 1}})),
        ("resources/7/conditions/Synced", json!({"status": "True", "reason": "R"})),
    ] {
        let (code, said) = stage.call_if("PUT", path, body, seen).await;
        assert_eq!(code, 412, "{path}: {said}");
    }
    let any = IfMatch(Some("*"));
    assert_eq!(stage.call_if("PUT", "resources/7/outputs", json!({"outputs": {"b": 2}}), any).await.0, 200);
    let object = stage.get(7).await;
    assert_eq!((Resource(&object).phase(), Resource(&object).outputs()), (Phase::Ready, &json!({"b": 2})));
}

#[tokio::test]
async fn single_writes_need_the_fence_while_somebody_has_the_resource() {
    let stage = Stage::with_worker().await;
    stage.create(7).await;
    let ready = json!({"status": "ready", "observed_generation": 1});
    let (code, shown) = stage.call("PUT", "resources/7/status", ready.clone()).await;
    assert_eq!((code, &shown["name"]), (200, &json!("r7")));
    let fence = stage.one().await["lease"]["fence"].clone();
    assert_eq!(stage.call("PUT", "resources/7/status", ready).await.0, 409);
    let outputs = json!({"fence": fence, "outputs": {"a": 1}});
    assert_eq!(stage.call("PUT", "resources/7/outputs", outputs.clone()).await.0, 200);
    let old = json!({"fence": 0, "outputs": {"a": 2}});
    assert_eq!(stage.call("PUT", "resources/7/outputs", old).await.0, 409);
    let condition = json!({"fence": fence, "status": "False", "reason": "R"});
    assert_eq!(stage.call("PUT", "resources/7/conditions/Synced", condition).await.0, 200);
    assert_eq!(stage.call("PUT", "resources/9/outputs", outputs.clone()).await.0, 409);
    assert_eq!(stage.call("PUT", "resources/9/outputs", json!({"outputs": {}})).await.0, 404);
    assert_eq!(stage.call("PUT", "resources/x/outputs", outputs).await.0, 422);
    let object = stage.get(7).await;
    assert_eq!(Resource(&object).outputs(), &json!({"a": 1}));
}

#[tokio::test]
async fn results_say_all_in_one_entry() {
    let stage = Stage::with_worker().await;
    for id in [1, 2, 3, 4] {
        stage.create(id).await;
    }
    let items = stage.claim(10).await;
    let entry = |item: &Value| {
        let (outcome, more) = match item["item"].as_str().unwrap() {
            "1" => ("ready", json!({"observed_generation": 1, "outputs": {"a": 1}})),
            "2" => ("failed", json!({"message": "boom"})),
            "3" => ("requeue", json!({"retry_after": 5})),
            _ => ("not_ready", json!({"waits_for": [{"object": "1", "condition": "Ready"}]})),
        };
        let mut entry = json!({"item": item["item"], "fence": item["lease"]["fence"], "outcome": outcome});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    let results: Vec<Value> = items.iter().map(entry).collect();
    let (_, answers) = stage.call("POST", "workers/dns_record/results", json!({"results": results})).await;
    assert!(answers["results"].as_array().unwrap().iter().all(|it| it["status"] == 200), "{answers}");
    let mut phases = Vec::new();
    for id in [1, 2, 3, 4] {
        phases.push(Resource(&stage.get(id).await).phase().to_string());
    }
    assert_eq!(phases, ["ready", "failed", "reconciling", "reconciling"]);
    let mut ends = stage.ends();
    ends.sort();
    assert_eq!(ends[1], "2 Some(false) boom said failed");
    assert_eq!(ends[3], "4 Some(true)  said reconciling, waits 1");
}

#[tokio::test]
async fn a_result_says_at_which_phase_it_leaves_what_the_outcome_leaves_open() {
    let stage = Stage::with_worker().await;
    for (id, outcome, status, left) in [
        (1, "ready", json!("ready"), Value::Null),
        (2, "requeue", json!("ready"), Value::Null),
        (3, "requeue", json!("pending"), json!("pending")),
        (4, "requeue", json!("reconciling"), json!("reconciling")),
        (5, "requeue", Value::Null, json!("reconciling")),
        (6, "not_ready", json!("pending"), json!("pending")),
        (7, "not_ready", Value::Null, json!("reconciling")),
        (8, "failed", json!("failed"), Value::Null),
    ] {
        stage.create(id).await;
        let item = stage.one().await;
        let result = json!({"item": item["item"], "fence": item["lease"]["fence"], "outcome": outcome,
            "status": status, "retry_after": 60});
        let (_, answer) =
            stage.call("POST", "workers/dns_record/results", json!({"results": [result]})).await;
        assert_eq!(answer["results"][0]["status"], 200, "{result}: {answer}");
        let report = stage.last_report();
        let told = report.details.get("left_at").cloned().unwrap_or_default();
        assert_eq!((report.success, told), (Some(outcome != "failed"), left), "{result}");
        assert_eq!(report.requeue_after, Some(Duration::from_secs(60)), "{result}");
        let phase = if status.is_null() { "reconciling" } else { status.as_str().unwrap() };
        assert_eq!(Resource(&stage.get(id).await).phase().as_str(), phase, "{result}");
    }
}

#[tokio::test]
async fn a_phase_that_contradicts_its_outcome_is_refused_and_nothing_is_written() {
    let stage = Stage::with_worker().await;
    stage.create(1).await;
    let item = stage.one().await;
    let before = stage.get(1).await;
    for (outcome, status, allowed) in [
        ("ready", json!("pending"), "must be ready"),
        ("requeue", json!("failed"), "must be reconciling or ready or pending"),
        ("requeue", json!("deleting"), "must be reconciling or ready or pending"),
        ("not_ready", json!("ready"), "must be reconciling or pending"),
        ("failed", json!("reconciling"), "must be failed"),
        ("requeue", json!("shiny"), "must be reconciling or ready or pending"),
        ("ready", json!({"phase": "ready"}), "must be ready"),
        ("failed", json!(7), "must be failed"),
    ] {
        let result = json!({"item": item["item"], "fence": item["lease"]["fence"], "outcome": outcome,
            "status": status, "outputs": {"ip": "1.2.3.4"}});
        let (_, answer) =
            stage.call("POST", "workers/dns_record/results", json!({"results": [result]})).await;
        let told = &answer["results"][0];
        assert_eq!(told["status"], 422, "{result}: {answer}");
        assert_eq!(told["detail"][0]["loc"], json!(["body", "status"]), "{answer}");
        assert!(told["detail"][0]["msg"].as_str().unwrap().contains(allowed), "{answer}");
    }
    assert_eq!(stage.get(1).await, before);
    let result = json!({"item": item["item"], "fence": item["lease"]["fence"], "outcome": "ready"});
    let (_, answer) = stage.call("POST", "workers/dns_record/results", json!({"results": [result]})).await;
    assert_eq!(answer["results"][0]["status"], 200, "the lease is good still: {answer}");
}

#[tokio::test]
async fn a_result_says_what_kind_of_failure_and_what_was_read() {
    let stage = Stage::with_worker().await;
    for id in [1, 2] {
        stage.create(id).await;
    }
    let items = stage.claim(2).await;
    let [one, two] = &items[..] else { panic!("{items:?}") };
    let result = async |item: &Value, more: Value| {
        let mut result = json!({"item": item["item"], "fence": item["lease"]["fence"]});
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (_, answer) =
            stage.call("POST", "workers/dns_record/results", json!({"results": [result]})).await;
        answer["results"][0]["status"].clone()
    };
    for bad in [
        json!({"outcome": "failed", "error_class": "odd"}),
        json!({"outcome": "ready", "status": {"phase": "ready"}}),
    ] {
        assert_eq!(result(one, bad.clone()).await, 422, "{bad}");
    }
    assert_eq!(result(one, json!({"outcome": "failed", "error_class": "terminal"})).await, 200);
    assert_eq!(stage.last_report().details["error_class"], "terminal");
    let waits_for = json!([{"object": one["item"], "resource_version": "before"}]);
    assert_eq!(result(two, json!({"outcome": "not_ready", "waits_for": waits_for})).await, 200);
    let report = stage.last_report();
    let [Wait::Object { seen: Seen::At { resource_version, .. }, .. }] = &report.waits[..] else {
        panic!("{report:?}")
    };
    assert_eq!(&*resource_version.0, "before");
}

#[tokio::test]
async fn a_result_whose_answer_was_lost_may_be_sent_again_and_changes_nothing() {
    let stage = Stage::with_worker().await;
    stage.create(7).await;
    let fence = stage.one().await["lease"]["fence"].as_u64().unwrap();
    let send = async |fence: u64, ip: &str| {
        let result = json!({"item": "7", "fence": fence, "outcome": "ready", "outputs": {"ip": ip}});
        let (_, answer) =
            stage.call("POST", "workers/dns_record/results", json!({"results": [result]})).await;
        answer["results"][0]["status"].clone()
    };
    assert_eq!(send(fence, "1.2.3.4").await, 200);
    assert_eq!(send(fence, "5.6.7.8").await, 200);
    assert_eq!(send(fence + 1, "5.6.7.8").await, 409);
    assert_eq!(Resource(&stage.get(7).await).outputs(), &json!({"ip": "1.2.3.4"}));
    assert_eq!(stage.ends().len(), 1);
}

#[tokio::test]
async fn who_waits_for_something_that_is_gone_comes_again_at_once() {
    let stage = Stage::with_worker().await;
    stage.create(1).await;
    let item = stage.one().await;
    let waits_for = json!([{"object": item["item"], "condition": "Synced"}, {"object": "99"}]);
    let result = json!({"item": item["item"], "fence": item["lease"]["fence"], "outcome": "not_ready",
        "waits_for": waits_for, "retry_after": 3600});
    let (_, answer) = stage.call("POST", "workers/dns_record/results", json!({"results": [result]})).await;
    assert_eq!(answer["results"][0]["status"], 200, "{answer}");
    let report = stage.last_report();
    assert_eq!((report.waits.len(), report.requeue_after), (0, Some(Duration::ZERO)));
}

#[tokio::test]
async fn a_stranger_may_not() {
    let stage = Stage::guarded().await;
    for (method, path) in [
        ("GET", "workers"),
        ("POST", "workers"),
        ("DELETE", "workers/dns_record"),
        ("POST", "workers/dns_record/claim"),
        ("POST", "workers/dns_record/heartbeat"),
        ("POST", "workers/dns_record/writes"),
        ("POST", "workers/dns_record/results"),
    ] {
        let body = register("dns_record", json!([{"resource_type": "DnsRecord"}]));
        let (code, refused) = stage.call(method, path, body).await;
        assert_eq!((code, &refused["detail"]), (403, &json!("Insufficient permissions")), "{method} {path}");
    }
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_made_again_at_no_cost() {
    let stage = Stage::with_worker().await;
    stage.create(1).await;
    let ask = json!({"limit": 1, "wait_seconds": 5, "host_id": "h", "claim_id": "c1"});
    let (_, lost) = stage.call("POST", "workers/dns_record/claim", ask.clone()).await;
    let (_, again) = stage.call("POST", "workers/dns_record/claim", ask).await;
    let fence = |answer: &Value| answer["items"][0]["lease"]["fence"].clone();
    assert_eq!((&again["items"][0]["item"], fence(&again)), (&json!("1"), fence(&lost)));
    let result = json!({"results": [{"item": "1", "fence": fence(&again), "outcome": "ready"}]});
    let (_, answer) = stage.call("POST", "workers/dns_record/results", result).await;
    assert_eq!(answer["results"][0]["status"], 200, "{answer}");
    assert_eq!(stage.ends().len(), 1);
}

#[tokio::test]
async fn a_worker_is_shown_with_what_runs_and_what_waits() {
    let stage = Stage::with_worker().await;
    for id in 1..=3 {
        stage.create(id).await;
    }
    let items = stage.claim(1).await;
    let none = json!({"limit": 0, "wait_seconds": 60, "host_id": "h"});
    let (code, answer) = stage.call("POST", "workers/dns_record/claim", none).await;
    assert_eq!((code, answer), (200, json!({"items": []})), "nothing is asked for, so nothing is waited for");
    let (_, shown) = stage.call("GET", "workers/dns_record", Value::Null).await;
    assert_eq!((items.len(), &shown["running"], &shown["waiting"]), (1, &json!(1), &json!(2)), "{shown}");
    assert_eq!((&shown["hosts"][0]["host_id"], &shown["hosts"][0]["leases"]), (&json!("h"), &json!(1)));
}
