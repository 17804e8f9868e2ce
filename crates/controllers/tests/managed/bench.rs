//! One object, its reconciler, and everything around it that a case can look at or break.

use std::sync::Arc;
use std::time::Duration;

use concert_controllers::managed::config::Configurations;
use concert_controllers::managed::connection::Publisher;
use concert_controllers::managed::decide::Rules;
use concert_controllers::managed::event::Notes;
use concert_controllers::managed::mentions::Mentions;
use concert_controllers::managed::metrics::Metrics;
use concert_controllers::managed::poll::Poll;
use concert_controllers::managed::rest::AtRest;
use concert_controllers::managed::roll::Roll;
use concert_controllers::managed::run::Managed;
use concert_controllers::managed::unwritten::Unwritten;
use concert_controllers::managed::vocabulary::annotation;
use concert_controllers::managed::{CREATION_GRACE, TIMEOUT};
use concert_engine::{Failure, Lane, Outcome, Reasons, Reconciler, Request};
use concert_model::{GroupKind, GroupVersionKind, Object, ObjectKey, Patch, Timestamp, condition};
use concert_provider::Served;
use concert_store::conformance::HandClock;
use concert_store::{By, Chance, Clock, Delete, Error, Part, Store};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::definition::{define, definition, namespace, unique};
use crate::faulty::{Faulty, Verb};
use crate::line::Line;
use crate::scripted::Scripted;
use crate::stores::Subject;

const GROUP: &str = "managed.conformance.concert.dev";

/// How often objects are looked at, without jitter.
pub const POLL: Duration = Duration::from_secs(60);

/// A clock moved by hand, and by whoever sleeps: nobody is kept waiting.
pub struct LeapingClock(HandClock);

impl LeapingClock {
    pub fn advance(&self, seconds: u64) {
        self.0.advance(Duration::from_secs(seconds));
    }
}

impl Clock for LeapingClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.advance(duration);
        Box::pin(std::future::ready(()))
    }
}

pub struct Bench {
    /// As the reconciler sees it.
    pub store: Arc<Faulty>,
    /// As everybody else does.
    pub direct: Arc<dyn Store>,
    pub clock: Arc<LeapingClock>,
    pub provider: Arc<Scripted>,
    pub line: Arc<Line>,
    pub managed: Managed,
    pub key: ObjectKey,
    notes: Arc<Notes>,
    told: std::sync::atomic::AtomicUsize,
}

/// The kind in namespaces.
pub fn thing() -> GroupVersionKind {
    GroupKind::new(GROUP, "Thing").at_version("v1")
}

/// The kind outside of them.
pub fn cluster_thing() -> GroupVersionKind {
    GroupKind::new(GROUP, "ClusterThing").at_version("v1")
}

pub fn secret() -> GroupKind {
    GroupKind::new("", "Secret")
}

impl Bench {
    /// For an object in a namespace of its own.
    pub async fn new(subject: &Subject) -> Self {
        Self::of(subject, thing(), true).await
    }

    /// For an object outside of namespaces.
    pub async fn cluster(subject: &Subject) -> Self {
        Self::of(subject, cluster_thing(), false).await
    }

    async fn of(subject: &Subject, kind: GroupVersionKind, is_namespaced: bool) -> Self {
        let direct = subject.store.clone();
        define(&direct, definition(&kind.group_kind, is_namespaced, true)).await;
        let namespace = if is_namespaced { namespace(&direct).await } else { String::new() };
        let key = ObjectKey::namespaced(kind.group_kind.clone(), namespace, unique("a"));
        let store = Arc::new(Faulty::new(direct.clone()));
        let clock = Arc::new(LeapingClock(HandClock::new()));
        let provider = Arc::new(Scripted::new(vec![Served::new(kind.clone())]));
        let line = Arc::new(Line::new(provider.clone()));
        let notes = Arc::new(Notes::new());
        let managed = Managed {
            name: Managed::name_of(&kind),
            rules: Rules {
                served: Served::new(kind.clone()),
                can_look_up: false,
                names_by_object: false,
                has_policies: true,
                creation_grace: CREATION_GRACE,
                timeout: TIMEOUT,
            },
            poll: Poll { jitter: Duration::ZERO, ..Poll::every(POLL) },
            store: store.clone(),
            clock: clock.clone(),
            chance: Chance::seeded(1),
            connector: line.clone(),
            publisher: Arc::new(Publisher::new(store.clone())),
            configurations: Arc::new(Configurations::new(store.clone(), clock.clone(), |_| None)),
            recorder: notes.clone(),
            metrics: Metrics::new().kind(&kind),
            at_rest: AtRest::default(),
            mentions: Arc::new(Mentions::new(false)),
            roll: Roll::default(),
            term: None,
            unwritten: Unwritten::default(),
        };
        let told = std::sync::atomic::AtomicUsize::new(0);
        Self { store, direct, clock, provider, line, managed, key, notes, told }
    }

    /// What a process that was just started has: it remembers nothing.
    pub fn restart(&mut self) {
        self.managed.publisher = Arc::new(Publisher::new(self.store.clone()));
        self.managed.chance = Chance::seeded(2);
        (self.managed.at_rest, self.managed.roll) = Default::default();
        self.managed.unwritten = Unwritten::default();
    }

    /// The kind under test.
    pub fn kind(&self) -> &GroupKind {
        &self.key.kind
    }

    /// Declares the object: size 1, and what `rest` says, which may include metadata.
    pub async fn declare(&self, rest: Value) -> Object {
        self.declare_as(&self.key.name, rest).await
    }

    /// Declares another object of the same kind.
    pub async fn declare_as(&self, name: &str, rest: Value) -> Object {
        let kind = self.managed.rules.served.kind.clone();
        let mut object = Object::new(&kind, &self.key.namespace, name);
        object.set("spec", json!({"forProvider": {"size": 1}}));
        let laid = Patch::merge(rest).unwrap().apply(&object.into_value()).unwrap();
        self.direct.create(Object::from_value(laid).unwrap(), &user()).await.unwrap().decode()
    }

    /// Declares an object and reconciles it until it is as declared.
    pub async fn declare_ready(&self, rest: Value) -> Object {
        self.declare(rest).await;
        assert_eq!(self.reconcile().await, polled());
        self.forget();
        self.get().await
    }

    /// A person changes the object.
    pub async fn edit(&self, patch: Value) -> Object {
        let patch = Patch::merge(patch).unwrap();
        self.direct.patch(&self.key, Part::Main, &patch, &user()).await.unwrap().decode()
    }

    /// A person sets one annotation, or takes it away.
    pub async fn annotate(&self, name: &str, value: Option<&str>) {
        self.edit(json!({"metadata": {"annotations": {name: value}}})).await;
    }

    /// A person wants the object gone.
    pub async fn delete(&self) {
        self.direct.delete(&self.key, &Delete::default(), &user()).await.unwrap();
    }

    /// One pass, because something has changed.
    pub async fn reconcile(&self) -> Outcome {
        self.run(Lane::Event).await
    }

    /// One pass, because it is time.
    pub async fn poll(&self) -> Outcome {
        self.run(Lane::Poll).await
    }

    async fn run(&self, lane: Lane) -> Outcome {
        let request = Request {
            key: self.key.clone(),
            attempt: 0,
            reasons: Reasons::default(),
            lane,
            fence: None,
            is_onlooker: false,
            deadline: Duration::MAX,
            permit: None,
        };
        self.managed.reconcile(request).await
    }

    pub async fn get(&self) -> Object {
        self.direct.get(&self.key).await.unwrap().decode()
    }

    pub async fn is_gone(&self) -> bool {
        matches!(self.direct.get(&self.key).await, Err(Error::NotFound { .. }))
    }

    /// What the object says of itself: `Type=Status/Reason@generation: message`, by type.
    pub async fn conditions(&self) -> Vec<String> {
        conditions(&self.get().await)
    }

    pub async fn annotation(&self, name: &str) -> Option<String> {
        self.get().await.annotation(name).map(str::to_owned)
    }

    /// Whether a create stands open.
    pub async fn has_token(&self) -> bool {
        self.annotation(annotation::CREATE_TOKEN).await.is_some()
    }

    /// The entries of the connection secret `name`, as they are stored.
    pub async fn secret(&self, name: &str) -> Value {
        let key = ObjectKey::namespaced(secret(), self.key.namespace.clone(), name);
        self.direct.get(&key).await.unwrap().decode().get("data").clone()
    }

    /// The reasons of the events since this was last asked, and warnings with their message.
    pub fn events(&self) -> Vec<String> {
        let all = self.notes.taken();
        let from = self.told.swap(all.len(), std::sync::atomic::Ordering::Relaxed);
        let text = |(component, event): &(Arc<str>, concert_controllers::managed::event::Event)| {
            assert_eq!(*component, self.managed.name);
            assert_eq!(event.object, self.key);
            assert!(event.annotations.contains_key("external-name"));
            if event.is_warning {
                format!("{}: {}", event.reason, event.message)
            } else {
                event.reason.into()
            }
        };
        all[from..].iter().map(text).collect()
    }

    /// What the provider was asked since this was last asked.
    pub fn calls(&self) -> Vec<&'static str> {
        self.provider.take_asked().into_iter().map(|(verb, _)| verb).collect()
    }

    /// The writes on the object since this was last asked.
    pub fn writes(&self) -> Vec<Verb> {
        let writes = self.store.take_writes().into_iter();
        writes.filter(|it| it.kind == *self.kind()).map(|it| it.verb).collect()
    }

    /// How many objects there are, are ready, and are synced, as the numbers have it.
    pub fn counts(&self) -> String {
        format!("{:?}", self.managed.metrics)
    }

    /// Forgets all events, calls and writes so far.
    pub fn forget(&self) {
        self.events();
        self.calls();
        self.store.take_writes();
    }
}

pub fn conditions(object: &Object) -> Vec<String> {
    let text = |it: &condition::Condition| {
        let generation = it.observed_generation.map(|it| it.to_string()).unwrap_or_default();
        let message = if it.message.is_empty() { String::new() } else { format!(": {}", it.message) };
        format!("{}={:?}/{}@{generation}{message}", it.kind, it.status, it.reason)
    };
    let mut all: Vec<String> = condition::all(object.status()).iter().map(text).collect();
    all.sort();
    all
}

pub fn user() -> By {
    By::actor("user")
}

/// All is as declared.
pub fn polled() -> Outcome {
    Outcome::Poll(POLL)
}

/// Nothing before the object changes.
pub fn on_change() -> Outcome {
    Outcome::Poll(Duration::MAX)
}

/// Again with back-off, after a failure.
pub fn retry(text: &str) -> Outcome {
    Outcome::Transient(Failure::new(text))
}

/// Much later, after a failure for good.
pub fn much_later(text: &str) -> Outcome {
    Outcome::Terminal(Failure::new(text).retried_after(POLL * 10))
}

/// Again with back-off, and nothing has failed.
pub fn requeue(text: &str) -> Outcome {
    Outcome::Requeue(text.into(), None)
}

/// Again, since somebody else was faster.
pub fn conflict() -> Outcome {
    requeue("the object changed meanwhile")
}

/// The store is to blame.
pub fn store_failed(text: &str) -> Outcome {
    Outcome::Transient(Failure::new(text).elsewhere())
}

/// Metadata with these annotations, to declare an object with.
pub fn annotated(annotations: &[(&str, &str)]) -> Value {
    let annotations: serde_json::Map<String, Value> =
        annotations.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    json!({"metadata": {"annotations": annotations}})
}

/// The fields of `spec` that allow these actions only.
pub fn allowing(actions: &[&str]) -> Value {
    json!({"spec": {"managementPolicies": actions}})
}

/// What a provider says that has a bad day.
pub fn boom() -> concert_provider::Error {
    concert_provider::Error::new(concert_provider::Class::Transient, "boom")
}

/// What an object says that is as declared, in this generation.
pub fn all_well(generation: i64) -> Vec<String> {
    vec![
        format!("Ready=True/Available@{generation}"),
        format!("Synced=True/ReconcileSuccess@{generation}"),
        format!("UpToDate=True/ObserveMatched@{generation}"),
    ]
}
