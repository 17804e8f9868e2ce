//! The two stores that every case runs on.

use std::sync::Arc;

use concert_controllers::gc;
use concert_engine::{Engine, Tasks, TokioSpawn};
use concert_store::backend::memory::Memory;
use concert_store::kubernetes::{Config as KubernetesConfig, Connect, Kubernetes, Spawn};
use concert_store::{Chance, Config, Local, Store, SystemClock};
use concert_testbed::Cluster;

/// The store under test.
pub struct Subject {
    pub store: Arc<dyn Store>,
    /// What does for our own store what a cluster's controllers do: objects go with their owners and with their
    /// definitions.
    _collectors: Option<gc::Running>,
}

/// Our own store, in memory.
pub async fn embedded() -> Option<Subject> {
    let (clock, chance) = (Arc::new(SystemClock::new()), Chance::from_system());
    let config = Config::new(clock.clone(), chance.fork());
    let local = Local::open(Arc::new(Memory::new()), config).unwrap();
    let store = Arc::new(local.clone());
    let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
    let collectors = gc::start(gc::Parts {
        engine: Engine::new(store.clone(), clock.clone(), chance.fork(), tasks.clone()),
        store: store.clone(),
        clock,
        chance,
        tasks,
        kinds: Arc::new(move || local.kinds()),
        settings: gc::Settings::default(),
        fence: None,
    });
    Some(Subject { store, _collectors: Some(collectors.unwrap()) })
}

/// A store on the cluster that all cases of this process share; none where there is no cluster, which
/// the testbed has said.
pub async fn kubernetes() -> Option<Subject> {
    let cluster = Cluster::shared()?;
    let connect = Connect { kubeconfig: Some(cluster.kubeconfig()), context: None };
    let runtime = tokio::runtime::Handle::current();
    let spawn: Spawn = Arc::new(move |_, task| drop(runtime.spawn(task)));
    let config = KubernetesConfig::new(Arc::new(SystemClock::new()), spawn);
    let store = Arc::new(Kubernetes::connect(&connect, config).await.unwrap());
    Some(Subject { store, _collectors: None })
}
