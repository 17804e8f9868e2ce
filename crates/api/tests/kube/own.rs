//! What Kubernetes does not have: explain, history, plan.

use std::sync::Arc;

use async_trait::async_trait;
use concert_api::Error;
use concert_api::kube::{Extensions, Limits};
use concert_model::{Object, ObjectKey};
use serde_json::{Value, json};

use crate::stage::{Stage, WIDGETS, widget};

struct Echo;

#[async_trait]
impl Extensions for Echo {
    async fn explain(&self, key: &ObjectKey) -> Result<Value, Error> {
        Ok(json!({"sentence": format!("{key} is fine")}))
    }

    async fn plan(&self, objects: Vec<Object>) -> Result<Value, Error> {
        Ok(json!({ "count": objects.len() }))
    }
}

#[tokio::test]
async fn explain_and_plan_are_asked_outside() {
    let stage = Stage::bare(Limits::default(), Arc::new(Echo)).await;
    let path = "/api/v1/namespaces/default/configmaps/a/explain";
    assert_eq!(stage.get(path).await.expect(200), json!({"sentence": "ConfigMap default/a is fine"}));
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [object]});
    let plan = "/apis/concert.dev/v1alpha1/plan";
    assert_eq!(stage.post(plan, &list).await.expect(200), json!({"count": 1}));
    assert_eq!(stage.post(plan, &json!({})).await.refusal().0, 400);
    assert_eq!(stage.post(plan, &json!({"items": [{"kind": "A"}]})).await.refusal().0, 400);
    assert_eq!(stage.get(plan).await.refusal().0, 405);
}

#[tokio::test]
async fn history_says_who_wrote_what() {
    let stage = Stage::new().await;
    stage.create("a").await;
    stage
        .patch(&format!("{WIDGETS}/a?fieldManager=me"), "merge-patch+json", &json!({"spec": {"size": 2}}))
        .await
        .expect(200);
    stage.delete(&format!("{WIDGETS}/a")).await.expect(200);
    let history = stage.get(&format!("{WIDGETS}/a/history")).await.expect(200);
    let items = history["items"].as_array().unwrap();
    let acts: Vec<&Value> = items.iter().map(|item| &item["act"]).collect();
    assert_eq!(acts, ["Removed", "Updated", "Created"]);
    assert_eq!((&items[1]["actor"], &items[1]["reason"]), (&json!("developer"), &json!("patch")));
    assert_eq!((&items[1]["manager"], &items[1]["object"]["spec"]["size"]), (&json!("me"), &json!(2)));
    let older = stage
        .get(&format!("{WIDGETS}/a/history?limit=1&before={}", items[1]["revision"].as_str().unwrap()))
        .await;
    assert_eq!(older.expect(200)["items"][0]["act"], "Created");
    assert_eq!(stage.get(&format!("{WIDGETS}/b/history")).await.refusal().0, 404);
    stage.get(&format!("{WIDGETS}/a/history?limit=500")).await.expect(200);
    for limit in [0, 501] {
        let (code, _, message) = stage.get(&format!("{WIDGETS}/a/history?limit={limit}")).await.refusal();
        assert_eq!(code, 400);
        assert!(message.contains(&format!("limit={limit} must be from 1 to 500")), "{message}");
    }
}

#[tokio::test]
async fn history_of_a_secret_shows_no_secret() {
    let stage = Stage::new().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let last = "kubectl.kubernetes.io/last-applied-configuration";
    let secret =
        json!({"metadata": {"name": "s", "annotations": {last: "aHVzaA=="}}, "data": {"k": "aHVzaA=="}});
    stage.post(secrets, &secret).await.expect(201);
    let history = stage.get(&format!("{secrets}/s/history")).await;
    assert_eq!(history.expect(200)["items"][0]["object"]["data"], json!({"k": "REDACTED"}));
    assert!(!String::from_utf8_lossy(&history.bytes).contains("aHVzaA"));
}

#[tokio::test]
async fn a_service_account_gets_a_token() {
    let stage = Stage::new().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    stage.post(accounts, &json!({"metadata": {"name": "robot"}})).await.expect(201);
    let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {"expirationSeconds": 600}});
    let path = format!("{accounts}/robot/token");
    let answer = stage.post(&path, &request).await.expect(201);
    assert!(answer["status"]["token"].as_str().unwrap().len() > 20);
    assert_eq!(answer["status"]["expirationTimestamp"], "2026-01-01T00:10:00Z");
    assert_eq!(stage.post(&format!("{accounts}/nobody/token"), &request).await.refusal().0, 404);
    let short = json!({"spec": {"expirationSeconds": 1}});
    assert_eq!(stage.post(&path, &short).await.refusal().0, 422);
    assert_eq!(stage.post(&format!("{WIDGETS}/a/token"), &widget("a")).await.refusal().0, 404);
}
