//! `/api/v1/resources`: creating and reading.

use serde_json::{Value, json};

use crate::stage::{RECORDS, RESOURCES, Stage, TYPES, dns_type, record, spec};

#[tokio::test]
async fn the_guides_resource_is_made() {
    let stage = Stage::new().await;
    let reply = stage.post(RESOURCES, &record("api-record")).await;
    let created = reply.expect(201);
    assert_eq!(reply.header("location"), Some("/api/v1/resources/1"));
    assert!(reply.header("etag").is_some());
    let expected = json!({
        "id": 1, "name": "api-record", "resource_type_name": "DnsRecord", "resource_type_version": "v1",
        "action_plugin": "", "status": "pending", "status_message": null, "generation": 1,
        "observed_generation": 0, "finalizers": ["dns_record"], "conditions": [], "last_reconcile_time": null,
        "plugin_config": {}, "metadata": {}, "outputs": {}, "retry_count": 0, "deleted_at": null,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&created[field], value, "{field}");
    }
    let mut completed = spec();
    completed["ttl"] = json!(300);
    assert_eq!(created["spec"], completed);
    assert_eq!(created["spec_hash"].as_str().unwrap().len(), 64);
    assert_eq!(created["next_reconcile_time"], created["created_at"]);
    assert_eq!(stage.get(&format!("{RESOURCES}/1")).await.expect(200), created);
    let by_name = format!("{RESOURCES}/by-name/DnsRecord/v1/api-record");
    assert_eq!(stage.get(&by_name).await.expect(200), created);
}

#[tokio::test]
async fn the_checks_come_in_their_order() {
    let stage = Stage::new().await;
    stage.worker("actions", json!([{"action": "http_api"}, {"action": "exec"}])).await;
    let mut body = json!({"name": "a", "resource_type_name": "None", "resource_type_version": "v1"});
    body["action_plugin"] = json!("none");
    let detail = "Unknown action plugin: none. Available plugins: exec, http_api";
    assert_eq!(stage.post(RESOURCES, &body).await.refusal(), (400, detail.into()));
    body.as_object_mut().unwrap().remove("action_plugin");
    let detail = "No reconciler plugin registered for resource type 'None' and no action_plugin specified";
    assert_eq!(stage.post(RESOURCES, &body).await.refusal(), (400, detail.into()));
    body["action_plugin"] = json!("exec");
    assert_eq!(stage.post(RESOURCES, &body).await.refusal(), (400, "spec is required".into()));
    body["spec"] = json!({});
    assert_eq!(stage.post(RESOURCES, &body).await.refusal(), (400, "spec is required".into()));
    body["spec"] = json!({"a": 1});
    assert_eq!(stage.post(RESOURCES, &body).await.refusal(), (400, "Resource type None/v1 not found".into()));
    body["resource_type_name"] = json!("DnsRecord");
    let detail = "Spec validation failed: (root): 'domain' is a required property; (root): 'type' is a required \
                  property; (root): 'value' is a required property";
    assert_eq!(stage.post(RESOURCES, &body).await.refusal(), (400, detail.into()));
    body["spec"] = spec();
    let created = stage.post(RESOURCES, &body).await.expect(201);
    assert_eq!((&created["action_plugin"], &created["finalizers"]), (&json!("exec"), &json!(["exec"])));
    assert_eq!(created["id"], 1, "what was refused has used up no number");
}

#[tokio::test]
async fn a_type_of_another_version_has_no_reconciler_unless_one_claims_it() {
    let stage = Stage::bare().await;
    stage.worker("dns_record", json!([{"resourceType": "DnsRecord", "version": "v1"}])).await;
    for version in ["v1", "v2"] {
        stage.post(TYPES, &dns_type(version)).await.expect(201);
    }
    stage.record("a").await;
    let mut body = record("a");
    body["resource_type_version"] = json!("v2");
    assert_eq!(stage.post(RESOURCES, &body).await.refusal().0, 400);
}

#[tokio::test]
async fn what_is_wrong_with_a_body_is_named_by_field() {
    let stage = Stage::new().await;
    let said = stage.post(RESOURCES, &record("API")).await.expect(422);
    assert_eq!(
        said["detail"],
        json!([{"type": "value_error", "loc": ["body", "name"], "msg": "Value error, name must consist of lowercase \
            alphanumeric characters or '-', must start and end with an alphanumeric character", "input": "API",
            "ctx": {"error": {}}}])
    );
    let bad = json!({"name": "a".repeat(64), "resource_type_name": 1, "action_plugin": [], "spec": "x",
        "plugin_config": 1, "metadata": []});
    let wrong = stage.post(RESOURCES, &bad).await.wrong();
    let wrong: Vec<_> =
        wrong.iter().map(|(kind, place)| (kind.as_str(), place[1].as_str().unwrap())).collect();
    assert_eq!(
        wrong,
        [
            ("string_too_long", "name"),
            ("string_type", "resource_type_name"),
            ("missing", "resource_type_version"),
            ("string_type", "action_plugin"),
            ("dict_type", "spec"),
            ("dict_type", "plugin_config"),
            ("dict_type", "metadata"),
        ]
    );
    let headers = [("content-type", "application/json")];
    let reply = stage.send("POST", RESOURCES, &headers, "{\"name\": ").await;
    assert_eq!(reply.wrong()[0].0, "json_invalid");
    assert_eq!(stage.send("POST", RESOURCES, &headers, "").await.wrong()[0].0, "missing");
    assert_eq!(stage.send("POST", RESOURCES, &headers, "[]").await.wrong()[0].0, "model_attributes_type");
}

#[tokio::test]
async fn a_name_is_used_once_in_each_type() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let again = stage.post(RESOURCES, &record("a")).await;
    assert_eq!(again.refusal(), (409, "Resource 'a' already exists".into()));
    stage.delete(&format!("{RESOURCES}/1")).await.expect(202);
    assert_eq!(stage.post(RESOURCES, &record("a")).await.refusal().0, 409);
    stage.put(&format!("{RESOURCES}/1/finalizers"), &json!({"remove": ["dns_record"]})).await.expect(200);
    let next = stage.record("a").await;
    assert!(next["id"].as_u64().unwrap() > 1, "numbers are not used again");
}

#[tokio::test]
async fn a_spec_may_be_a_megabyte_and_no_more() {
    let stage = Stage::new().await;
    let mut body = record("a");
    body["spec"]["value"] = json!("x".repeat(1024 * 1024));
    let wrong = stage.post(RESOURCES, &body).await.wrong();
    assert_eq!(wrong, [("value_error".to_owned(), json!(["body", "spec"]))]);
    body["spec"] = spec();
    body["plugin_config"] = json!({"x": "x".repeat(1024 * 1024)});
    assert_eq!(stage.post(RESOURCES, &body).await.wrong()[0].1, json!(["body", "plugin_config"]));
    assert_eq!(stage.get(RESOURCES).await.expect(200), json!([]));
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let stage = Stage::new().await;
    let not_found = (404, "Resource not found".to_owned());
    for path in ["/9", "/0", "/-1", "/9/outputs", "/9/history", "/9/events", "/by-name/DnsRecord/v1/none"] {
        assert_eq!(stage.get(&format!("{RESOURCES}{path}")).await.refusal(), not_found, "{path}");
    }
    assert_eq!(stage.get(&format!("{RESOURCES}/by-name/None/v1/a")).await.refusal(), not_found);
    assert_eq!(stage.put(&format!("{RESOURCES}/9"), &json!({})).await.refusal(), not_found);
    assert_eq!(stage.put(&format!("{RESOURCES}/9/finalizers"), &json!({})).await.refusal(), not_found);
    assert_eq!(stage.post(&format!("{RESOURCES}/9/reconcile"), &json!({})).await.refusal(), not_found);
    assert_eq!(stage.delete(&format!("{RESOURCES}/9")).await.refusal(), not_found);
    let wrong = stage.get(&format!("{RESOURCES}/abc")).await.expect(422);
    assert_eq!(
        wrong["detail"],
        json!([{"type": "int_parsing", "loc": ["path", "resource_id"], "input": "abc",
            "msg": "Input should be a valid integer, unable to parse string as an integer"}])
    );
}

#[tokio::test]
async fn outputs_and_readiness_are_shown_as_the_worker_left_them() {
    let stage = Stage::new().await;
    stage.record("a").await;
    assert_eq!(stage.get(&format!("{RESOURCES}/1/outputs")).await.expect(200), json!({"outputs": {}}));
    stage.make_ready("a").await;
    let shown = stage.get(&format!("{RESOURCES}/1")).await.expect(200);
    assert_eq!((&shown["status"], &shown["status_message"]), (&json!("ready"), &json!("synced")));
    assert_eq!((&shown["generation"], &shown["observed_generation"]), (&json!(1), &json!(1)));
    assert_eq!(
        shown["conditions"],
        json!([{"type": "Ready", "status": "True", "reason": "ReconcileSuccess", "message": "",
            "lastTransitionTime": "2026-11-15T20:31:16+00:00", "observedGeneration": 1}])
    );
    let outputs = stage.get(&format!("{RESOURCES}/1/outputs")).await.expect(200);
    assert_eq!(outputs, json!({"outputs": {"ip": "1.2.3.4", "token": "x"}}));
}

#[tokio::test]
async fn metadata_and_configuration_are_kept() {
    let stage = Stage::new().await;
    let mut body = record("a");
    body["plugin_config"] = json!({"region": "eu"});
    body["metadata"] = json!({"labels": {"team": "net", "bad label": "x"}, "note": 1});
    let created = stage.post(RESOURCES, &body).await.expect(201);
    assert_eq!(created["plugin_config"], body["plugin_config"]);
    assert_eq!(created["metadata"], body["metadata"]);
    assert_eq!(created["labels"], json!({"team": "net"}));
}

#[tokio::test]
async fn history_tells_what_was_tried() {
    let stage = Stage::new().await;
    stage.record("a").await;
    assert_eq!(stage.get(&format!("{RESOURCES}/1/history")).await.expect(200), json!([]));
    let details = json!({"success": true, "phase": "completed", "trigger_reason": "spec_change",
        "resource_type_name": "DnsRecord", "resource_type_version": "v1", "name": "a"});
    stage.attempt(1, details.clone()).await;
    let mut failed = details;
    (failed["success"], failed["phase"], failed["error_message"]) =
        (json!(false), json!("failed"), json!("no"));
    stage.attempt(1, failed).await;
    let rows = stage.get(&format!("{RESOURCES}/1/history")).await.expect(200);
    let told: Vec<Value> =
        rows.as_array().unwrap().iter().map(|it| json!([it["success"], it["phase"]])).collect();
    assert_eq!(told, [json!([false, "failed"]), json!([true, "completed"])]);
    let row = &rows[0];
    assert_eq!((&row["resource_id"], &row["generation"]), (&json!(1), &json!(1)));
    assert_eq!((&row["error_message"], &row["resources_created"]), (&json!("no"), &json!(0)));
    assert_eq!((&row["trigger_reason"], &row["duration_seconds"]), (&json!("spec_change"), &json!(1.5)));
    let limited = stage.get(&format!("{RESOURCES}/1/history?limit=1")).await.expect(200);
    assert_eq!(limited.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_name_that_is_taken_uses_up_no_number() {
    let stage = Stage::new().await;
    assert_eq!(stage.record("a").await["id"], 1);
    for _ in 0..3 {
        let (code, detail) = stage.post(RESOURCES, &record("a")).await.refusal();
        assert_eq!((code, &*detail), (409, "Resource 'a' already exists"));
    }
    let taken = json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord", "metadata": {"name": "a"}, "spec": spec()});
    assert_eq!(stage.post(RECORDS, &taken).await.expect(409)["reason"], "AlreadyExists");
    assert_eq!(stage.record("b").await["id"], 2);
}
