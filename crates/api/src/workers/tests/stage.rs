//! A door, a store with one type, and a controller that lends everything it has.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::workers::{Board, Leased, Meaning, Offer, Offers, Prepared, Report};
use concert_engine::{Controller, Engine, Objects, Outcome, Request, Tasks, TokioSpawn, source};
use concert_model::inventory::names as fleet;
use concert_model::no8s::{Resource, Rules, names};
use concert_model::{GroupKind, Object, ObjectKey};
use concert_store::backend::memory::Memory;
use concert_store::{By, Chance, Config, Delete, Fence, ItemKey, Local, Query, Store, SystemClock};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::super::{Door, Fleet, Parts};
use crate::audit::Audit;
use crate::auth::{Gate, Keys, User};
use crate::inventory;
use crate::rest::call::IfMatch;
use crate::rest::ids::{self, Ids};

pub struct Stage {
    door: Door,
    store: Local,
    ids: Ids,
    user: User,
    plain: Arc<Plain>,
    _engine: Engine,
}

struct Plain {
    store: Local,
    ends: Mutex<Vec<String>>,
    reports: Mutex<Vec<Report>>,
}

#[async_trait]
impl Meaning for Plain {
    async fn prepare(&self, request: &Request) -> Prepared {
        let Ok(object) = self.store.get(&request.key).await else { return Prepared::Settled(Outcome::Done) };
        let object = Arc::new(object.decode());
        let item: Arc<str> = Resource(&object).id().unwrap().to_string().into();
        let row = ItemKey { controller: "leases".into(), item: item.clone() };
        Prepared::Offer(Box::new(Offer {
            item,
            row,
            key: request.key.clone(),
            object,
            attempt: 0,
            context: Arc::default(),
        }))
    }

    async fn finished(&self, lease: &Leased, report: Report) -> Outcome {
        let said = lease.said.as_deref().unwrap_or("nothing");
        let mut text = format!("{} {:?} {} said {said}", lease.item, report.success, report.message);
        if !report.waits.is_empty() {
            text += &format!(", waits {}", report.waits.len());
        }
        self.ends.lock().unwrap().push(text);
        self.reports.lock().unwrap().push(report);
        Outcome::Done
    }

    async fn expired(&self, _: &Leased, _: Fence) -> Outcome {
        Outcome::Done
    }
}

impl Stage {
    pub async fn new() -> Self {
        Self::with_gate(|_, _| Gate::open(), Config::inline).await
    }

    /// The same, with a thread that writes: calls at one time overtake each other.
    pub async fn with_writer() -> Self {
        Self::with_gate(|_, _| Gate::open(), |config| config).await
    }

    /// The same, for somebody whom no role allows anything.
    pub async fn guarded() -> Self {
        Self::with_gate(|store, clock| Gate::guarded(store.clone(), clock.clone()), Config::inline).await
    }

    pub async fn with_worker() -> Self {
        Self::new().await.registered().await
    }

    /// With the worker `dns_record`.
    pub async fn registered(self) -> Self {
        let body = json!({"name": "dns_record", "handles": [{"resource_type": "DnsRecord"}], "host_id": "h"});
        assert_eq!(self.call("POST", "workers", body).await.0, 201);
        self
    }

    async fn with_gate(
        gate: impl Fn(&Local, &Arc<SystemClock>) -> Gate,
        threading: impl Fn(Config) -> Config,
    ) -> Self {
        let clock = Arc::new(SystemClock::new());
        let config = threading(Config::new(clock.clone(), Chance::seeded(7)));
        let store = Local::open(Arc::new(Memory::new()), config).unwrap();
        let ours = include_str!("../../../../../deploy/crds/no8s.yaml").split("\n---\n");
        let fleet = include_str!("../../../../../deploy/crds/inventory.yaml").split("\n---\n");
        for text in ours.chain(fleet) {
            let value: Value = serde_saphyr::from_str(text).unwrap();
            store.create(Object::from_value(value).unwrap(), &by()).await.unwrap();
        }
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "dnsrecords.no8s.concert.dev"},
            "spec": {
                "group": "no8s.concert.dev", "scope": "Cluster", "names": {"kind": "DnsRecord", "plural": "dnsrecords"},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema}}],
            },
        });
        store.create(Object::from_value(definition).unwrap(), &by()).await.unwrap();
        let board = Board::new(clock.clone());
        let plain =
            Arc::new(Plain { store: store.clone(), ends: Mutex::default(), reports: Mutex::default() });
        let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
        let engine = Engine::new(Arc::new(store.clone()), clock.clone(), Chance::seeded(3), tasks);
        let offers = Offers::new(board.clone(), "dns_record", plain.clone(), Arc::new(store.clone()));
        let controller = Controller::builder("test", Arc::new(offers))
            .objects(Objects::new(Query::all(key(0).kind)).changed(source::except_status))
            .demand(board.demand("dns_record", "DnsRecord"));
        engine.start(controller.build()).unwrap().ready().await;
        let queue = engine.clone();
        let waiting = Arc::new(move |_: &str| {
            queue.controllers().iter().map(|it| it.depth.ready.iter().sum::<usize>()).sum()
        });
        let inventory = inventory::Door::new(inventory::Parts {
            store: store.clone(),
            gate: gate(&store, &clock),
            clock: clock.clone(),
            keys: Keys::new(b"a secret", Duration::from_secs(3600)),
            audit: Audit::off(),
        });
        let minter = inventory.minter("http://127.0.0.1");
        let ids = Ids::new(store.clone());
        let door = Door::new(Parts {
            gate: gate(&store, &clock),
            store: store.clone(),
            clock,
            chance: Chance::seeded(5),
            board,
            rules: Rules::default(),
            show: Arc::new(|object| json!({"id": Resource(object).id(), "name": object.name()})),
            waiting,
            ids: ids.clone(),
            fleet: Fleet { inventory: Arc::new(store.clone()), minting: Arc::new(minter) },
        });
        let user = User::known("somebody", []);
        Self { door, store, ids, user, plain, _engine: engine }
    }

    pub async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        self.call_if(method, path, body, IfMatch::default()).await
    }

    pub async fn call_if(&self, method: &str, path: &str, body: Value, only: IfMatch<'_>) -> (u16, Value) {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let path: Vec<&str> = path.split('/').collect();
        assert!(Door::takes(&method, &path));
        let answer = self.door.handle(&method, &path, &body, &self.user, only).await;
        let response = answer.unwrap_or_else(|error| error.response());
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() })
    }

    pub async fn create(&self, id: u64) {
        while !self.ids.is_given(ids::RESOURCES, id).await.unwrap() {
            self.ids.draw(ids::RESOURCES).await.unwrap();
        }
        let object = json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord",
            "metadata": {"name": format!("r{id}"), "labels": {names::ID: id.to_string()},
                "finalizers": ["dns_record"]},
            "spec": {"value": 1}});
        self.store.create(Object::from_value(object).unwrap(), &by()).await.unwrap();
    }

    pub async fn entry(&self, id: &str, kind: &str) {
        let mut object = Object::new(&fleet::versioned(&fleet::entry_kind()), "", id);
        object.set("spec", json!({"kind": kind}));
        self.store.create(object, &by()).await.unwrap();
    }

    pub async fn delete(&self, id: u64) {
        self.store.delete(&key(id), &Delete::default(), &by()).await.unwrap();
    }

    pub async fn get(&self, id: u64) -> Object {
        self.store.get(&key(id)).await.unwrap().decode()
    }

    /// Claims until so many items came, for they come as they are seen.
    pub async fn claim(&self, limit: usize) -> Vec<Value> {
        let ask = json!({"limit": limit, "wait_seconds": 5, "host_id": "h"});
        let mut items = Vec::new();
        let want = self.store.list(&Query::all(key(0).kind), &Default::default()).await.unwrap().items.len();
        while items.len() < want.min(limit) {
            let (code, answer) = self.call("POST", "workers/dns_record/claim", ask.clone()).await;
            assert_eq!(code, 200, "{answer}");
            assert!(!answer["items"].as_array().unwrap().is_empty());
            items.extend(answer["items"].as_array().unwrap().clone());
        }
        items
    }

    pub async fn one(&self) -> Value {
        let items = self.claim(1).await;
        items[0].clone()
    }

    pub fn ends(&self) -> Vec<String> {
        self.plain.ends.lock().unwrap().clone()
    }
}

impl Stage {
    /// How the last run was said to have ended.
    pub fn last_report(&self) -> Report {
        self.plain.reports.lock().unwrap().last().unwrap().clone()
    }
}

fn key(id: u64) -> ObjectKey {
    ObjectKey::cluster(GroupKind::new("no8s.concert.dev", "DnsRecord"), format!("r{id}"))
}

fn by() -> By {
    By::actor("test")
}
