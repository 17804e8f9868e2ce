//! Requests made up from this door's own description, and broken in every part.
//!
//! Whatever is sent, the answer is one that a client can read, never a failure of the server; and what
//! is refused has changed nothing.

use bytes::Bytes;
use http_body_util::BodyExt;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::stage::{Stage, dns_type, record};

/// Bounded: a few seconds on a slow machine.
const REQUESTS: u32 = 1_500;

/// Parts of bodies that are broken.
const PLACES: [&str; 14] = [
    "",
    "/name",
    "/version",
    "/schema",
    "/schema/properties",
    "/resource_type_name",
    "/resource_type_version",
    "/action_plugin",
    "/spec",
    "/spec/ttl",
    "/spec/type",
    "/plugin_config",
    "/metadata",
    "/add",
];

#[derive(Clone, Debug)]
struct Shot {
    operation: Index,
    method: Option<&'static str>,
    segments: Vec<String>,
    params: Vec<(Index, String)>,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
}

fn shots() -> impl Strategy<Value = Shot> {
    let segment = prop_oneof![
        5 => select(vec!["1", "2", "DnsRecord", "v1", "a"]).prop_map(str::to_owned),
        1 => "[a-zA-Z0-9%._~:+-]{0,12}",
    ];
    let value = prop_oneof![
        select(vec!["", "true", "0", "1", "-1", "ready", "a=b", "a in (b)", "99999999999999999999"])
            .prop_map(str::to_owned),
        "[a-zA-Z0-9=,()!%+.-]{0,20}",
    ];
    let header = select(vec![
        ("content-type", "application/json"),
        ("content-type", "text/plain"),
        ("accept", "application/json"),
        ("accept", ";;;=,q="),
        ("if-match", "*"),
        ("if-match", "\"1\""),
        ("if-match", "nonsense"),
        ("last-event-id", "1"),
        ("last-event-id", "-1"),
        ("authorization", "Bearer x"),
    ]);
    let methods = select(vec!["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]);
    (
        any::<Index>(),
        proptest::option::weighted(0.2, methods),
        proptest::collection::vec(segment, 4),
        proptest::collection::vec((any::<Index>(), value), 0..3),
        proptest::collection::vec(header, 0..3),
        bodies(),
    )
        .prop_map(|(operation, method, segments, params, headers, body)| Shot {
            operation,
            method,
            segments,
            params,
            headers,
            body,
        })
}

fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let junk = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,10}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!({"$ref": "#"})),
        Just(json!({"allOf": [{"$ref": "#/properties"}], "default": {"a": 1}})),
        Just(json!(["x", 1])),
    ];
    let broken = (any::<bool>(), proptest::collection::vec((select(PLACES.to_vec()), junk), 0..3));
    let broken = broken.prop_map(|(is_type, changes)| {
        let mut body = if is_type { dns_type("v3") } else { record("b") };
        for (field, value) in [
            ("action_plugin", Value::Null),
            ("plugin_config", json!({})),
            ("metadata", json!({})),
            ("add", json!(["x"])),
        ] {
            body[field] = value;
        }
        for (path, value) in changes {
            if let Some(place) = body.pointer_mut(path) {
                *place = value;
            }
        }
        body.to_string().into_bytes()
    });
    let cut = (broken.clone(), any::<Index>()).prop_map(|(mut body, at)| {
        body.truncate(at.index(body.len() + 1));
        body
    });
    prop_oneof![4 => broken, 1 => cut, 1 => proptest::collection::vec(any::<u8>(), 0..60)]
}

type Operation = (String, String, Vec<String>);

/// Path, method and parameters of every operation that is described.
async fn operations(stage: &Stage) -> Vec<Operation> {
    let document = stage.get("/openapi.json").await.expect(200);
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let names = parameters.map(|it| it["name"].as_str().unwrap().to_owned()).collect();
            all.push((path.clone(), method.to_uppercase(), names));
        }
    }
    all
}

async fn shoot(stage: &Stage, operations: &[Operation], shot: &Shot) -> (u16, Option<Bytes>) {
    let (path, method, parameters) = shot.operation.get(operations);
    let mut filled = shot.segments.iter();
    let segment =
        |part: &str| if part.starts_with('{') { filled.next().unwrap().clone() } else { part.to_owned() };
    let path = path.split('/').map(segment).collect::<Vec<_>>().join("/");
    let odd = ["limit", "nonsense"].map(String::from);
    let names: Vec<&String> = parameters.iter().chain(&odd).collect();
    let query: Vec<String> =
        shot.params.iter().map(|(name, value)| format!("{}={value}", name.get(&names))).collect();
    let uri = format!("{path}?{}", query.join("&"));
    if uri.parse::<http::Uri>().is_err() {
        return (400, None);
    }
    let response = stage.start(shot.method.unwrap_or(method), &uri, &shot.headers, shot.body.clone()).await;
    let code = response.status().as_u16();
    // A stream that was let in goes on.
    if response.headers().get("content-type").is_some_and(|it| it == "text/event-stream") {
        return (code, None);
    }
    (code, Some(response.into_body().collect().await.unwrap().to_bytes()))
}

#[test]
fn whatever_is_sent_is_answered_and_what_is_refused_changed_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stage = runtime.block_on(Stage::new());
    runtime.block_on(stage.record("a"));
    let operations = runtime.block_on(operations(&stage));
    let config = Config { cases: REQUESTS, failure_persistence: None, ..Config::default() };
    let position = || runtime.block_on(stage.store.newest()).unwrap();
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(Default::default()))
        .run(&shots(), |shot| {
            let before = position();
            let (code, body) = runtime.block_on(shoot(&stage, &operations, &shot));
            prop_assert!(code < 500, "{code}: {body:?}");
            if code >= 400 {
                prop_assert_eq!(before, position());
                if let Some(body) = body {
                    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
                    // Without its id, /api/v1/events with a limit is Kubernetes'.
                    let is_told = said.get("detail").is_some() || said["kind"] == "Status";
                    prop_assert!(is_told, "{code}: {body:?}");
                }
            }
            Ok(())
        })
        .unwrap();
}
