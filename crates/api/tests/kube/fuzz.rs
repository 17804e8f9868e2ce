//! Requests made up from our own OpenAPI documents, and broken in every part.
//!
//! Whatever is sent, the answer is one that a client can read, never a failure of the server; and what
//! is refused has changed nothing.

use bytes::Bytes;
use http_body_util::BodyExt;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::stage::{Stage, widget};

/// Bounded: a few seconds on a slow machine.
const REQUESTS: u32 = 1_500;

#[derive(Clone, Debug)]
struct Shot {
    operation: Index,
    method: Option<&'static str>,
    name: String,
    namespace: &'static str,
    params: Vec<(Index, String)>,
    content_type: &'static str,
    accept: &'static str,
    body: Vec<u8>,
}

fn shots() -> impl Strategy<Value = Shot> {
    let name =
        prop_oneof![4 => select(vec!["a", "b"]).prop_map(str::to_owned), 1 => "[a-zA-Z0-9%._~:-]{0,12}"];
    let value = prop_oneof![
        select(vec![
            "",
            "true",
            "false",
            "0",
            "1",
            "-1",
            "All",
            "Strict",
            "Exact",
            "NotOlderThan",
            "Orphan",
            "a=b",
            "!",
            "9999999999"
        ])
        .prop_map(str::to_owned),
        "[a-zA-Z0-9=,()!%+.-]{0,20}",
    ];
    let kinds = select(vec![
        "",
        "application/json",
        "application/yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
        "application/strategic-merge-patch+json",
        "text/plain",
    ]);
    let accepts = select(vec![
        "",
        "*/*",
        "application/json",
        "application/yaml",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf",
        ";;;=,q=",
    ]);
    (
        any::<Index>(),
        proptest::option::weighted(
            0.2,
            select(vec!["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
        ),
        name,
        select(vec!["default", "default", "none", "%2e%2e", "A"]),
        proptest::collection::vec((any::<Index>(), value), 0..3),
        kinds,
        accepts,
        bodies(),
    )
        .prop_map(|(operation, method, name, namespace, params, content_type, accept, body)| Shot {
            operation,
            method,
            name,
            namespace,
            params,
            content_type,
            accept,
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
        Just(json!([{"op": "add", "path": "/spec/size", "value": 2}])),
        Just(json!({"a": {"b": [null, {"c": 1}]}})),
    ];
    let path = select(vec![
        "",
        "/apiVersion",
        "/kind",
        "/metadata",
        "/metadata/name",
        "/metadata/labels",
        "/metadata/finalizers",
        "/metadata/resourceVersion",
        "/metadata/ownerReferences",
        "/metadata/managedFields",
        "/spec",
        "/spec/size",
        "/status",
    ]);
    let broken = proptest::collection::vec((path, junk), 0..3).prop_map(|changes| {
        let mut object = widget("a");
        object["metadata"] = json!({"name": "a", "labels": {}, "finalizers": [], "resourceVersion": "", "ownerReferences": [], "managedFields": []});
        object["status"] = json!({});
        for (path, value) in changes {
            if let Some(place) = object.pointer_mut(path) {
                *place = value;
            }
        }
        object.to_string().into_bytes()
    });
    let cut = (broken.clone(), any::<Index>()).prop_map(|(mut body, at)| {
        body.truncate(at.index(body.len() + 1));
        body
    });
    prop_oneof![4 => broken, 1 => cut, 1 => proptest::collection::vec(any::<u8>(), 0..60)]
}

/// Path, method and parameters of every operation that is documented.
async fn operations(stage: &Stage) -> Vec<(String, String, Vec<String>)> {
    let mut all = Vec::new();
    for document in ["apis/example.com/v1", "api/v1"] {
        let document = stage.get(&format!("/openapi/v3/{document}")).await.expect(200);
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap().iter().filter(|(m, _)| *m != "parameters")
            {
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                let names = parameters.map(|p| p["name"].as_str().unwrap().to_owned()).collect();
                all.push((path.clone(), method.to_uppercase(), names));
            }
        }
    }
    all
}

async fn shoot(
    stage: &Stage,
    operations: &[(String, String, Vec<String>)],
    shot: &Shot,
) -> (u16, Option<Bytes>) {
    let (path, method, parameters) = shot.operation.get(operations);
    let path = path.replace("{namespace}", shot.namespace).replace("{name}", &shot.name);
    let odd = ["pretty", "watch", "nonsense", "timeout"].map(String::from);
    let names: Vec<&String> = parameters.iter().chain(&odd).collect();
    let pair = |(name, value): &(Index, String)| format!("{}={value}", name.get(&names));
    let query: Vec<String> = shot.params.iter().map(pair).collect();
    let uri = format!("{path}?{}", query.join("&"));
    if uri.parse::<http::Uri>().is_err() {
        return (400, None);
    }
    let headers: Vec<(&str, &str)> = [("content-type", shot.content_type), ("accept", shot.accept)]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let method = shot.method.unwrap_or(method);
    let response = stage.start(method, &uri, &headers, shot.body.clone()).await;
    let code = response.status().as_u16();
    // A watch that was let in goes on.
    let is_watch = method == "GET" && uri.contains("watch=") && code == 200;
    if is_watch {
        return (code, None);
    }
    (code, Some(response.into_body().collect().await.unwrap().to_bytes()))
}

#[test]
fn whatever_is_sent_is_answered_and_what_is_refused_changed_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stage = runtime.block_on(Stage::new());
    let operations = runtime.block_on(operations(&stage));
    let config = Config { cases: REQUESTS, failure_persistence: None, ..Config::default() };
    let position = || -> Value {
        let list = runtime.block_on(stage.get("/api/v1/namespaces"));
        list.json()["metadata"]["resourceVersion"].clone()
    };
    TestRunner::new_with_rng(config, proptest::test_runner::TestRng::deterministic_rng(Default::default()))
        .run(&shots(), |shot| {
            let before = position();
            let (code, body) = runtime.block_on(shoot(&stage, &operations, &shot));
            prop_assert!(code < 500 || code == 504, "{code}: {body:?}");
            if code >= 400 {
                prop_assert_eq!(before, position());
                if let Some(body) = body {
                    let status: Value = serde_json::from_slice(&body).unwrap_or_default();
                    prop_assert_eq!(&status["kind"], "Status", "{:?}", body);
                    prop_assert_eq!(&status["code"], code);
                }
            }
            Ok(())
        })
        .unwrap();
}
