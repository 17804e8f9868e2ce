//! Requests made up from our own OpenAPI documents, and broken in every part.
//!
//! Whatever is sent, the answer is one that a client can read, never a failure of the server; and what
//! is refused has changed nothing.

use bytes::Bytes;
use http_body_util::BodyExt;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::samples::sample_of;
use crate::shared::fuzz::{self, Operation};
use crate::stage::Stage;

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
const PLACES: [&str; 31] = [
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
    "/data",
    "/data/key",
    "/stringData/other",
    "/type",
    "/rules",
    "/rules/0",
    "/rules/0/verbs",
    "/subjects",
    "/subjects/0",
    "/roleRef",
    "/roleRef/kind",
    "/spec/names",
    "/spec/scope",
    "/spec/versions",
    "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
    "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule",
    "/spec/leaseDurationSeconds",
    "/spec/resourceAttributes",
];

#[derive(Clone, Debug)]
struct Shot {
    operation: Operation,
    method: Option<&'static str>,
    name: String,
    namespace: &'static str,
    params: Vec<(Index, String)>,
    content_type: &'static str,
    accept: &'static str,
    body: Vec<u8>,
}

fn shots(operations: Vec<Operation>) -> impl Strategy<Value = Shot> {
    select(operations).prop_flat_map(shots_at)
}

/// Requests for one operation, with bodies that are meant for it.
fn shots_at(operation: Operation) -> impl Strategy<Value = Shot> {
    let (sample, protobuf) = (sample_at(&operation.0), protobufs(&operation.0));
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
        "application/vnd.kubernetes.protobuf",
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
        Just(operation),
        fuzz::methods(),
        name,
        select(vec!["default", "default", "none", "%2e%2e", "A"]),
        fuzz::values(&WORDS),
        kinds,
        accepts,
        prop_oneof![4 => bodies(sample), 1 => protobuf],
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

/// What a path is about: `widgets` for `/apis/example.com/v1/namespaces/{namespace}/widgets/{name}`.
fn plural(path: &str) -> &str {
    let words: Vec<&str> = path.split('/').filter(|it| !it.is_empty() && !it.starts_with('{')).collect();
    // A namespace is a place for others, or what is meant itself.
    let after = |word: &str| words.iter().position(|it| *it == word).and_then(|at| words.get(at + 1));
    let version =
        words.iter().position(|it| it.starts_with('v') && it[1..].starts_with(|c: char| c.is_ascii_digit()));
    let first = version.and_then(|at| words.get(at + 1)).copied().unwrap_or_default();
    if path.ends_with("/{name}/token") {
        return "token";
    }
    let is_within = path.contains("/namespaces/{namespace}/");
    if is_within { after("namespaces").copied().unwrap_or(first) } else { first }
}

/// What may be sent there, in the version of the path.
fn sample_at(path: &str) -> Value {
    let mut sample = sample_of(plural(path));
    let words: Vec<&str> = path.split('/').collect();
    sample["apiVersion"] = match words[1..] {
        ["apis", group, version, ..] => json!(format!("{group}/{version}")),
        _ => json!("v1"),
    };
    sample
}

fn bodies(sample: Value) -> impl Strategy<Value = Vec<u8>> {
    let odd = vec![
        json!([{"op": "add", "path": "/spec/size", "value": 2}]),
        json!({"a": {"b": [null, {"c": 1}]}}),
        json!("self.x"),
    ];
    fuzz::bodies(vec![sample], &PLACES, odd)
}

/// Some of the kinds that are read in protobuf.
const IN_PROTOBUF: [(&str, &str); 6] = [
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Namespace"),
    ("coordination.k8s.io/v1", "Lease"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("v1", "DeleteOptions"),
];

/// Bodies in protobuf: one that is valid and for the path where its kind is, cut off, changed in a byte, or
/// noise behind what all of them start with.
fn protobufs(path: &str) -> BoxedStrategy<Vec<u8>> {
    let is_about = |(_, kind): &&(&str, &str)| plural(path) == format!("{}s", kind.to_lowercase());
    let meant = IN_PROTOBUF.iter().find(is_about).copied();
    let kinds = meant.map_or_else(|| IN_PROTOBUF.to_vec(), |kind| vec![kind]);
    let whole = select(kinds).prop_map(|(version, kind)| envelope(version, kind)).boxed();
    let cut = (whole.clone(), any::<Index>()).prop_map(|(mut body, at)| {
        body.truncate(at.index(body.len() + 1));
        body
    });
    let changed = (whole.clone(), any::<Index>(), any::<u8>()).prop_map(|(mut body, at, byte)| {
        let at = at.index(body.len());
        body[at] = byte;
        body
    });
    let noise =
        proptest::collection::vec(any::<u8>(), 0..60).prop_map(|noise| [&b"k8s\0"[..], &noise].concat());
    prop_oneof![whole, cut, changed, noise].boxed()
}

/// An object called `a`, as Go clients send it.
fn envelope(version: &str, kind: &str) -> Vec<u8> {
    let bytes = |number: u8, content: &[u8]| {
        let length = u8::try_from(content.len()).unwrap();
        assert!(length < 0x80, "the length has one byte");
        [&[(number << 3) | 2, length][..], content].concat()
    };
    let metadata = bytes(1, &bytes(1, b"a"));
    let object = if kind == "DeleteOptions" { bytes(4, b"Background") } else { metadata };
    let types = [bytes(1, version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [&b"k8s\0"[..], &bytes(1, &types), &bytes(2, &object)].concat()
}

#[tokio::test]
async fn protobuf_that_nothing_is_wrong_with_is_taken() {
    let stage = Stage::new().await;
    let headers = [("content-type", "application/vnd.kubernetes.protobuf")];
    let maps = "/api/v1/namespaces/default/configmaps";
    let made = stage.send("POST", maps, &headers, envelope("v1", "ConfigMap")).await;
    assert_eq!(made.expect(201)["metadata"]["name"], "a");
    let gone = stage.send("DELETE", &format!("{maps}/a"), &headers, envelope("v1", "DeleteOptions")).await;
    gone.expect(200);
}

/// What no document has and objects have nevertheless, and what is not about one object.
const BESIDE: [(&str, &str); 7] = [
    ("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", "POST"),
    ("/api/v1/namespaces/{name}/finalize", "PUT"),
    ("/api/v1/namespaces/{name}/explain", "GET"),
    ("/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/explain", "GET"),
    ("/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/history", "GET"),
    ("/api/v1/namespaces/{namespace}/secrets/{name}/history", "GET"),
    ("/apis/concert.dev/v1alpha1/plan", "POST"),
];

/// What is served and is no object, so that no document has it.
const REVIEWS: [&str; 3] = [
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
];

/// Every operation that is documented, and the reviews.
async fn operations(stage: &Stage) -> Vec<Operation> {
    let documents = stage.get("/openapi/v3").await.expect(200);
    let mut all: Vec<Operation> =
        REVIEWS.map(|path| (path.to_owned(), "POST".to_owned(), vec!["dryRun".to_owned()])).into();
    for document in documents["paths"].as_object().unwrap().keys() {
        all.extend(fuzz::operations(&stage.get(&format!("/openapi/v3/{document}")).await.expect(200)));
    }
    all
}

#[tokio::test]
async fn every_kind_that_is_served_has_requests_of_its_own() {
    let all = operations(&Stage::new().await).await;
    let plurals: std::collections::BTreeSet<&str> = all.iter().map(|(path, _, _)| plural(path)).collect();
    for expected in [
        "widgets",
        "customresourcedefinitions",
        "roles",
        "rolebindings",
        "clusterroles",
        "secrets",
        "leases",
        "namespaces",
        "events",
        "serviceaccounts",
        "selfsubjectaccessreviews",
    ] {
        assert!(plurals.contains(expected), "{expected} is not among {plurals:?}");
    }
    // A sample that nothing is wrong with is taken, or the requests would all end at the same place.
    let stage = Stage::new().await;
    for (path, method, _) in
        all.iter().filter(|(path, method, _)| method == "POST" && !path.ends_with("}/token"))
    {
        let mut sample = sample_at(path);
        let path = path.replace("{namespace}", "default");
        sample["metadata"]["resourceVersion"].take();
        let reply = stage.post(&path, &sample).await;
        // The same definition in two versions has one object.
        assert!(matches!(reply.code, 201 | 409), "{method} {path}: {}", reply.json());
    }
}

async fn shoot(stage: &Stage, shot: &Shot) -> (u16, Option<Bytes>) {
    let (path, method, parameters) = &shot.operation;
    let path = path.replace("{namespace}", shot.namespace).replace("{name}", &shot.name);
    let odd = ["pretty", "watch", "nonsense", "timeout"];
    let Some(uri) = fuzz::address(&path, &shot.params, parameters, &odd) else { return (400, None) };
    let headers: Vec<(&str, &str)> = [("content-type", shot.content_type), ("accept", shot.accept)]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let method = shot.method.unwrap_or(method);
    if method == "DELETE" && path.ends_with("/customresourcedefinitions") {
        // There would be no widgets left to ask for.
        return (400, None);
    }
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
    let mut operations = runtime.block_on(operations(&stage));
    let parameters = || -> Vec<String> { ["dryRun", "limit", "before"].map(str::to_owned).into() };
    operations.extend(BESIDE.map(|(path, method)| (path.to_owned(), method.to_owned(), parameters())));
    let position = || -> Value {
        let list = runtime.block_on(stage.get("/api/v1/namespaces"));
        list.json()["metadata"]["resourceVersion"].clone()
    };
    fuzz::runner()
        .run(&shots(operations), |shot| {
            let before = position();
            let (code, body) = runtime.block_on(shoot(&stage, &shot));
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
