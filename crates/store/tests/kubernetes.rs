//! The conformance suite on a real Kubernetes API server.

use std::sync::Arc;

use concert_store::SystemClock;
use concert_store::conformance::Subject;
use concert_store::kubernetes::{Config, Connect, Kubernetes, Spawn};
use concert_testbed::Cluster;

/// A store of its own for each case: nothing that one was told helps another.
async fn subject() -> Option<Subject> {
    let cluster = Cluster::shared()?;
    let connect = Connect { kubeconfig: Some(cluster.kubeconfig()), context: None };
    let runtime = tokio::runtime::Handle::current();
    let spawn: Spawn = Arc::new(move |_, task| drop(runtime.spawn(task)));
    let config = Config::new(Arc::new(SystemClock::new()), spawn);
    Some(Subject::new(Arc::new(
        Kubernetes::connect(&connect, config).await.expect("the kubeconfig was just written"),
    )))
}

concert_store::core_suite!(async subject);
