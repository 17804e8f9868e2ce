//! Webhooks, asked for real.

mod stub;

use std::sync::Arc;
use std::time::Duration;

use concert_model::Object;
use concert_model::no8s::names::ID;
use concert_store::{By, Store};
use rustls::RootCertStore;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use stub::{Reply, Stub};

use super::Chain;
use super::client::Client;
use crate::auth::User;
use crate::rest::admit::Webhooks as _;
use crate::rest::fixtures::World;
use crate::write::{Act, Denied};

struct Scene {
    world: World,
    chain: Chain,
}

impl Scene {
    async fn new() -> Self {
        let world = World::new().await;
        let chain = Chain::new(world.store.clone(), world.clock.clone());
        Self { world, chain }
    }

    /// Declares a webhook; fields of `more` win.
    async fn declare(&self, name: &str, url: &str, more: Value) {
        let id = name.len().to_string();
        let mut spec = json!({"url": url, "type": "mutating", "operations": ["CREATE", "UPDATE", "DELETE"]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let object = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "AdmissionWebhook",
            "metadata": {"name": name, "labels": {ID: id}}, "spec": spec});
        self.world.store.create(Object::from_value(object).unwrap(), &By::actor("test")).await.unwrap();
    }

    async fn admit(&self, act: Act, old: Option<&Value>, new: &mut Value) -> Result<(), String> {
        let admitted = self.chain.admit(&User::known("ann", []), act, old, new, false).await;
        admitted.map_err(|denied| match denied {
            Denied::Forbidden(message) => message,
            other => panic!("{other:?}"),
        })
    }

    /// What becomes of a new resource.
    async fn create(&self) -> Result<Value, String> {
        let mut new = record();
        self.admit(Act::Create, None, &mut new).await.map(|()| new["spec"].clone())
    }
}

fn record() -> Value {
    json!({"id": 5, "name": "api-record", "resource_type_name": "DnsRecord", "resource_type_version": "v1",
        "spec": {"ttl": 60}, "plugin_config": {"secret": 1}, "created_at": "2026-11-15T20:31:16.710423"})
}

fn allowed() -> Reply {
    Reply::Json(200, json!({"allowed": true}))
}

#[tokio::test]
async fn a_question_has_the_shape_of_the_contract() {
    let (scene, stub) = (Scene::new().await, Stub::start(|_, _| allowed()).await);
    scene.declare("one", &stub.url("/hook?x=1"), json!({})).await;
    scene.create().await.unwrap();
    let mut new = record();
    new["spec"]["ttl"] = json!(61);
    scene.admit(Act::Update, Some(&record()), &mut new).await.unwrap();
    scene.admit(Act::Delete, Some(&record()), &mut record()).await.unwrap();
    let asked = stub.asked.lock().unwrap();
    let resource = json!({"name": "api-record", "resource_type_name": "DnsRecord", "resource_type_version": "v1",
        "spec": {"ttl": 60}});
    assert_eq!(asked[0].1["operation"], "CREATE");
    assert_eq!((&asked[0].1["resource"], &asked[0].1["old_resource"]), (&resource, &Value::Null));
    assert_eq!((&asked[1].1["operation"], &asked[1].1["old_resource"]), (&json!("UPDATE"), &record()));
    assert_eq!(asked[1].1["resource"]["spec"]["ttl"], 61);
    assert_eq!((&asked[2].1["operation"], &asked[2].1["resource"]), (&json!("DELETE"), &resource));
}

#[tokio::test]
async fn all_that_change_come_before_all_that_look_each_in_order() {
    let scene = Scene::new().await;
    let stub = Stub::start(|path, body| match path {
        "/m2" if body["resource"]["spec"]["seen"] == json!(["m1"]) => Reply::Json(
            200,
            json!({"allowed": true, "patches": [{"op": "add", "path": "/spec/seen/-", "value": "m2"}]}),
        ),
        "/m1" => Reply::Json(
            200,
            json!({"allowed": true, "patches": [{"op": "add", "path": "/seen", "value": ["m1"]}]}),
        ),
        "/v2" if body["resource"]["spec"]["seen"] == json!(["m1", "m2"]) => Reply::Json(
            200,
            json!({"allowed": true,
            "patches": [{"op": "remove", "path": "/spec/seen"}]}),
        ),
        _ => allowed(),
    })
    .await;
    for (name, kind, ordering) in
        [("v2", "validating", 2), ("m2", "mutating", 2), ("m1", "mutating", 1), ("v1", "validating", -9)]
    {
        scene
            .declare(name, &stub.url(&format!("/{name}")), json!({"type": kind, "ordering": ordering}))
            .await;
    }
    let other = json!({"resourceType": "Cluster"});
    scene.declare("never", &stub.url("/never"), other).await;
    scene.declare("never-version", &stub.url("/never"), json!({"resourceVersion": "v2"})).await;
    scene.declare("never-operation", &stub.url("/never"), json!({"operations": ["DELETE"]})).await;
    assert_eq!(scene.create().await, Ok(json!({"ttl": 60, "seen": ["m1", "m2"]})));
    assert_eq!(stub.paths(), ["/m1", "/m2", "/v1", "/v2"]);
}

#[tokio::test]
async fn a_no_is_passed_on_and_ends_the_chain() {
    let scene = Scene::new().await;
    let stub = Stub::start(|path, _| match path {
        "/no" => Reply::Json(200, json!({"allowed": false, "message": "ttl is too short"})),
        "/silent" => Reply::Json(200, json!({})),
        "/teapot" => Reply::Json(418, json!({"allowed": false, "message": "I am a teapot"})),
        "/strange" => Reply::Json(404, json!({"allowed": true})),
        _ => allowed(),
    })
    .await;
    scene.declare("later", &stub.url("/later"), json!({"ordering": 9})).await;
    for (name, said) in [
        ("no", "ttl is too short"),
        ("silent", "Admission webhook silent denied the request"),
        ("teapot", "I am a teapot"),
    ] {
        scene.declare(name, &stub.url(&format!("/{name}")), json!({"failurePolicy": "Ignore"})).await;
        assert_eq!(scene.create().await, Err(said.to_owned()));
        let key = concert_model::ObjectKey::cluster(super::webhook_kind(), name);
        scene.world.store.delete(&key, &Default::default(), &By::actor("test")).await.unwrap();
    }
    assert!(!stub.paths().contains(&"/later".to_owned()));
    scene.declare("strange", &stub.url("/strange"), json!({})).await;
    scene.create().await.unwrap();
    assert_eq!(stub.paths().last().unwrap(), "/later");
}

#[tokio::test]
async fn without_an_answer_the_policy_decides() {
    let target = Stub::start(|_, _| allowed()).await;
    let to = target.url("/target");
    let stub = Stub::start(move |path, _| match path {
        "/500" => Reply::Json(500, json!({"allowed": true})),
        "/503" => Reply::Text(503, "busy".into()),
        "/garbage" => Reply::Text(200, "<html>".into()),
        "/list" => Reply::Text(200, "[]".into()),
        "/empty" => Reply::Text(204, String::new()),
        "/yes" => Reply::Json(200, json!({"allowed": "yes"})),
        "/huge" => Reply::Json(200, json!({"allowed": true, "message": "x".repeat(1024 * 1024)})),
        "/away" => Reply::Redirect(to.clone()),
        _ => allowed(),
    })
    .await;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = |path: &str| stub.url(path);
    let cases = [
        (url("/500"), "HTTP 500 Internal Server Error"),
        (url("/503"), "HTTP 503 Service Unavailable"),
        (url("/garbage"), "HTTP 200 OK, and no JSON in it"),
        (url("/list"), "HTTP 200 OK, and no object in it"),
        (url("/empty"), "HTTP 204 No Content, and no JSON in it"),
        (url("/yes"), "HTTP 200 OK, and allowed is neither true nor false"),
        (url("/huge"), "the answer cannot be read: length limit exceeded"),
        (url("/away"), "HTTP 302 Found"),
        (format!("http://{closed}/"), "cannot connect: "),
        (format!("https://{}/", stub.address), "TLS: "),
        ("http://nowhere.invalid/".to_owned(), "cannot find the host: "),
        (
            "http://169.254.169.254/latest".to_owned(),
            "webhook_url leads to 169.254.169.254, an address that is refused",
        ),
    ];
    for (url, why) in cases {
        let scene = Scene::new().await;
        scene.declare("hook", &url, json!({})).await;
        let denied = scene.create().await.unwrap_err();
        assert!(denied.starts_with(&format!("Admission webhook hook failed: {why}")), "{url}: {denied}");
        let scene = Scene::new().await;
        scene.declare("hook", &url, json!({"failurePolicy": "Ignore"})).await;
        assert_eq!(scene.create().await, Ok(json!({"ttl": 60})), "{url}");
    }
    assert_eq!(target.paths(), [""; 0]);
}

#[tokio::test]
async fn one_that_hangs_is_not_waited_for_longer_than_it_said() {
    let (scene, mut stub) = (Scene::new().await, Stub::start(|_, _| Reply::Hang).await);
    scene.declare("slow", &stub.url("/"), json!({"timeoutSeconds": 3})).await;
    let clock = scene.world.clock.clone();
    let (denied, ()) = tokio::join!(scene.create(), async {
        stub.arrivals.recv().await.unwrap();
        clock.advance(Duration::from_secs(3));
    });
    assert_eq!(denied, Err("Admission webhook slow failed: no answer within 3 seconds".into()));
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    let scene = Scene::new().await;
    let stub = Stub::start(|path, _| {
        let patches = match path {
            "/first" => json!([{"op": "replace", "path": "/spec/ttl", "value": 1}]),
            _ => json!([{"op": "add", "path": "/spec/x", "value": 1}, {"op": "replace", "path": "/spec/a/b", "value": 1}]),
        };
        Reply::Json(200, json!({"allowed": true, "patches": patches}))
    })
    .await;
    scene.declare("1st", &stub.url("/first"), json!({"ordering": 1})).await;
    scene.declare("2nd", &stub.url("/second"), json!({"ordering": 2, "failurePolicy": "Ignore"})).await;
    let mut new = record();
    let denied = scene.admit(Act::Create, None, &mut new).await.unwrap_err();
    assert_eq!(
        denied,
        "Admission webhook 2nd returned an invalid patch: patch 1: replace /spec/a/b: the path does not exist"
    );
    assert_eq!(new, record());
}

#[tokio::test]
async fn a_certificate_is_verified() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let stub = Stub::start_tls(config, |_, _| allowed()).await;
    let mut scene = Scene::new().await;
    let url = format!("https://localhost:{}/", stub.address.port());
    scene.declare("hook", &url, json!({})).await;
    let denied = scene.create().await.unwrap_err();
    assert!(denied.starts_with("Admission webhook hook failed: TLS: invalid peer certificate"), "{denied}");
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = Client::new(scene.world.clock.clone()).trusting(roots);
    scene.chain = Chain::with_client(scene.world.store.clone(), client);
    scene.create().await.unwrap();
}

#[tokio::test]
async fn without_webhooks_nobody_is_asked() {
    let scene = Scene::new().await;
    assert_eq!(scene.create().await, Ok(json!({"ttl": 60})));
}
