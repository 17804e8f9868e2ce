//! Two real clusters, a simulated cloud, and a stand-in for Gardener.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use concert_testbed::Cluster;
use serde_json::{Value, json};

use crate::process::Process;
use crate::programs;
use crate::web::Web;

/// What one test has for itself.
pub struct World {
    pub garden: &'static Cluster,
    pub target: &'static Cluster,
    pub folder: PathBuf,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl World {
    /// None where there can be no clusters or no Python, which was said.
    pub fn enter() -> Option<Self> {
        static CLUSTERS: OnceLock<Option<(Cluster, Cluster)>> = OnceLock::new();
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || Some((Cluster::start().unwrap()?, Cluster::start().unwrap()?));
        let (garden, target) = CLUSTERS.get_or_init(start).as_ref()?;
        programs::python()?;
        let folder = tempfile::tempdir().unwrap();
        let world = Self { garden, target, folder: folder.path().to_owned(), _folder: folder, _turn: turn };
        world.clear();
        Some(world)
    }

    /// Removes what another test has left.
    fn clear(&self) {
        let shoots = self.garden.kubectl(&["get", "shoots", "-n", "garden-fleet", "-o", "name"]);
        for shoot in shoots.unwrap_or_default().lines() {
            let free = r#"{"metadata":{"finalizers":[]}}"#;
            let _ = self.garden.kubectl(&["patch", shoot, "-n", "garden-fleet", "--type=merge", "-p", free]);
            let _ = self.garden.kubectl(&["delete", shoot, "-n", "garden-fleet", "--ignore-not-found"]);
        }
        let _ = self.garden.kubectl(&["delete", "secrets", "--all", "-n", "garden-fleet"]);
        let all = ["delete", "deployments,configmaps,services,serviceaccounts", "--all", "-n", "fleet"];
        let _ = self.target.kubectl(&all);
        let _ = self.target.kubectl(&["delete", "serviceinstances", "--all", "-A"]);
    }

    /// The cloud, which keeps what it has over its end.
    pub fn cloud(&self) -> Cloud {
        Cloud::start(&self.folder)
    }

    pub fn gardener(&self) -> Command {
        let mut command = Command::new(programs::fleet());
        command.args(["gardener", "--pace", "100ms", "--garden"]).arg(self.garden.kubeconfig());
        command.arg("--cluster").arg(self.target.kubeconfig());
        command
    }

    /// Defines ServiceInstances in the target cluster.
    pub fn define_service_instances(&self) {
        let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"type": "object", "properties": {"spec": free}});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "serviceinstances.services.cloud.sap.com"},
            "spec": {"group": "services.cloud.sap.com", "scope": "Namespaced",
                "names": {"kind": "ServiceInstance", "listKind": "ServiceInstanceList",
                    "plural": "serviceinstances", "singular": "serviceinstance"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema}}]}});
        self.target.kubectl_with(&["apply", "-f", "-"], &definition.to_string()).unwrap();
        let name = "crd/serviceinstances.services.cloud.sap.com";
        self.target.kubectl(&["wait", "--for=condition=Established", name, "--timeout=60s"]).unwrap();
    }

    /// An administrator's kubeconfig of the target cluster, with nothing but data in it.
    pub fn admin_kubeconfig(&self, token: &str) -> String {
        let authority = std::fs::read_to_string(self.target.authority()).unwrap();
        crate::web::kubeconfig(self.target.url(), &authority, token)
    }

    /// Something in the target cluster, or none.
    pub fn in_target(&self, resource: &str, name: &str) -> Option<Value> {
        let get = ["get", resource, name, "-n", "fleet", "-o", "json", "--ignore-not-found"];
        let text = self.target.kubectl(&get).unwrap();
        if text.trim().is_empty() { None } else { Some(serde_json::from_str(&text).unwrap()) }
    }

    /// A shoot as it is, or none.
    pub fn shoot(&self, name: &str) -> Option<Value> {
        let get = ["get", "shoots", name, "-n", "garden-fleet", "-o", "json", "--ignore-not-found"];
        let text = self.garden.kubectl(&get).unwrap();
        if text.trim().is_empty() { None } else { Some(serde_json::from_str(&text).unwrap()) }
    }
}

/// The example provider's cloud.
pub struct Cloud {
    pub process: Process,
    control: String,
    folder: PathBuf,
}

impl Cloud {
    fn start(folder: &Path) -> Self {
        let mut process = Process::start(folder, "cloud", &mut cloud(folder, "127.0.0.1:0"));
        let control =
            process.find("the address of the cloud", 0, |line| line["control"].as_str().map(str::to_owned));
        Self { process, control, folder: folder.to_owned() }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.control)
    }

    pub fn start_again(&mut self) {
        self.process.start_again(&mut cloud(&self.folder, &self.control));
    }

    /// The networks there are, by name.
    pub fn networks(&self) -> Vec<String> {
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": self.url()}}], "users": [{"name": "x", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]});
        let things = Web::open(&config.to_string()).get("/things");
        let names = things.as_array().unwrap().iter().filter(|it| it["kind"] == "network");
        names.map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    }
}

fn cloud(folder: &Path, control: &str) -> Command {
    let mut command = Command::new(programs::example_provider());
    command.args(["--address", "127.0.0.1:0", "--control", control, "--ready-after", "300ms"]);
    command.arg("--truth").arg(folder.join("truth.jsonl"));
    command
}
