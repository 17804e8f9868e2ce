//! The two stores that every case runs on.

use std::sync::Arc;

use concert_store::backend::memory::Memory;
use concert_store::kubernetes::{Config as KubernetesConfig, Connect, Kubernetes, Spawn};
use concert_store::{Chance, Config, Local, Store, SystemClock};
use concert_testbed::Cluster;

/// The store under test.
pub struct Subject {
    pub store: Arc<dyn Store>,
    /// Whether the server itself deletes the objects of a definition that is to go. For our own store
    /// that is the work of a controller which is no part of this crate.
    pub cleans_up: bool,
}

/// Our own store, in memory.
pub async fn embedded() -> Option<Subject> {
    let config = Config::new(Arc::new(SystemClock::new()), Chance::from_system());
    let store = Arc::new(Local::open(Arc::new(Memory::new()), config).unwrap());
    Some(Subject { store, cleans_up: false })
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
    Some(Subject { store, cleans_up: true })
}
