//! A kubeconfig appears in no log, error, event, history or metric: only in its Secret and to who may read
//! it.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::stage::{BASE, OBJECTS, Stage, data, section};

const CANARY: &str = "canary-7f3a";

/// Everything that is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_kubeconfig_is_seen_by_who_may_read_it_and_nowhere_else() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "credentials");
    let reader = stage.token_of("reader", &[]).await;
    stage.allow("reader", "sections", &["get", "list", "watch"], &[]).await;
    stage.allow("reader", "clusters", &["get", "list"], &[]).await;
    let kubeconfig = format!("apiVersion: v1\nusers: [{{user: {{token: {CANARY}}}}}]");
    let mut said = Vec::new();

    // What goes well.
    said.push(stage.put(&path, data(json!({"kubeconfig": kubeconfig}))).await);
    said.push(stage.put(&path, data(json!({"kubeconfig": format!("{kubeconfig} 2")}))).await);
    let byoc =
        json!({"id": "byoc-1", "kind": "byoc", "sections": {"credentials": {"kubeconfig": kubeconfig}}});
    said.push(stage.post("/entries", byoc).await);
    // What does not, in every way that comes to mind.
    let wrong = json!({"kubeconfig": [CANARY], CANARY: CANARY});
    for body in [
        data(wrong.clone()),
        data(json!({"other": CANARY})),
        data(json!(CANARY)),
        json!({"data": {"kubeconfig": CANARY}, CANARY: 1}),
        json!(CANARY),
        json!([CANARY]),
    ] {
        said.push(stage.put(&path, body).await);
    }
    said.push(
        stage
            .ask_with(
                &stage.admin,
                "PUT",
                &path,
                &[("if-match", "\"9\"")],
                data(json!({"kubeconfig": CANARY})),
            )
            .await,
    );
    said.push(stage.put(&section("rt-1", "credentials%20"), data(wrong.clone())).await);
    said.push(stage.put(&section("none", "credentials"), data(wrong.clone())).await);
    said.push(stage.ask(&reader, "PUT", &path, data(json!({"kubeconfig": CANARY}))).await);
    for sections in [json!({"credentials": wrong}), json!({"credentials": CANARY}), json!([CANARY])] {
        said.push(
            stage.post("/entries", json!({"id": "byoc-2", "kind": "byoc", "sections": sections})).await,
        );
        said.push(stage.post("/entries", json!({"kind": "byoc", "sections": sections})).await);
        said.push(stage.ask(&stage.admin, "PATCH", "/entries/byoc-1", json!({"sections": sections})).await);
    }
    let raw = format!("{{\"data\": {{\"kubeconfig\": \"{CANARY}");
    let bearer = format!("Bearer {}", stage.admin);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    said.push(stage.client.send("PUT", &format!("{BASE}{path}"), &headers, raw).await);
    let object = json!({"apiVersion": "inventory.concert.dev/v1alpha1", "kind": "Section",
        "metadata": {"name": "rt-2.credentials"},
        "spec": {"entry": "rt-2", "section": "credentials", "data": {"kubeconfig": CANARY}}});
    said.push(stage.ask(&stage.admin, "POST", &format!("{OBJECTS}/sections"), object).await);
    // Everything that can be looked at by somebody who may not see secrets.
    for path in [
        "/entries".to_owned(),
        "/entries/rt-1".into(),
        "/entries/byoc-1".into(),
        path.clone(),
        format!("{path}/history"),
        format!("{OBJECTS}/sections"),
        format!("{OBJECTS}/sections/rt-1.credentials"),
        format!("{OBJECTS}/sections/rt-1.credentials/history"),
        format!("{OBJECTS}/clusters"),
    ] {
        said.push(stage.ask(&reader, "GET", &path, Value::Null).await);
    }
    // The administrator sees it in one place, and its past nowhere.
    for path in [
        format!("{path}/history"),
        "/api/v1/namespaces/concert-inventory/secrets/rt-1.credentials.1/history".into(),
    ] {
        said.push(stage.ask(&stage.admin, "GET", &path, Value::Null).await);
    }
    for reply in &said {
        let text = String::from_utf8_lossy(&reply.bytes);
        assert!(!text.contains(CANARY), "{} {text}", reply.code);
    }
    let seen = stage.get(&path).await.expect(200);
    assert!(seen["data"]["kubeconfig"].as_str().unwrap().contains(CANARY));

    for (group, kind) in
        [("inventory.concert.dev", "Section"), ("inventory.concert.dev", "Cluster"), ("", "Event")]
    {
        for object in stage.all(group, kind).await {
            assert!(!String::from_utf8_lossy(object.body().payload()).contains(CANARY), "{}", object.key());
        }
    }
    let audited = stage.audited().await;
    assert!(audited.len() > said.len());
    assert!(audited.iter().all(|line| !line.to_string().contains(CANARY)));
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!logged.contains(CANARY), "{logged}");
}
