//! Both doors on one store, a worker, and a client.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use concert_api::audit::Audit;
use concert_api::auth::{Gate, Keys, issue_for_user};
use concert_api::inventory;
use concert_api::kube::{Api, Limits, Parts};
use concert_api::rest::{self, Accounts, Ids, Node, auth, view};
use concert_api::workers::{self, Door};
use concert_engine::workers::Board;
use concert_model::{Object, Timestamp};
use concert_store::backend::memory::Memory;
use concert_store::conformance::HandClock;
use concert_store::local::AttemptRecord;
use concert_store::{By, Chance, Clock, Config, ItemKey, Local, Store};
use serde_json::{Value, json};

use crate::shared::client::{Client, Reply};

/// The kinds of workers, users, roles and webhooks.
const DEFINITIONS: &str = include_str!("../../../../deploy/crds/no8s.yaml");

pub const TYPES: &str = "/api/v1/resource-types";
pub const RESOURCES: &str = "/api/v1/resources";
pub const RECORDS: &str = "/apis/no8s.concert.dev/v1/dnsrecords";

pub struct Stage {
    client: Client,
    pub store: Local,
    pub clock: Arc<HandClock>,
    pub ids: Ids,
}

impl Reply {
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
        let api = api(&store, Gate::open(), &clock, &ids, None);
        Self { client: Client { api }, store, clock, ids }
    }

    /// The same, with authentication. What is sent without a token is anonymous.
    pub async fn guarded() -> Self {
        let open = Self::new().await;
        let gate = Gate::guarded(open.store.clone(), open.clock.clone());
        let api = api(&open.store, gate, &open.clock, &open.ids, None);
        Self { client: Client { api }, ..open }
    }

    /// The same as new, with the routes of workers, logins, users, roles and webhooks. There is no work:
    /// who claims is sent away.
    pub async fn whole() -> Self {
        let open = Self::new().await;
        let (store, clock, gate) = (&open.store, &open.clock, Gate::open());
        let board = Board::new(clock.clone());
        board.close();
        let keys = Keys::new(b"a secret", Duration::from_secs(3600));
        let inventory = inventory::Door::new(inventory::Parts {
            store: store.clone(),
            gate: gate.clone(),
            clock: clock.clone(),
            keys,
            audit: Audit::off(),
        });
        let minter = inventory.minter("http://127.0.0.1");
        let workers = Door::new(workers::Parts {
            store: store.clone(),
            gate: gate.clone(),
            clock: clock.clone(),
            chance: Chance::seeded(3),
            board,
            rules: Default::default(),
            show: Arc::new(view::resource),
            waiting: Arc::new(|_| 0),
            ids: open.ids.clone(),
            fleet: workers::Fleet { inventory: Arc::new(store.clone()), minting: Arc::new(minter) },
        });
        let accounts = Accounts::new(auth::Parts {
            store: store.clone(),
            gate: gate.clone(),
            clock: clock.clone(),
            chance: Chance::seeded(4),
            ids: open.ids.clone(),
            keys: Some(Keys::new(b"a secret", Duration::from_secs(3600))),
        });
        let api = api(store, gate, clock, &open.ids, Some((workers, accounts)));
        Self { client: Client { api }, ..open }
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
            duration: Duration::from_millis(1500),
            details,
        };
        let item = ItemKey { controller: "no8s".into(), item: id.to_string().into() };
        self.store.record_attempt(&item, &record).await.unwrap();
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
    ids: &Ids,
    annexes: Option<(Door, Accounts)>,
) -> Api {
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
    let mut rest = rest::Parts {
        ids: ids.clone(),
        node,
        company: None,
        annexes: Vec::new(),
        admissions: Vec::new(),
        webhooks: Arc::new(()),
    };
    if let Some((workers, accounts)) = annexes {
        rest.annexes = vec![Arc::new(workers), Arc::new(accounts.clone())];
        rest.admissions = vec![Arc::new(accounts)];
    }
    Api::with_rest(parts, rest)
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
