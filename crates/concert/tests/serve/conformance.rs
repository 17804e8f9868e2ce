//! The conformance suite of stores, over HTTP: the same cases that a real kube-apiserver passes.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use concert_store::SystemClock;
use concert_store::conformance::Subject;
use concert_store::kubernetes::{Config, Connect, Kubernetes, Spawn};

use crate::plane::Plane;

/// One control plane for all cases that run at a time, and a store of its own for each. It ends with the
/// last of them: what is kept in a static would outlive the tests.
fn plane() -> Option<Arc<Plane>> {
    static PLANE: Mutex<Weak<Plane>> = Mutex::new(Weak::new());
    let mut shared = PLANE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plane) = shared.upgrade() {
        return Some(plane);
    }
    let plane = Arc::new(Plane::start_with(&[])?);
    *shared = Arc::downgrade(&plane);
    Some(plane)
}

/// A store on it as controllers elsewhere have one.
pub async fn store_on(plane: &Plane) -> Kubernetes {
    let connect = Connect { kubeconfig: Some(plane.kubeconfig()), context: None };
    let runtime = tokio::runtime::Handle::current();
    let spawn: Spawn = Arc::new(move |_, task| drop(runtime.spawn(task)));
    let config = Config::new(Arc::new(SystemClock::new()), spawn);
    Kubernetes::connect(&connect, config).await.expect("the kubeconfig was just written")
}

async fn subject() -> Option<Subject> {
    let plane = plane()?;
    let store = store_on(&plane).await;
    Some(Subject::new(Arc::new(store)).keeping(plane))
}

concert_store::core_suite!(async subject);
