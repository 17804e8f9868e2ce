//! The two places where objects live while a story is told: a control plane of our own, and Kubernetes with
//! the managed reconciler.

use std::path::Path;
use std::sync::Arc;

use concert_provider::InProcess;
use concert_provider_example::Example;
use concert_provider_example::cloud::{self, Cloud};
use concert_server::admin::Address;
use concert_server::managed::{self, ControllerConfig, Dial, Options, ProviderConfig};
use concert_server::serve::{self, Layer, Plane};
use concert_store::kubernetes::{Config, Connect, Kubernetes, Spawn};
use concert_store::{Chance, Store, SystemClock};
use concert_testbed::Cluster;
use serde_json::json;

use crate::services::{Stage, until_or};

/// Whatever runs.
pub struct Control {
    /// Where its objects are.
    pub store: Arc<dyn Store>,
    place: Place,
}

enum Place {
    Ours(Box<serve::Running>),
    Kubernetes(Box<(Cluster, managed::Running)>),
}

impl Control {
    /// Applies manifests; kinds among them can be used at once.
    pub async fn apply(&self, manifests: &str) {
        match &self.place {
            Place::Ours(running) => running.apply(manifests, "test").await.unwrap(),
            Place::Kubernetes(both) => {
                let cluster = &both.0;
                cluster.kubectl_with(&["apply", "-f", "-"], manifests).unwrap();
                if manifests.contains("kind: CustomResourceDefinition") {
                    defined(cluster, manifests).await;
                }
            }
        }
    }

    pub async fn stop(self) {
        match self.place {
            Place::Ours(running) => running.stop().await,
            Place::Kubernetes(both) => both.1.stop().await,
        }
    }
}

/// Waits until objects of the kinds in `manifests` can be applied: what is established is discovered a moment
/// later. `kubectl wait` is of no use, since it gives up on a definition that says nothing of itself yet.
async fn defined(cluster: &Cluster, manifests: &str) {
    let established = r#"{.status.conditions[?(@.type=="Established")].status}"#;
    let all = format!(r#"jsonpath={{range .items[*]}}{{.metadata.name}}={established}{{"\n"}}{{end}}"#);
    let told = until_or(|| async {
        let told = cluster.kubectl(&["get", "crd", "-o", &all])?;
        let left: Vec<&str> = told.lines().filter(|it| !it.ends_with("=True")).collect();
        anyhow::ensure!(left.is_empty(), "not established: {left:?}");
        Ok::<_, anyhow::Error>(told)
    })
    .await;
    let all = told.lines().filter_map(|it| it.strip_suffix("=True"));
    for kind in all.filter(|it| manifests.contains(it)) {
        until_or(|| async { cluster.kubectl(&["get", kind, "-A"]) }).await;
    }
}

/// The provider of a simulated cloud, beside that of this machine.
const CLOUD: &str = "cloud";

/// Every provider is `stage`, but for the simulated cloud.
fn dial(stage: &Stage) -> Dial {
    let local = stage.local.clone();
    let cloud = Cloud::new(cloud::Settings::default(), Chance::seeded(1));
    let api = Arc::new(cloud::Api::new(cloud, Arc::new(SystemClock::new())));
    let cloud = Arc::new(Example::new(api).with_claims(true));
    Arc::new(move |provider: &ProviderConfig| {
        Ok(match provider.name.as_str() {
            CLOUD => Arc::new(InProcess::new(cloud.clone())) as _,
            _ => Arc::new(InProcess::new(local.clone())) as _,
        })
    })
}

/// A control plane in this process whose providers are `stage` and a simulated cloud.
pub async fn on_our_own(stage: &Stage, folder: &Path) -> Control {
    let settings = Layer {
        data_dir: Some(folder.to_owned()),
        listen: Some("127.0.0.1:0".to_owned()),
        admin_listen: Some("0".to_owned()),
        dev: Some(true),
        plugins: Some("off".to_owned()),
        ..Layer::default()
    };
    let running = Plane::new(settings.resolve().unwrap()).with_dial(dial(stage)).start().await.unwrap();
    for name in ["local", CLOUD] {
        let provider = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider",
            "metadata": {"name": name}, "spec": {"endpoint": "in-process:1"}});
        running.apply(&provider.to_string(), "test").await.unwrap();
    }
    Control { store: Arc::new(running.store().clone()), place: Place::Ours(Box::new(running)) }
}

/// The managed reconciler in this process, on a cluster of its own. None where there can be no cluster.
pub async fn on_kubernetes(stage: &Stage) -> Option<Control> {
    let options = concert_testbed::Options { with_controllers: true, ..Default::default() };
    let cluster = Cluster::start_with(&options).unwrap()?;
    let definitions = include_str!("../../../../deploy/crds/claims.yaml");
    cluster.kubectl_with(&["apply", "-f", "-"], definitions).unwrap();
    let provider = |name: &str| ProviderConfig {
        name: name.into(),
        endpoint: "in-process:1".into(),
        ..ProviderConfig::default()
    };
    let config = ControllerConfig { providers: vec![provider("local"), provider(CLOUD)] };
    let options = Options::new()
        .with_kubeconfig(Some(cluster.kubeconfig()), None)
        .with_leader_election(false)
        .with_metrics_address(Address::Nowhere)
        .with_health_address(Address::Nowhere)
        .with_dial(dial(stage));
    let running = managed::Controller::new(config, options).start().await.unwrap();
    let connect = Connect { kubeconfig: Some(cluster.kubeconfig()), context: None };
    let runtime = tokio::runtime::Handle::current();
    let spawn: Spawn = Arc::new(move |_, task| drop(runtime.spawn(task)));
    let store =
        Kubernetes::connect(&connect, Config::new(Arc::new(SystemClock::new()), spawn)).await.unwrap();
    Some(Control { store: Arc::new(store), place: Place::Kubernetes(Box::new((cluster, running))) })
}
