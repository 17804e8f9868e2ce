//! An API with one custom kind, and a client of it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use concert_api::audit::Audit;
use concert_api::auth::{Gate, issue_for_user};
use concert_api::kube::{Api, Body, Extensions, Limits, Parts};
use concert_store::backend::memory::Memory;
use concert_store::conformance::HandClock;
use concert_store::{By, Chance, Config, Local};
use http::Response;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::shared::client::{Client, Reply};

pub const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

pub struct Stage {
    client: Client,
    pub store: Local,
    pub clock: Arc<HandClock>,
}

impl Reply {
    /// Code, reason and message of a refusal.
    #[track_caller]
    pub fn refusal(&self) -> (u16, String, String) {
        let status = self.json();
        assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Failure")), "{status}");
        assert_eq!(status["code"], self.code);
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        (self.code, text("reason"), text("message"))
    }

    pub fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().map(|header| header.to_str().unwrap()).collect()
    }
}

impl Stage {
    /// With the kind Widget and the namespace `default`.
    pub async fn new() -> Self {
        let stage = Self::bare(Limits::default(), Arc::new(())).await;
        stage
            .post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition())
            .await
            .expect(201);
        stage
    }

    pub async fn with_limits(limits: Limits) -> Self {
        let stage = Self::bare(limits, Arc::new(())).await;
        stage
            .post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition())
            .await
            .expect(201);
        stage
    }

    /// The same, with authentication. What the tests send without a token is anonymous.
    pub async fn guarded() -> Self {
        let open = Self::new().await;
        let gate = Gate::guarded(open.store.clone(), open.clock.clone());
        let api = api(&open.store, gate, &open.clock, Limits::default(), Arc::new(()));
        Self { client: Client { api }, ..open }
    }

    /// A token for somebody.
    pub async fn token(&self, user: &str) -> String {
        let by = By::actor("test");
        let issued =
            issue_for_user(&self.store, &*self.clock, &Chance::from_system(), user, &[], None, &by).await;
        format!("Bearer {}", issued.unwrap().token)
    }

    pub async fn bare(limits: Limits, extensions: Arc<dyn Extensions>) -> Self {
        let clock = Arc::new(HandClock::new());
        let mut config = Config::new(clock.clone(), Chance::seeded(1)).inline();
        config.bookmark_every = Duration::from_secs(60);
        let store = Local::open(Arc::new(Memory::new()), config).unwrap();
        let api = api(&store, Gate::open(), &clock, limits, extensions);
        Self { client: Client { api }, store, clock }
    }

    pub async fn get_as(&self, path: &str, accept: &str) -> Reply {
        self.send("GET", path, &[("accept", accept)], "").await
    }

    /// Makes a widget and gives what was stored.
    #[track_caller]
    pub fn create(&self, name: &str) -> impl Future<Output = Value> + '_ {
        let widget = widget(name);
        async move { self.post(WIDGETS, &widget).await.expect(201) }
    }

    pub async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, "application/json").await
    }

    pub async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        let response = self.start("GET", path, &[("accept", accept)], "").await;
        assert_eq!(response.status(), 200, "{path}");
        Watch::new(response)
    }
}

impl Deref for Stage {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

fn api(
    store: &Local,
    gate: Gate,
    clock: &Arc<HandClock>,
    limits: Limits,
    extensions: Arc<dyn Extensions>,
) -> Api {
    let (store, clock, chance, audit) = (store.clone(), clock.clone(), Chance::seeded(2), Audit::off());
    Api::new(Parts { store, gate, clock, chance, extensions, audit, limits })
}

/// The lines of a watch.
pub struct Watch {
    body: Body,
    lines: Vec<String>,
}

impl Watch {
    pub fn new(response: Response<Body>) -> Self {
        Self { body: response.into_body(), lines: Vec::new() }
    }

    /// The next event; none at the end.
    pub async fn next(&mut self) -> Option<Value> {
        if self.lines.is_empty() {
            let frame = self.body.frame().await?.unwrap();
            let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
            assert!(text.ends_with('\n'), "{text}");
            self.lines = text.lines().rev().map(str::to_owned).collect();
        }
        Some(serde_json::from_str(&self.lines.pop()?).unwrap())
    }

    /// Type and name of the next event.
    pub async fn change(&mut self) -> (String, String) {
        let event = self.next().await.unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }
}

pub fn change(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

pub fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}})
}

pub fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "description": "What is wanted.", "properties": {
            "size": {"type": "integer", "minimum": 0, "description": "How large."},
            "colour": {"type": "string"},
        }},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    }});
    let columns = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    let version = |name: &str, is_storage: bool| {
        json!({"name": name, "served": true, "storage": is_storage, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}}, "additionalPrinterColumns": columns,
            "selectableFields": [{"jsonPath": ".spec.colour"}]})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    })
}
