//! Who may ask the mothership what: every combination of identity and route.

use std::sync::Arc;

use async_trait::async_trait;
use concert_api::mothership::{Asked, Control, Event};
use concert_store::Error as StoreError;
use serde_json::{Value, json};

use crate::stage::Stage;

/// A mothership with one entry and one reconciler, which does nothing.
pub struct Idle;

#[async_trait]
impl Control for Idle {
    fn overview(&self) -> Value {
        json!({"entries": 1})
    }

    async fn entry(&self, entry: &str) -> Result<Option<Value>, StoreError> {
        Ok((entry == "rt-1").then(|| json!({"entry": entry})))
    }

    async fn explain(&self, entry: &str) -> Result<Option<Value>, StoreError> {
        self.entry(entry).await
    }

    async fn run(&self, entry: &str, reconciler: &str, _: &str) -> Result<Asked, StoreError> {
        Ok(match (entry, reconciler) {
            ("rt-1", "network") => Asked::Done,
            (_, "early") => Asked::NotYet,
            _ => Asked::Unknown,
        })
    }

    async fn stop(&self, entry: &str, reconciler: &str, actor: &str) -> Result<Asked, StoreError> {
        self.run(entry, reconciler, actor).await
    }

    fn events(&self, events: &[Event]) -> Option<usize> {
        events.iter().all(|it| it.kind != "Early").then_some(events.len())
    }
}

pub fn idle() -> Arc<dyn Control> {
    Arc::new(Idle)
}

const ROUTES: [(&str, &str, u16); 7] = [
    ("GET", "fleet", 200),
    ("GET", "entries/rt-1", 200),
    ("GET", "entries/rt-1/explain", 200),
    ("POST", "entries/rt-1/network/run", 202),
    ("POST", "entries/rt-1/network/stop", 202),
    ("POST", "events", 202),
    ("POST", "events of two", 202),
];

/// Which of `ROUTES` an identity may use: a letter for each that is allowed.
const TABLE: [(&str, &str); 8] = [
    ("nobody", ""),
    ("stranger", ""),
    ("root", "fexrsab"),
    ("reader", "fex"),
    ("operator", "rs"),
    // May run and stop one item, and tell of one entry.
    ("local", "rs"),
    ("agent", "a"),
    // A reconciler at work on the entry; with its token it may do nothing here.
    ("network@rt-1", ""),
];

fn body(route: &str) -> Value {
    let event = |entry: &str| json!({"entry": entry, "group": "apps", "kind": "Deployment"});
    match route {
        "events" => json!({"events": [event("rt-1")]}),
        "events of two" => json!({"events": [event("rt-1"), event("rt-2")]}),
        _ => Value::Null,
    }
}

#[tokio::test]
async fn r4_every_combination_of_identity_and_route_of_the_mothership() {
    let stage = Stage::with_entries().await;
    let group = "mothership.concert.dev";
    stage.allow_in(group, "reader", "items", &["list"], &[]).await;
    stage.allow_in(group, "operator", "items", &["update"], &[]).await;
    stage.allow_in(group, "local", "items", &["update"], &["rt-1.network"]).await;
    stage.allow_in(group, "agent", "events", &["create"], &["rt-1"]).await;
    for (who, allowed) in TABLE {
        let token = match who.split_once('@') {
            Some((reconciler, entry)) => stage.work(entry, reconciler).await,
            None if who == "nobody" => String::new(),
            None if who == "root" => stage.admin.clone(),
            None => stage.token_of(who, &[]).await,
        };
        for ((method, route, code), letter) in ROUTES.iter().zip("fexrsab".chars()) {
            let path = format!("/mothership/v1/{}", route.split(' ').next().unwrap());
            let reply = stage.ask(&token, method, &path, body(route)).await;
            // A token of the inventory is nobody's anywhere else.
            let refused = if who == "nobody" || who.contains('@') { 401 } else { 403 };
            let expected = if allowed.contains(letter) { *code } else { refused };
            assert_eq!(reply.code, expected, "{who} {method} {route}: {}", reply.json());
        }
    }
    for (method, path, code) in [
        ("GET", "entries/rt-9", 404),
        ("GET", "entries/rt-9/explain", 404),
        ("POST", "entries/rt-1/nobody/run", 404),
        ("POST", "entries/rt-1/early/run", 503),
        ("POST", "entries/rt-1/early/stop", 503),
        ("POST", "fleet", 405),
        ("POST", "entries/rt-1/explain", 405),
        ("GET", "events", 405),
        ("GET", "nothing", 404),
    ] {
        let reply = stage.ask(&stage.admin, method, &format!("/mothership/v1/{path}"), Value::Null).await;
        assert_eq!(reply.code, code, "{method} {path}");
    }
    let early = json!({"events": [{"entry": "rt-1", "group": "apps", "kind": "Early"}]});
    let reply = stage.ask(&stage.admin, "POST", "/mothership/v1/events", early).await;
    assert_eq!(reply.code, 503, "whoever is not heard is to tell again");
}
