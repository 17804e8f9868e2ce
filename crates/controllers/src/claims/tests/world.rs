//! The shipped kinds and definitions, the controllers that play them, and the simulated cloud, on a clock
//! that moves when everybody waits.

use std::sync::Arc;
use std::time::Duration;

use concert_engine::{Authority, Engine, Tasks, TokioSpawn};
use concert_model::condition;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Patch};
use concert_provider::InProcess;
use concert_provider_example::cloud::{Api, Cloud, Settings as CloudSettings};
use concert_provider_example::{CLAIMED_CRDS, CRDS, Example};
use concert_store::backend::memory::Memory;
use concert_store::{By, Chance, Clock, Config, Delete, Error, Local, PageRequest, Part, Query, Store};
use serde_json::{Value, json};

use crate::claims::registry::{self, Registry};
use crate::fixtures::PausedClock;
use crate::gc;
use crate::managed::event::Notes;
use crate::managed::metrics::Metrics;
use crate::managed::registry::{Declaration, Parts, Rank, Registry as ManagedRegistry, Settings};

const SHIPPED: [&str; 7] = [
    include_str!("../../../../../deploy/crds/claims.yaml"),
    include_str!("../../../../../deploy/claims/buckets.yaml"),
    include_str!("../../../../../deploy/claims/redisclusters.yaml"),
    include_str!("../../../../../deploy/claims/kubernetesclusters.yaml"),
    include_str!("../../../../../deploy/claims/mysqlinstances.yaml"),
    include_str!("../../../../../deploy/claims/postgresqlinstances.yaml"),
    include_str!("../../../../../deploy/claims/classes.yaml"),
];
pub const DEFINITIONS: &str = include_str!("../../../../../deploy/claims/definitions.yaml");

pub struct World {
    pub clock: Arc<PausedClock>,
    pub local: Local,
    pub api: Arc<Api>,
    pub notes: Arc<Notes>,
    pub claims: Registry,
    _managed: ManagedRegistry,
    _gc: gc::Running,
    _tasks: Tasks,
}

impl World {
    /// Everything that is shipped, and accounts `aws`, `gcp` and `azure`.
    pub async fn new() -> Self {
        let world = Self::bare().await;
        for definition in documents(DEFINITIONS) {
            world.create(definition).await;
        }
        world.settle().await;
        world
    }

    /// The same, without definitions of claims.
    pub async fn bare() -> Self {
        let clock = Arc::new(PausedClock::new());
        let config = Config::new(clock.clone(), Chance::seeded(7)).inline();
        let local = Local::open(Arc::new(Memory::new()), config).unwrap();
        for text in CRDS.iter().chain(CLAIMED_CRDS).map(|(_, text)| *text).chain(SHIPPED) {
            for document in documents(text) {
                local.create(Object::from_value(document).unwrap(), &by()).await.unwrap();
            }
        }
        let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
        let cloud = Cloud::new(CloudSettings::default(), Chance::seeded(3));
        let api = Arc::new(Api::new(cloud, clock.clone()));
        let notes = Arc::new(Notes::new());
        let parts = parts(&local, &clock, &tasks, &notes);
        let managed = ManagedRegistry::start(parts.clone());
        let provider = Arc::new(Example::new(api.clone()).with_claims(true));
        let connector = Arc::new(InProcess::new(provider));
        managed
            .add(Declaration {
                name: "cloud".into(),
                connector,
                kinds: Vec::new(),
                allowance: Default::default(),
                rank: Rank::Configured(0),
                last: None,
            })
            .unwrap();
        let claims = registry::start(parts.clone()).unwrap();
        let gc = collector(&local, &parts);
        let world = Self { clock, local, api, notes, claims, _managed: managed, _gc: gc, _tasks: tasks };
        for name in ["aws", "gcp", "azure"] {
            world.create(account(name)).await;
        }
        for name in ["team", "other", "system"] {
            world.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
        }
        world.settle().await;
        world
    }

    /// Lets everybody work until only those are left who wait for longer than that.
    pub async fn settle(&self) {
        self.clock.sleep(Duration::from_secs(10)).await;
    }

    pub async fn create(&self, object: Value) -> Encoded {
        self.local.create(Object::from_value(object).unwrap(), &by()).await.unwrap()
    }

    pub async fn get(&self, key: &ObjectKey) -> Object {
        self.local.get(key).await.unwrap().decode()
    }

    pub async fn has(&self, key: &ObjectKey) -> bool {
        match self.local.get(key).await {
            Ok(_) => true,
            Err(Error::NotFound { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }

    pub async fn list(&self, kind: GroupKind) -> Vec<Object> {
        let page = self.local.list(&Query::all(kind), &PageRequest::whole()).await.unwrap();
        page.items.iter().map(Encoded::decode).collect()
    }

    pub async fn delete(&self, key: &ObjectKey) {
        self.local.delete(key, &Delete::default(), &by()).await.unwrap();
        self.settle().await;
    }

    pub async fn patch(&self, key: &ObjectKey, patch: Value) {
        self.local.patch(key, Part::Main, &Patch::Merge(patch), &by()).await.unwrap();
        self.settle().await;
    }

    /// A claim for a Redis in `team`.
    pub async fn redis(&self, name: &str, spec: Value) -> ObjectKey {
        self.redis_in("team", name, spec).await
    }

    pub async fn redis_in(&self, namespace: &str, name: &str, mut spec: Value) -> ObjectKey {
        if spec.get("writeConnectionSecretToRef").is_none() {
            spec["writeConnectionSecretToRef"] = json!({"name": format!("{name}-conn")});
        }
        let claim = json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec});
        let key = self.create(claim).await.key().clone();
        self.settle().await;
        key
    }

    /// A class of Memorystore.
    pub async fn class(&self, name: &str, metadata: Value, template: Value) -> ObjectKey {
        let mut class = json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1",
            "kind": "CloudMemorystoreInstanceClass", "metadata": metadata,
            "specTemplate": {"writeConnectionSecretsToNamespace": "system", "providerRef": {"name": "gcp"},
                "forProvider": {"tier": "BASIC", "region": "us-west2", "memorySizeGb": 1}}});
        class["metadata"]["name"] = json!(name);
        for (field, value) in template.as_object().unwrap() {
            class["specTemplate"][field] = value.clone();
        }
        let key = self.create(class).await.key().clone();
        self.settle().await;
        key
    }

    /// A Memorystore that somebody made by hand.
    pub async fn store(&self, name: &str, more: Value) -> ObjectKey {
        let mut store = json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1",
            "kind": "CloudMemorystoreInstance", "metadata": {"name": name},
            "spec": {"providerRef": {"name": "gcp"},
                "writeConnectionSecretToRef": {"namespace": "system", "name": format!("{name}-conn")},
                "forProvider": {"tier": "BASIC", "region": "us-west2", "memorySizeGb": 1}}});
        for (field, value) in more.as_object().unwrap() {
            store["spec"][field] = value.clone();
        }
        let key = self.create(store).await.key().clone();
        self.settle().await;
        key
    }

    /// The managed resource of a claim.
    pub async fn managed(&self, claim: &ObjectKey) -> Option<Object> {
        let claim = self.get(claim).await;
        let name = claim.spec()["resourceRef"]["name"].as_str()?.to_owned();
        let found = self.list(stores()).await;
        found.into_iter().find(|it| it.name() == name)
    }

    pub async fn phase(&self, key: &ObjectKey) -> String {
        self.get(key).await.status()["bindingPhase"].as_str().unwrap_or_default().to_owned()
    }

    /// What a condition says: its status, reason and message.
    pub async fn said(&self, key: &ObjectKey, kind: &str) -> (String, String, String) {
        let found =
            condition::find(self.get(key).await.status(), kind).unwrap_or_else(|| panic!("no {kind}"));
        (format!("{:?}", found.status), found.reason, found.message)
    }

    #[track_caller]
    pub fn told(&self, reason: &str) -> usize {
        self.notes.taken().iter().filter(|(_, event)| event.reason == reason).count()
    }

    /// How many things are in the cloud.
    pub fn live(&self) -> usize {
        self.api.cloud().truth().live().len()
    }
}

fn parts(local: &Local, clock: &Arc<PausedClock>, tasks: &Tasks, notes: &Arc<Notes>) -> Parts {
    let (store, chance) = (Arc::new(local.clone()), Chance::seeded(5));
    Parts {
        engine: Engine::new(store.clone(), clock.clone(), chance.fork(), tasks.clone()),
        store,
        clock: clock.clone(),
        chance,
        tasks: tasks.clone(),
        recorder: notes.clone(),
        metrics: Metrics::new(),
        environment: Arc::new(|_| None),
        settings: Settings::default(),
        authority: Authority::Alone,
    }
}

fn collector(local: &Local, parts: &Parts) -> gc::Running {
    let kinds = local.clone();
    gc::start(gc::Parts {
        engine: parts.engine.clone(),
        store: parts.store.clone(),
        clock: parts.clock.clone(),
        chance: parts.chance.fork(),
        tasks: parts.tasks.clone(),
        kinds: Arc::new(move || kinds.kinds()),
        settings: gc::Settings::default(),
        fence: None,
    })
    .unwrap()
}

/// The documents of a YAML file.
pub fn documents(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(|it| serde_saphyr::from_str(it).unwrap()).collect()
}

pub fn account(name: &str) -> Value {
    json!({"apiVersion": "example.crossplane.io/v1alpha1", "kind": "ProviderConfig",
        "metadata": {"name": name}, "spec": {"credentials": {"source": "None"}}})
}

pub fn by() -> By {
    By::actor("test")
}

pub fn stores() -> GroupKind {
    GroupKind::new("cache.gcp.crossplane.io", "CloudMemorystoreInstance")
}

pub fn secret(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::namespaced(GroupKind::new("", "Secret"), namespace, name)
}

pub fn class_ref(name: &str) -> Value {
    json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1", "kind": "CloudMemorystoreInstanceClass",
        "name": name})
}

pub fn store_ref(name: &str) -> Value {
    json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1", "kind": "CloudMemorystoreInstance",
        "name": name})
}

/// The annotation of default classes.
pub fn is_default() -> Value {
    json!({"annotations": {"resourceclass.crossplane.io/is-default-class": "true"}})
}
