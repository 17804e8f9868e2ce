//! Requests made up from our own OpenAPI documents, and broken in every part.
//!
//! Whatever is sent, the answer is one that a client can read, never a failure of the server; and what
//! is refused has changed nothing.

use bytes::Bytes;
use http_body_util::BodyExt;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::shared::fuzz::{self, Operation};
use crate::stage::{Stage, widget};

/// Values of parameters that mean something somewhere.
const WORDS: [&str; 14] = [
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
    "9999999999",
];

/// Parts of bodies that are broken.
const PLACES: [&str; 13] = [
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
];

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
        fuzz::methods(),
        name,
        select(vec!["default", "default", "none", "%2e%2e", "A"]),
        fuzz::values(&WORDS),
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
    let mut object = widget("a");
    object["metadata"] = json!({"name": "a", "labels": {}, "finalizers": [], "resourceVersion": "", "ownerReferences": [], "managedFields": []});
    object["status"] = json!({});
    let odd =
        vec![json!([{"op": "add", "path": "/spec/size", "value": 2}]), json!({"a": {"b": [null, {"c": 1}]}})];
    fuzz::bodies(vec![object], &PLACES, odd)
}

/// Every operation that is documented.
async fn operations(stage: &Stage) -> Vec<Operation> {
    let mut all = Vec::new();
    for document in ["apis/example.com/v1", "api/v1"] {
        all.extend(fuzz::operations(&stage.get(&format!("/openapi/v3/{document}")).await.expect(200)));
    }
    all
}

async fn shoot(stage: &Stage, operations: &[Operation], shot: &Shot) -> (u16, Option<Bytes>) {
    let (path, method, parameters) = shot.operation.get(operations);
    let path = path.replace("{namespace}", shot.namespace).replace("{name}", &shot.name);
    let odd = ["pretty", "watch", "nonsense", "timeout"];
    let Some(uri) = fuzz::address(&path, &shot.params, parameters, &odd) else { return (400, None) };
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
    let position = || -> Value {
        let list = runtime.block_on(stage.get("/api/v1/namespaces"));
        list.json()["metadata"]["resourceVersion"].clone()
    };
    fuzz::runner()
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
