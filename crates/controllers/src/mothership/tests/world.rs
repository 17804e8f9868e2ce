//! An inventory, a mothership and hosts.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::workers::{Ask, Board, Claimed, Report, Stale};
use concert_engine::{Engine, Tasks, TokioSpawn};
use concert_model::condition::{self, Status};
use concert_model::inventory::{Entry, Item, Section, names};
use concert_model::{GroupKind, Object, ObjectKey, Patch};
use concert_store::backend::memory::Memory;
use concert_store::{By, Chance, Clock, Config, Delete, Error, Local, PageRequest, Part, Query, Store};
use serde_json::{Map, Value, json};

use super::super::{Parts, Reach, Running, Unreachable, start};
use crate::fixtures::PausedClock;

pub struct World {
    pub clock: Arc<PausedClock>,
    pub inventory: Local,
    pub store: Local,
    /// The cluster that every entry is about.
    pub target: Local,
    pub way: Arc<Way>,
    pub board: Board,
    pub running: Running,
    tasks: Tasks,
}

impl World {
    /// Nobody is registered, nothing is there.
    pub async fn new() -> Self {
        let clock = Arc::new(PausedClock::new());
        let (inventory, store, target) = (open(&clock), open(&clock), open(&clock));
        for (kind, plural) in [("Cluster", "clusters"), ("Section", "sections")] {
            define(&inventory, names::GROUP, kind, plural).await;
        }
        define(&store, names::MOTHERSHIP, "Item", "items").await;
        define(&store, "concert.dev", "Worker", "workers").await;
        Self::start(clock, inventory, store, target).await
    }

    /// The same stores, with everything else made anew a moment ago: nothing of it has run yet.
    pub async fn restart_just_now(self) -> Self {
        self.running.stop(false).await;
        assert!(self.tasks.stop(Duration::ZERO).await.is_empty());
        Self::begin(self.clock, self.inventory, self.store, self.target)
    }

    /// The same stores, with everything else made anew.
    pub async fn restart(self) -> Self {
        self.running.stop(false).await;
        assert!(self.tasks.stop(Duration::ZERO).await.is_empty());
        Self::start(self.clock, self.inventory, self.store, self.target).await
    }

    /// What happens to the inventory while nobody listens.
    pub async fn restart_after<F: Future>(self, meanwhile: impl FnOnce(Local) -> F) -> Self {
        self.running.stop(false).await;
        assert!(self.tasks.stop(Duration::ZERO).await.is_empty());
        meanwhile(self.inventory.clone()).await;
        Self::start(self.clock, self.inventory, self.store, self.target).await
    }

    async fn start(clock: Arc<PausedClock>, inventory: Local, store: Local, target: Local) -> Self {
        let world = Self::begin(clock, inventory, store, target);
        world.pass(1).await;
        world
    }

    fn begin(clock: Arc<PausedClock>, inventory: Local, store: Local, target: Local) -> Self {
        let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
        let own: Arc<dyn Store> = Arc::new(store.clone());
        let fleet: Arc<dyn Store> = Arc::new(inventory.clone());
        let engine = Engine::new(own.clone(), clock.clone(), Chance::seeded(3), tasks.clone());
        let board = Board::new(clock.clone());
        let way = Arc::<Way>::default();
        let running = start(Parts {
            fleet: engine.over(fleet.clone()),
            engine,
            store: own,
            inventory: fleet,
            work: Arc::new(store.clone()),
            board: board.clone(),
            clock: clock.clone(),
            chance: Chance::seeded(9),
            tasks: tasks.clone(),
            fence: None,
            reach: Some(Arc::new(Same { target: target.clone(), way: way.clone() })),
            relist: super::super::RELIST,
        });
        Self { clock, inventory, store, target, way, board, running: running.unwrap(), tasks }
    }

    /// Lets so many seconds pass.
    pub async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    /// Lets what is under way happen.
    pub async fn settle(&self) {
        self.clock.sleep(Duration::from_millis(20)).await;
    }

    pub async fn register(&self, name: &str, more: Value) {
        let mut spec = json!({"handles": [{"entryKind": "runtime"}], "resyncSeconds": 3600});
        spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        let object = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Worker",
            "metadata": {"name": name}, "spec": spec});
        self.store.create(Object::from_value(object).unwrap(), &by()).await.unwrap();
        self.settle().await;
    }

    pub async fn deregister(&self, name: &str) {
        let key = ObjectKey::cluster(crate::plugins::worker_kind(), name);
        self.store.delete(&key, &Delete::default(), &by()).await.unwrap();
        self.settle().await;
    }

    pub async fn entry(&self, id: &str, spec: Value) {
        let mut object = Object::new(&names::versioned(&names::entry_kind()), "", id);
        object.set("spec", spec);
        self.inventory.create(object, &by()).await.unwrap();
        self.settle().await;
    }

    pub async fn runtime(&self, id: &str) {
        self.entry(id, json!({"kind": "runtime"})).await;
    }

    pub async fn patch_entry(&self, id: &str, patch: Value) {
        let key = names::entry_key(id);
        self.inventory.patch(&key, Part::Main, &Patch::Merge(patch), &by()).await.unwrap();
        self.settle().await;
    }

    pub async fn delete_entry(&self, id: &str) {
        self.inventory.delete(&names::entry_key(id), &Delete::default(), &by()).await.unwrap();
        self.settle().await;
    }

    pub async fn get_entry(&self, id: &str) -> Option<Object> {
        match self.inventory.get(&names::entry_key(id)).await {
            Ok(object) => Some(object.decode()),
            Err(Error::NotFound { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }

    pub async fn put(&self, entry: &str, section: &str, data: Value) {
        put(&self.inventory, entry, section, data).await;
        self.settle().await;
    }

    pub async fn item(&self, entry: &str, reconciler: &str) -> Option<Object> {
        self.store.get(&names::item_key(entry, reconciler)).await.ok().map(|it| it.decode())
    }

    pub async fn state(&self, entry: &str, reconciler: &str) -> String {
        let item = self.item(entry, reconciler).await;
        item.map_or_else(|| "none".to_owned(), |it| Item(&it).state().to_string())
    }

    pub async fn phase(&self, entry: &str) -> String {
        self.settle().await;
        self.get_entry(entry).await.unwrap().status()["phase"].as_str().unwrap_or_default().to_owned()
    }

    pub async fn is_ready(&self, entry: &str) -> bool {
        self.settle().await;
        let entry = self.get_entry(entry).await.unwrap();
        condition::find(entry.status(), "Ready").is_some_and(|it| it.status == Status::True)
    }

    pub async fn claim(&self, worker: &str) -> Vec<Claimed> {
        self.board.claim(worker, Ask { host: "h".into(), limit: 100, ..Ask::default() }).await
    }

    /// The one item that is due.
    pub async fn one(&self, worker: &str) -> Claimed {
        let mut claimed = self.claim(worker).await;
        assert_eq!(claimed.len(), 1, "items of {worker}: {claimed:?}");
        claimed.remove(0)
    }

    pub async fn nothing(&self, worker: &str) {
        let claimed = self.claim(worker).await;
        assert!(
            claimed.is_empty(),
            "{:?}",
            claimed.iter().map(|it| it.reasons.to_string()).collect::<Vec<_>>()
        );
    }

    pub async fn report(&self, worker: &str, item: &Claimed, details: Value) -> Result<(), Stale> {
        let details: Map<String, Value> = details.as_object().cloned().unwrap_or_default();
        let text = details.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        let after = details.get("retry_after").and_then(Value::as_f64).map(Duration::from_secs_f64);
        let report = Report { message: text, requeue_after: after, details, ..Report::default() };
        let done = self.board.finish(worker, &item.item, item.fence, report).await;
        self.settle().await;
        done
    }

    pub async fn say(&self, worker: &str, item: &Claimed, outcome: &str) {
        self.report(worker, item, json!({"outcome": outcome, "message": "said"})).await.unwrap();
    }

    /// The one item that is due is ready.
    pub async fn do_well(&self, worker: &str) {
        let item = self.one(worker).await;
        self.say(worker, &item, "ready").await;
    }

    /// How much was ever written to the mothership's store.
    pub async fn revision(&self) -> String {
        revision(&self.store, names::item_kind()).await
    }

    /// The same of the inventory.
    pub async fn inventory_revision(&self) -> String {
        revision(&self.inventory, names::entry_kind()).await
    }
}

/// Every entry leads to the same cluster, unless it cannot be found.
struct Same {
    target: Local,
    way: Arc<Way>,
}

/// The way to target clusters.
#[derive(Default)]
pub struct Way {
    pub is_lost: AtomicBool,
    /// Entries whose clusters were asked for.
    pub asked: Mutex<BTreeSet<String>>,
}

#[async_trait]
impl Reach for Same {
    async fn reach(&self, entry: &str) -> Result<Option<Arc<dyn Store>>, Unreachable> {
        if self.way.is_lost.load(Ordering::Relaxed) {
            return Err(Unreachable::Lost("no answer"));
        }
        self.way.asked.lock().unwrap().insert(entry.to_owned());
        Ok(Some(Arc::new(self.target.clone())))
    }
}

async fn revision(store: &Local, kind: GroupKind) -> String {
    store.list(&Query::all(kind), &PageRequest::whole()).await.unwrap().position.0.to_string()
}

/// What the door of the inventory does.
pub async fn put(inventory: &Local, entry: &str, section: &str, data: Value) {
    let (key, hash) = (names::section_key(entry, section), data.to_string());
    let cluster = inventory.get(&names::entry_key(entry)).await.unwrap().decode();
    let old = inventory.get(&key).await.ok().map(|it| it.decode());
    let mut object = old.clone().unwrap_or_else(|| Section::of(Entry(&cluster), section));
    let version = Section(&object).version() + 1;
    object.get_mut("spec")["version"] = json!(version);
    object.get_mut("spec")["hash"] = json!(hash);
    object.get_mut("spec")["data"] = data;
    match old {
        Some(_) => inventory.update(object, &by()).await.unwrap(),
        None => inventory.create(object, &by()).await.unwrap(),
    };
}

pub fn by() -> By {
    By::actor("test")
}

fn open(clock: &Arc<PausedClock>) -> Local {
    let config = Config::new(clock.clone(), Chance::seeded(7)).inline();
    Local::open(Arc::new(Memory::new()), config).unwrap()
}

pub async fn define(store: &Local, group: &str, kind: &str, plural: &str) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let subresources = if kind == "Section" { json!({}) } else { json!({"status": {}}) };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Cluster", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": schema}}],
        },
    });
    store.create(Object::from_value(definition).unwrap(), &by()).await.unwrap();
}
