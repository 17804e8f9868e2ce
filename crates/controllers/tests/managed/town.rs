//! A registry with providers and kinds, as a process has one, and what a case can do to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use concert_controllers::managed::event::Silent;
use concert_controllers::managed::metrics::Metrics;
use concert_controllers::managed::registry::{Declaration, Parts, Problem, Rank, Registry, Settings};
use concert_engine::controller::{ItemState, Phase};
use concert_engine::{Engine, Lane, Tasks, TokioSpawn};
use concert_model::{Encoded, FieldSelector, GroupKind, Object, ObjectKey, Patch, Timestamp};
use concert_provider::Served;
use concert_store::conformance::next;
use concert_store::{Chance, Clock, Part, Query, Store, SystemClock};
use futures_util::future::BoxFuture;
use serde_json::json;

use crate::bench::{conditions, user};
use crate::definition::{define, definition, namespace, unique, until};
use crate::faulty::Faulty;
use crate::line::Line;
use crate::scripted::Scripted;
use crate::stores::Subject;

/// How long everything may take to stop.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The machine's clock, which a case can put forward.
#[derive(Default)]
pub struct Forward {
    clock: SystemClock,
    seconds: AtomicU64,
}

impl Forward {
    /// For who asks what time it is. Who sleeps is not woken.
    pub fn put(&self, seconds: u64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for Forward {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn elapsed(&self) -> Duration {
        self.clock.elapsed() + Duration::from_secs(self.seconds.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }
}

/// A registry, and kinds in a group that no other case has.
pub struct Town {
    pub store: Arc<dyn Store>,
    /// The store as the registry and its controllers see it.
    pub faults: Arc<Faulty>,
    pub parts: Parts,
    pub registry: Registry,
    pub clock: Arc<Forward>,
    tasks: Tasks,
    pub group: String,
    pub namespace: String,
    settled: AtomicUsize,
}

pub struct Inhabitant {
    pub provider: Arc<Scripted>,
    pub line: Arc<Line>,
}

/// A provider at the end of this line, for whatever it serves.
pub fn declared(name: &str, line: Arc<Line>, rank: Rank) -> Declaration {
    let (kinds, allowance) = (Vec::new(), Default::default());
    Declaration { name: name.into(), connector: line, kinds, allowance, rank, last: None }
}

impl Town {
    pub async fn new(subject: &Subject) -> Self {
        Self::with(subject, Settings::default()).await
    }

    pub async fn with(subject: &Subject, settings: Settings) -> Self {
        let store = subject.store.clone();
        let faults = Arc::new(Faulty::new(store.clone()));
        let clock = Arc::new(Forward::default());
        let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
        let chance = Chance::from_system();
        let parts = Parts {
            engine: Engine::new(faults.clone(), clock.clone(), chance.fork(), tasks.clone()),
            store: faults.clone(),
            clock: clock.clone(),
            chance,
            tasks: tasks.clone(),
            recorder: Arc::new(Silent),
            metrics: Metrics::new(),
            environment: Arc::new(|_| None),
            settings,
            authority: concert_engine::Authority::Alone,
        };
        let group = format!("{}.concert.dev", unique("town"));
        let namespace = namespace(&store).await;
        let (registry, settled) = (Registry::start(parts.clone()), AtomicUsize::default());
        Self { registry, clock, parts, store, faults, tasks, group, namespace, settled }
    }

    /// What a process does that leads, no longer does, and leads again.
    pub async fn restart(&mut self) {
        self.registry.stop(PATIENCE).await;
        self.registry = Registry::start(self.parts.clone());
    }

    pub fn kind(&self, kind: &str) -> GroupKind {
        GroupKind::new(&*self.group, kind)
    }

    /// The name of the controller of a kind.
    pub fn controller(&self, kind: &str) -> Arc<str> {
        format!("managed/{kind}.{}", self.group).into()
    }

    pub async fn define(&self, kind: &str) -> ObjectKey {
        define(&self.store, definition(&self.kind(kind), true, true)).await
    }

    /// A provider of these kinds, which can be reached unless `down` says why not.
    pub fn settle(&self, name: &str, kinds: &[&str], down: Option<&'static str>) -> Inhabitant {
        let served = kinds.iter().map(|it| Served::new(self.kind(it).at_version("v1"))).collect();
        self.settle_with(name, served, down, Rank::Configured(self.settled.fetch_add(1, Ordering::Relaxed)))
    }

    pub fn settle_with(
        &self,
        name: &str,
        served: Vec<Served>,
        down: Option<&'static str>,
        rank: Rank,
    ) -> Inhabitant {
        let provider = Arc::new(Scripted::new(served));
        let line = Arc::new(Line::new(provider.clone()));
        line.cut(down);
        let settler = Inhabitant { provider, line };
        self.welcome(name, &settler, rank);
        settler
    }

    /// Adds a provider that there is.
    pub fn welcome(&self, name: &str, settler: &Inhabitant, rank: Rank) {
        self.registry.add(declared(name, settler.line.clone(), rank)).unwrap();
    }

    /// Waits until so many objects of a kind are there, ready and synced, by the numbers.
    pub async fn counts(&self, kind: &str, number: usize) {
        let metrics = self.parts.metrics.kind(&self.kind(kind).at_version("v1"));
        let all = format!("KindMetrics {{ exists: {number}, ready: {number}, synced: {number}, .. }}");
        until(async || format!("{metrics:?}") == all).await;
    }

    pub async fn declare(&self, kind: &str, name: &str) -> ObjectKey {
        let mut object = Object::new(&self.kind(kind).at_version("v1"), &self.namespace, name);
        object.set("spec", json!({"forProvider": {"size": 1}}));
        self.store.create(object, &user()).await.unwrap().key().clone()
    }

    /// Waits, by watching, until an object says this of itself; an end of a condition's text will do.
    pub async fn says(&self, key: &ObjectKey, text: &str) -> Object {
        let name = FieldSelector::field("metadata.name", &key.name);
        let query = Query::all(key.kind.clone()).in_namespace(&*self.namespace).with_fields(name);
        let mut events = self.store.watch(&query, None).await.unwrap();
        loop {
            if let Some(object) = next(&mut events).await.object().map(Encoded::decode)
                && conditions(&object).iter().any(|it| it.contains(text))
            {
                return object;
            }
        }
    }

    pub async fn is_ready(&self, key: &ObjectKey) {
        self.says(key, "Ready=True/Available").await;
    }

    /// Waits until there is a problem whose text has this in it.
    pub async fn has_problem(&self, subject: &str, why: &str) {
        let is_it = |it: &Problem| it.subject.contains(subject) && it.why.contains(why);
        until(async || self.registry.problems().iter().any(is_it)).await;
    }

    /// Waits until nothing is due for an object but its poll, some time.
    pub async fn is_at_rest(&self, kind: &str, key: &ObjectKey) {
        let is_resting = |it: &ItemState| it.lane == Some(Lane::Poll) && matches!(it.phase, Phase::DueAt(_));
        let state = || self.parts.engine.state(&self.controller(kind), key);
        until(async || state().as_ref().is_some_and(is_resting)).await;
    }

    pub async fn has_no_problems(&self) {
        until(async || self.registry.problems().is_empty()).await;
    }

    /// A provider of one kind, whose objects others are watched for.
    pub fn settle_watching(&self, kind: &str, change: impl FnOnce(&mut Served)) -> Inhabitant {
        let mut served = Served::new(self.kind(kind).at_version("v1"));
        change(&mut served);
        self.settle_with("p", vec![served], None, Rank::Configured(0))
    }

    /// The thing changes behind everybody's back, somebody makes `waker`, and the thing is mended.
    pub async fn is_woken_by(&self, settler: &Inhabitant, waker: Object) {
        settler.provider.put("thing-1", json!({"size": 9}));
        self.store.create(waker, &user()).await.unwrap();
        until(async || settler.provider.things()["thing-1"] == json!({"size": 1})).await;
    }

    /// The same for the object `key` of the kind `Reader`, and a `waker` that is there and gets this content.
    pub async fn is_woken_by_edit(
        &self,
        settler: &Inhabitant,
        key: &ObjectKey,
        waker: &ObjectKey,
        content: &str,
    ) {
        self.is_at_rest("reader", key).await;
        settler.provider.put("thing-1", json!({"size": 9}));
        let edit = Patch::merge(json!({"data": {"content": content}})).unwrap();
        self.store.patch(waker, Part::Main, &edit, &user()).await.unwrap();
        until(async || settler.provider.things()["thing-1"] == json!({"size": 1})).await;
    }

    pub async fn leave(self) {
        self.registry.stop(PATIENCE).await;
        let late = self.tasks.stop(PATIENCE).await;
        assert!(late.is_empty(), "still running: {late:?}");
    }
}
