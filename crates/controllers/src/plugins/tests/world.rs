//! A store with a type and a worker, and hosts that do as they are told.

use std::sync::Arc;
use std::time::Duration;

use concert_engine::workers::{Ask, Board, Claimed, Report, Stale};
use concert_engine::{Engine, Tasks, TokioSpawn};
use concert_model::no8s::{self, Moment, Phase, Resource, Rules, names};
use concert_model::{GroupKind, Object, ObjectKey};
use concert_store::backend::memory::Memory;
use concert_store::local::AttemptRecord;
use concert_store::{By, Chance, Clock, Config, Delete, Error, Fence, ItemKey, Local, Part, Store};
use serde_json::{Value, json};

use super::super::lifecycle::LEASES;
use super::super::{Parts, Running, item_of, start};
use crate::fixtures::PausedClock;

pub struct World {
    pub clock: Arc<PausedClock>,
    pub store: Local,
    pub board: Board,
    pub engine: Engine,
    pub running: Running,
    pub tasks: Tasks,
}

impl World {
    /// `DnsRecord` v1, and the worker `dns_record` in charge of it.
    pub async fn new() -> Self {
        let clock = Arc::new(PausedClock::new());
        let config = Config::new(clock.clone(), Chance::seeded(7)).inline();
        let store = Local::open(Arc::new(Memory::new()), config).unwrap();
        define(&store, "Worker", "concert.dev", "v1alpha1").await;
        let world = Self::start(clock, store);
        world.define("DnsRecord", "no8s.concert.dev", "v1").await;
        world.register("dns_record", json!([{"resourceType": "DnsRecord"}])).await;
        world.pass(1).await;
        world
    }

    /// The same store, with everything else made anew.
    pub async fn restart(self) -> Self {
        self.running.stop(false).await;
        assert!(self.tasks.stop(Duration::ZERO).await.is_empty());
        let world = Self::start(self.clock, self.store);
        world.pass(1).await;
        world
    }

    fn start(clock: Arc<PausedClock>, store: Local) -> Self {
        let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let engine = Engine::new(shared.clone(), clock.clone(), Chance::seeded(3), tasks.clone());
        let (board, kinds) = (Board::new(clock.clone()), store.clone());
        let running = start(Parts {
            engine: engine.clone(),
            store: shared,
            work: Arc::new(store.clone()),
            history: Arc::new(store.clone()),
            board: board.clone(),
            clock: clock.clone(),
            chance: Chance::seeded(9),
            kinds: Arc::new(move || kinds.kinds()),
            rules: Rules { jitter: 0.0, ..Rules::default() },
        });
        Self { clock, store, board, engine, running: running.unwrap(), tasks }
    }

    /// Lets so many seconds pass.
    pub async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    pub async fn define(&self, kind: &str, group: &str, version: &str) {
        define(&self.store, kind, group, version).await;
    }

    pub async fn register(&self, name: &str, handles: Value) {
        self.create_object(json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Worker",
            "metadata": {"name": names::worker_object(name)}, "spec": {"name": name, "handles": handles}}))
            .await;
    }

    pub async fn create(&self, id: u64) {
        self.create_object(json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord",
            "metadata": {"name": format!("r{id}"), "labels": {names::ID: id.to_string()},
                "finalizers": ["dns_record"]},
            "spec": {"value": 1}}))
            .await;
    }

    pub async fn create_object(&self, object: Value) {
        self.store.create(Object::from_value(object).unwrap(), &by()).await.unwrap();
    }

    pub async fn get(&self, id: u64) -> Object {
        self.store.get(&key(id)).await.unwrap().decode()
    }

    /// The same, at rest.
    pub async fn stored(&self, id: u64) -> concert_model::Encoded {
        self.store.get(&key(id)).await.unwrap()
    }

    pub async fn is_gone(&self, id: u64) -> bool {
        matches!(self.store.get(&key(id)).await, Err(Error::NotFound { .. }))
    }

    /// Another spec.
    pub async fn change(&self, id: u64) -> i64 {
        let mut object = self.get(id).await;
        object.set("spec", json!({"value": object.generation() + 1}));
        self.store.update(object, &by()).await.unwrap().decode().generation()
    }

    /// What the API does for DELETE.
    pub async fn delete(&self, id: u64) {
        let gone = self.store.delete(&key(id), &Delete::default(), &by()).await.unwrap();
        let mut object = gone.into_object().decode();
        object.set("status", no8s::deleting(&object, self.clock.now()));
        self.store.update_status(object, &by()).await.unwrap();
    }

    pub async fn set_finalizers(&self, id: u64, finalizers: Value) {
        let patch = concert_model::Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        self.store.patch(&key(id), Part::Main, &patch, &by()).await.unwrap();
    }

    pub async fn phase(&self, id: u64) -> Phase {
        Resource(&self.get(id).await).shown_phase()
    }

    pub async fn history(&self, id: u64) -> Vec<AttemptRecord> {
        let attempts = self.store.attempts(&item_of(&id.to_string()), 100).await.unwrap();
        attempts.into_iter().map(|(_, record)| record).collect()
    }

    pub async fn claim(&self, host: &str, limit: usize) -> Vec<Claimed> {
        let ask = Ask { host: host.into(), limit, ..Ask::default() };
        self.board.claim("dns_record", ask).await
    }

    /// The one item that is due.
    pub async fn one(&self) -> Claimed {
        let mut claimed = self.claim("h", 10).await;
        assert_eq!(claimed.len(), 1);
        claimed.remove(0)
    }

    /// What `update_status` of a plugin comes to.
    pub async fn say(&self, claimed: &Claimed, phase: Phase, observed: Option<i64>) -> Result<(), Error> {
        self.write(claimed, phase, observed).await?;
        self.board.note("dns_record", &claimed.item, claimed.fence, phase.as_str()).ok();
        Ok(())
    }

    /// The first half of it: what is written is not noted yet.
    pub async fn write(&self, claimed: &Claimed, phase: Phase, observed: Option<i64>) -> Result<(), Error> {
        let now = self.clock.now();
        let rules = Rules { jitter: 0.0, ..Rules::default() };
        let retries = Resource(&claimed.object).retry_count();
        let moment = Moment { now, claimed: claimed.object.generation(), retries, rules, draw: 0.5 };
        let mut object = self.store.get(&claimed.key).await?.decode();
        let report = no8s::Report { phase, message: Some("said".into()), observed_generation: observed };
        object.set("status", no8s::reported(&object, &report, &moment));
        self.store.update_status(object, &by().fenced(fence(claimed))).await.map(drop)
    }

    pub async fn finish(&self, claimed: &Claimed, success: Option<bool>) -> Result<(), Stale> {
        let report = Report { success, message: "msg".into(), ..Report::default() };
        self.board.finish("dns_record", &claimed.item, claimed.fence, report).await
    }

    /// What the plugin of the guide does with what is not to go.
    pub async fn do_well(&self, claimed: &Claimed) -> Result<(), Stale> {
        let generation = claimed.object.generation();
        self.say(claimed, Phase::Reconciling, None).await.unwrap();
        self.say(claimed, Phase::Ready, Some(generation)).await.unwrap();
        self.finish(claimed, Some(true)).await
    }
}

pub fn fence(claimed: &Claimed) -> Fence {
    let item = ItemKey { controller: LEASES.into(), item: claimed.key.to_string().into() };
    Fence { item, number: claimed.fence }
}

pub fn key(id: u64) -> ObjectKey {
    ObjectKey::cluster(GroupKind::new("no8s.concert.dev", "DnsRecord"), format!("r{id}"))
}

pub fn by() -> By {
    By::actor("test")
}

async fn define(store: &Local, kind: &str, group: &str, version: &str) {
    let plural = names::plural(kind);
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Cluster", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}],
        },
    });
    store.create(Object::from_value(definition).unwrap(), &by()).await.unwrap();
}
