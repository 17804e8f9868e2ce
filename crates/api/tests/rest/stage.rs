//! Both doors on one store, a worker, and a client.

use std::sync::Arc;

use bytes::Bytes;
use concert_api::audit::Audit;
use concert_api::auth::{Gate, issue_for_user};
use concert_api::kube::{Api, Body, Limits, Parts};
use concert_api::rest::{self, Ids, Node};
use concert_model::{Object, Timestamp};
use concert_store::backend::memory::Memory;
use concert_store::conformance::HandClock;
use concert_store::local::AttemptRecord;
use concert_store::{By, Chance, Clock, Config, ItemKey, Local, Store};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

/// The kinds of workers, users, roles and webhooks.
const DEFINITIONS: &str = include_str!("../../../../deploy/crds/no8s.yaml");

pub const TYPES: &str = "/api/v1/resource-types";
pub const RESOURCES: &str = "/api/v1/resources";
pub const RECORDS: &str = "/apis/no8s.concert.dev/v1/dnsrecords";

pub struct Stage {
    pub api: Api,
    pub store: Local,
    pub clock: Arc<HandClock>,
    pub ids: Ids,
}

/// An answer that has come to its end.
#[derive(Debug)]
pub struct Reply {
    pub code: u16,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Reply {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|e| panic!("{e}: {:?}", self.bytes))
    }

    /// The JSON of an answer with this code.
    #[track_caller]
    pub fn expect(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", String::from_utf8_lossy(&self.bytes));
        if self.bytes.is_empty() { Value::Null } else { self.json() }
    }

    /// Code and detail of a refusal.
    #[track_caller]
    pub fn refusal(&self) -> (u16, String) {
        let said = self.json();
        assert_eq!(said.as_object().unwrap().len(), 1, "{said}");
        match &said["detail"] {
            Value::String(text) => (self.code, text.clone()),
            other => panic!("{} {other}", self.code),
        }
    }

    /// What is wrong with the fields of a request: type and place of each.
    #[track_caller]
    pub fn wrong(&self) -> Vec<(String, Value)> {
        let said = self.expect(422);
        let fields = said["detail"].as_array().unwrap_or_else(|| panic!("{said}"));
        for field in fields {
            assert!(field["msg"].is_string() && field.get("input").is_some(), "{field}");
        }
        fields.iter().map(|it| (it["type"].as_str().unwrap().to_owned(), it["loc"].clone())).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|it| it.to_str().unwrap())
    }
}

impl Stage {
    /// With the type DnsRecord/v1 of the guide and its worker.
    pub async fn new() -> Self {
        let stage = Self::bare().await;
        stage.worker("dns_record", json!([{"resourceType": "DnsRecord"}])).await;
        stage.post(TYPES, &dns_type("v1")).await.expect(201);
        stage
    }

    /// Without any type or worker.
    pub async fn bare() -> Self {
        let clock = Arc::new(HandClock::new());
        let config = Config::new(clock.clone(), Chance::seeded(1)).inline();
        let store = Local::open(Arc::new(Memory::new()), config).unwrap();
        let definitions: Vec<Value> = serde_saphyr::from_multiple(DEFINITIONS).unwrap();
        for definition in definitions {
            store.create(Object::from_value(definition).unwrap(), &By::actor("test")).await.unwrap();
        }
        let ids = Ids::new(store.clone());
        let api = api(&store, Gate::open(), &clock, &ids);
        Self { api, store, clock, ids }
    }

    /// The same, with authentication. What is sent without a token is anonymous.
    pub async fn guarded() -> Self {
        let open = Self::new().await;
        let gate = Gate::guarded(open.store.clone(), open.clock.clone());
        let api = api(&open.store, gate, &open.clock, &open.ids);
        Self { api, ..open }
    }

    /// A token for somebody.
    pub async fn token(&self, user: &str, groups: &[&str]) -> String {
        let (chance, by) = (Chance::from_system(), By::actor("test"));
        let issued = issue_for_user(&self.store, &*self.clock, &chance, user, groups, None, &by).await;
        format!("Bearer {}", issued.unwrap().token)
    }

    pub async fn worker(&self, name: &str, handles: Value) {
        let worker = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Worker",
            "metadata": {"name": name.replace('_', "-")}, "spec": {"name": name, "handles": handles}});
        self.store.create(Object::from_value(worker).unwrap(), &By::actor("test")).await.unwrap();
    }

    /// Sends anything.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let response = self.start(method, path, headers, body).await;
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Reply { code: head.status.as_u16(), headers: head.headers, bytes }
    }

    /// Sends anything and leaves the answer's body to the caller.
    pub async fn start(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.api.handle(request.body(Full::new(body.into())).unwrap()).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[("accept", "*/*")], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, &[("content-type", "application/json")], body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send("PUT", path, &[("content-type", "application/json")], body.to_string()).await
    }

    pub async fn patch(&self, path: &str, kind: &str, body: &Value) -> Reply {
        let content_type = format!("application/{kind}");
        self.send("PATCH", path, &[("content-type", &content_type)], body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &[], "").await
    }

    /// Makes a DNS record and gives it as it was shown.
    pub async fn record(&self, name: &str) -> Value {
        self.post(RESOURCES, &record(name)).await.expect(201)
    }

    /// What a worker does that found a resource to be as declared.
    pub async fn make_ready(&self, name: &str) {
        let path = format!("{RECORDS}/{name}/status");
        let now = concert_model::time::micros(self.clock.now());
        let condition = json!({"type": "Ready", "status": "True", "reason": "ReconcileSuccess", "message": "",
            "observedGeneration": 1, "lastTransitionTime": "2026-11-15T20:31:16Z"});
        let status = json!({"status": {"phase": "ready", "message": "synced", "observedGeneration": 1,
            "lastReconcileTime": now, "conditions": [condition], "outputs": {"ip": "1.2.3.4", "token": "x"}}});
        self.patch(&path, "merge-patch+json", &status).await.expect(200);
    }

    /// One line of history.
    pub async fn attempt(&self, id: u64, details: Value) {
        let record = AttemptRecord {
            attempt: 1,
            generation: 1,
            outcome: "done".into(),
            message: "Synced".into(),
            reasons: Vec::new(),
            duration: std::time::Duration::from_millis(1500),
            details,
        };
        let item = ItemKey { controller: "no8s".into(), item: id.to_string().into() };
        self.store.record_attempt(&item, &record).await.unwrap();
    }
}

fn api(store: &Local, gate: Gate, clock: &Arc<HandClock>, ids: &Ids) -> Api {
    let node =
        Node { id: "here:1:x".into(), hostname: "here".into(), pid: 1, started_at: Timestamp::UNIX_EPOCH };
    let parts = Parts {
        store: store.clone(),
        gate,
        clock: clock.clone(),
        chance: Chance::seeded(2),
        extensions: Arc::new(()),
        audit: Audit::off(),
        limits: Limits::default(),
    };
    Api::with_rest(
        parts,
        rest::Parts {
            ids: ids.clone(),
            node,
            annexes: Vec::new(),
            admissions: Vec::new(),
            webhooks: Arc::new(()),
        },
    )
}

/// The type of the guide.
pub fn dns_type(version: &str) -> Value {
    json!({
        "name": "DnsRecord", "version": version,
        "schema": {
            "type": "object", "required": ["domain", "type", "value"],
            "properties": {
                "domain": {"type": "string"},
                "type": {"type": "string", "enum": ["A", "AAAA", "CNAME", "TXT"]},
                "value": {"type": "string"},
                "ttl": {"type": "integer", "minimum": 60, "default": 300},
            },
        },
    })
}

pub fn spec() -> Value {
    json!({"domain": "api.example.com", "type": "A", "value": "203.0.113.50"})
}

/// The resource of the guide.
pub fn record(name: &str) -> Value {
    json!({"name": name, "resource_type_name": "DnsRecord", "resource_type_version": "v1", "spec": spec()})
}
