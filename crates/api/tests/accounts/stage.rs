//! A guarded API with one administrator.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concert_api::audit::Audit;
use concert_api::auth::{Gate, Keys, issue_for_user};
use concert_api::kube::{Api, Limits, Parts};
use concert_api::listen::Peer;
use concert_api::rest::auth::Parts as AccountParts;
use concert_api::rest::webhooks::Chain;
use concert_api::rest::{self, Accounts, FirstAdmin, Ids, Node};
use concert_model::Object;
use concert_store::backend::memory::Memory;
use concert_store::conformance::HandClock;
use concert_store::{By, Chance, Clock, Config, Local, Store};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

const DEFINITIONS: &str = include_str!("../../../../deploy/crds/no8s.yaml");
pub const PASSWORD: &str = "correct horse";
pub const RBAC: &str = "rbac.authorization.k8s.io";

pub struct Stage {
    pub api: Api,
    pub store: Local,
    pub clock: Arc<HandClock>,
    pub accounts: Accounts,
    /// The token of `admin`.
    pub admin: String,
}

/// An answer that has come to its end.
#[derive(Debug)]
pub struct Reply {
    pub code: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Reply {
    /// The JSON of an answer with this code.
    #[track_caller]
    pub fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }

    /// The `detail` of a refusal with this code.
    #[track_caller]
    pub fn detail(self, code: u16) -> String {
        self.expect(code)["detail"].as_str().unwrap_or_default().to_owned()
    }

    /// Type and place of each field that was refused.
    #[track_caller]
    pub fn fields(self) -> Vec<(String, String)> {
        let detail = self.expect(422)["detail"].clone();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let place = |loc: &Value| {
            let steps = loc.as_array().unwrap()[1..].iter();
            steps.map(|it| it.as_str().map_or(it.to_string(), str::to_owned)).collect::<Vec<_>>().join(".")
        };
        detail.as_array().unwrap().iter().map(|it| (text(&it["type"]), place(&it["loc"]))).collect()
    }
}

pub fn fields(wrong: &[(&str, &str)]) -> Vec<(String, String)> {
    wrong.iter().map(|(kind, place)| ((*kind).to_owned(), (*place).to_owned())).collect()
}

impl Stage {
    /// With the administrator `admin`, who is logged in.
    pub async fn new() -> Self {
        let mut stage = Self::without_login().await;
        stage.admin = stage.login("admin", PASSWORD).await;
        stage
    }

    /// Without any users.
    pub async fn without_users() -> Self {
        let clock = Arc::new(HandClock::new());
        let config = Config::new(clock.clone(), Chance::seeded(1)).inline();
        let store = Local::open(Arc::new(Memory::new()), config).unwrap();
        define(&store).await;
        Self::over(store, clock)
    }

    pub async fn without_login() -> Self {
        let stage = Self::without_users().await;
        let first = FirstAdmin { username: "admin".into(), password: PASSWORD.into() };
        assert!(stage.accounts.start(Some(&first)).await.unwrap());
        stage
    }

    /// An API over a store that is there already.
    pub fn over(store: Local, clock: Arc<HandClock>) -> Self {
        let keys = Keys::new(b"a secret", Duration::from_secs(24 * 3600));
        let gate = Gate::guarded_with_logins(store.clone(), clock.clone(), keys.clone());
        Self::with_gate(store, clock, gate, Some(keys))
    }

    pub fn with_gate(store: Local, clock: Arc<HandClock>, gate: Gate, keys: Option<Keys>) -> Self {
        let (ids, chance) = (Ids::new(store.clone()), Chance::from_system());
        let accounts = Accounts::new(AccountParts {
            store: store.clone(),
            gate: gate.clone(),
            clock: clock.clone(),
            chance: chance.clone(),
            ids: ids.clone(),
            keys,
        });
        let node = Node { id: "here".into(), hostname: "here".into(), pid: 1, started_at: clock.now() };
        let rest = rest::Parts {
            ids,
            node,
            company: None,
            webhooks: Arc::new(Chain::new(store.clone(), clock.clone())),
            annexes: vec![Arc::new(accounts.clone())],
            admissions: vec![Arc::new(accounts.clone())],
        };
        let parts = Parts {
            store: store.clone(),
            gate,
            clock: clock.clone(),
            chance,
            extensions: Arc::new(()),
            audit: Audit::off(),
            limits: Limits::default(),
        };
        let api = Api::with_rest(parts, rest);
        Self { api, store, clock, accounts, admin: String::new() }
    }

    /// Sends anything.
    pub async fn ask(&self, token: &str, method: &str, path: &str, body: Value) -> Reply {
        self.ask_from(None, token, method, path, body).await
    }

    pub async fn ask_from(
        &self,
        from: Option<SocketAddr>,
        token: &str,
        method: &str,
        path: &str,
        body: Value,
    ) -> Reply {
        let mut request =
            Request::builder().method(method).uri(path).header("content-type", "application/json");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let mut request = request.body(Full::new(bytes)).unwrap();
        if let Some(address) = from {
            request.extensions_mut().insert(Peer { address, is_encrypted: true });
        }
        let (head, body) = self.api.handle(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        Reply { code: head.status.as_u16(), headers: head.headers, body }
    }

    /// As the administrator.
    pub async fn get(&self, path: &str) -> Reply {
        self.ask(&self.admin, "GET", &format!("/api/v1{path}"), Value::Null).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.ask(&self.admin, "POST", &format!("/api/v1{path}"), body).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Reply {
        self.ask(&self.admin, "PUT", &format!("/api/v1{path}"), body).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.ask(&self.admin, "DELETE", &format!("/api/v1{path}"), Value::Null).await
    }

    pub async fn try_login(&self, username: &str, password: &str) -> Reply {
        let body = json!({"username": username, "password": password});
        self.ask("", "POST", "/api/v1/auth/login", body).await
    }

    /// A token for somebody.
    pub async fn login(&self, username: &str, password: &str) -> String {
        let said = self.try_login(username, password).await.expect(200);
        said["access_token"].as_str().unwrap().to_owned()
    }

    /// Makes somebody with [`PASSWORD`]; gives the number.
    pub async fn user(&self, username: &str, more: Value) -> u64 {
        let mut body = json!({"username": username, "password": PASSWORD});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("/users", body).await.expect(201)["id"].as_u64().unwrap()
    }

    /// An opaque token for a name.
    pub async fn token(&self, user: &str, groups: &[&str]) -> String {
        let chance = Chance::from_system();
        let by = By::actor("test");
        issue_for_user(&self.store, &*self.clock, &chance, user, groups, None, &by).await.unwrap().token
    }

    /// Puts an object into the store, past everybody.
    pub async fn put_object(&self, object: Value) {
        self.store.create(Object::from_value(object).unwrap(), &By::actor("test")).await.unwrap();
    }

    /// Somebody in charge of a type.
    pub async fn worker(&self, name: &str, resource_type: &str) {
        self.put_object(
            json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Worker", "metadata": {"name": name},
            "spec": {"handles": [{"resourceType": resource_type}]}}),
        )
        .await;
    }

    /// Lets a name do this, everywhere.
    pub async fn allow(&self, user: &str, rules: Value) {
        let api_version = format!("{RBAC}/v1");
        self.put_object(json!({"apiVersion": api_version, "kind": "ClusterRole", "metadata": {"name": user}, "rules": rules}))
            .await;
        self.put_object(json!({
            "apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": {"name": user},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": user},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        }))
        .await;
    }
}

async fn define(store: &Local) {
    let definitions: Vec<Value> = serde_saphyr::from_multiple(DEFINITIONS).unwrap();
    for definition in definitions {
        store.create(Object::from_value(definition).unwrap(), &By::actor("test")).await.unwrap();
    }
}
