//! The cluster and what a test does in it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use concert_testbed::{Cluster, Options};
use serde_json::{Value, json};

/// Longest anything may take that is waited for: CI machines are slow, and nobody waits when all is well.
const LIMIT: Duration = Duration::from_secs(120);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

pub const CLOUD: &str = "cloud.concert.dev/v1alpha1";
pub const EXAMPLE: &str = "example.crossplane.io/v1alpha1";
const GROUPS: [&str; 2] = [".concert.dev", ".example.crossplane.io"];

/// Looks until `look` finds something, which it must.
pub fn eventually<T>(what: &str, look: impl FnMut() -> Result<T, String>) -> T {
    eventually_within(LIMIT, what, look)
}

#[expect(clippy::disallowed_methods, reason = "other processes cannot be told which time it is")]
pub fn eventually_within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) => assert!(started.elapsed() < limit, "not within {limit:?}: {what}; at last: {why}"),
        }
        std::thread::sleep(PAUSE);
    }
}

/// How long something took. A machine that is busy takes longer, so of several the quickest says something.
#[expect(clippy::disallowed_methods, reason = "other processes cannot be told which time it is")]
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    (work(), started.elapsed())
}

/// Lets time pass, where the moment of something is what is chosen at random.
#[expect(clippy::disallowed_methods, reason = "other processes cannot be told which time it is")]
pub fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// A cluster while one test has it for itself, without any kind defined.
pub struct World {
    cluster: Arc<Cluster>,
    folder: tempfile::TempDir,
    files: AtomicUsize,
    _turn: MutexGuard<'static, ()>,
}

impl World {
    /// None where there can be no cluster, which was said on stderr.
    pub fn enter() -> Option<Self> {
        static CLUSTER: OnceLock<Option<Arc<Cluster>>> = OnceLock::new();
        let world = Self::of(|| CLUSTER.get_or_init(start).clone())?;
        world.clear();
        Some(world)
    }

    /// The same with a cluster of its own, for those who define more kinds than others should have to
    /// wait for until they are gone.
    pub fn apart() -> Option<Self> {
        Self::of(start)
    }

    fn of(cluster: impl FnOnce() -> Option<Arc<Cluster>>) -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let (cluster, folder) = (cluster()?, tempfile::tempdir().unwrap());
        Some(Self { cluster, folder, files: AtomicUsize::default(), _turn: turn })
    }

    /// Removes what another test has left, also if that has failed halfway.
    fn clear(&self) {
        let names = self.kubectl(&["get", "crds", "-o", "name"]);
        let ours = |name: &&str| GROUPS.iter().any(|group| name.ends_with(group));
        let ours: Vec<&str> = names.lines().filter(ours).collect();
        if ours.is_empty() {
            return;
        }
        // All at once: each takes its time. What is being deleted has no deletion to wait for without a
        // reconciler.
        self.kubectl(&[&["delete"], &ours[..], &["--wait=false"]].concat());
        for name in ours {
            let resource = name.rsplit('/').next().unwrap();
            eventually("the kind is gone", || {
                if !self.exists(&["get", name]) {
                    return Ok(());
                }
                let list = self.cluster.kubectl(&["get", resource, "-A", "-o", "json"]);
                let mut list: Value = serde_json::from_str(&list.map_err(|it| it.to_string())?).unwrap();
                for item in list["items"].as_array_mut().into_iter().flatten() {
                    item["metadata"]["finalizers"] = json!([]);
                }
                let _ = self.cluster.kubectl_with(&["replace", "-f", "-"], &list.to_string());
                Err(format!("{resource} is left"))
            });
        }
    }

    /// A path that nobody has used.
    pub fn new_file(&self, name: &str) -> PathBuf {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        self.folder.path().join(format!("{number}-{name}"))
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.cluster.kubeconfig()
    }

    /// The file by which whoever has this token finds the cluster.
    pub fn kubeconfig_of(&self, token: &str) -> PathBuf {
        let text = std::fs::read_to_string(self.kubeconfig()).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        config["users"][0]["user"] = json!({ "token": token });
        let path = self.new_file("kubeconfig");
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// What kubectl prints; it must succeed.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.try_kubectl(arguments).unwrap()
    }

    /// What kubectl prints, or how it failed: within a wait one failure is no answer yet.
    pub fn try_kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        self.cluster.kubectl(arguments).map_err(|error| error.to_string())
    }

    /// Fine if somebody may do this in a namespace.
    pub fn may(&self, user: &str, verb: &str, resource: &str, namespace: &str) -> Result<(), String> {
        let who = format!("--as={user}");
        let asked = self.cluster.kubectl(&["auth", "can-i", verb, resource, "-n", namespace, &who]);
        asked.map(drop).map_err(|error| error.to_string())
    }

    pub fn exists(&self, arguments: &[&str]) -> bool {
        match self.cluster.kubectl(arguments) {
            Ok(_) => true,
            Err(error) => {
                let text = error.to_string();
                let is_absent = text.contains("NotFound") || text.contains("doesn't have a resource type");
                assert!(is_absent, "{text}");
                false
            }
        }
    }

    /// Applies definitions of the example provider and waits until they are established.
    pub fn define(&self, files: &[&str]) {
        for file in files {
            let path = crate::process::workspace().join("providers/example/crds").join(file);
            self.define_file(&path);
        }
    }

    /// Applies a file of definitions and waits until objects of their kinds can be applied. kubectl gives up at
    /// once on a definition that says nothing of itself yet ("accessor error"), and what is established is
    /// discovered a moment later.
    pub fn define_file(&self, path: &Path) {
        let path = path.to_str().unwrap();
        self.kubectl(&["apply", "-f", path]);
        eventually(&format!("{path} is established"), || {
            let wait = ["wait", "--for=condition=Established", "--timeout=10s", "-f", path];
            self.try_kubectl(&wait).map(drop)
        });
        let names = self.kubectl(&["get", "-f", path, "-o", "name"]);
        for name in names.lines().filter_map(|it| it.rsplit('/').next()) {
            eventually(&format!("{name} is discovered"), || self.try_kubectl(&["get", name, "-A"]).map(drop));
        }
    }

    /// Defines Buckets and Networks with their configurations, and a default one.
    pub fn define_cloud(&self) {
        self.define(&[
            "buckets.yaml",
            "networks.yaml",
            "providerconfigs.yaml",
            "clusterproviderconfigs.yaml",
            "providerconfigusages.yaml",
        ]);
        self.apply(&json!({"apiVersion": CLOUD, "kind": "ClusterProviderConfig",
            "metadata": {"name": "default"}, "spec": {"credentials": {"source": "None"}}}));
    }

    /// Defines ExampleResources with their configurations, and a default one.
    pub fn define_examples(&self) {
        self.define(&[
            "exampleresources.yaml",
            "example-providerconfigs.yaml",
            "example-providerconfigusages.yaml",
        ]);
        self.apply(&json!({"apiVersion": EXAMPLE, "kind": "ProviderConfig", "metadata": {"name": "default"},
            "spec": {"credentials": {"source": "None"}}}));
    }

    pub fn apply(&self, manifest: &Value) {
        self.cluster.kubectl_with(&["apply", "-f", "-"], &manifest.to_string()).unwrap();
    }

    /// The same, for what may be refused: then this is what kubectl said.
    pub fn try_apply(&self, manifest: &Value) -> Result<(), String> {
        let applied = self.cluster.kubectl_with(&["apply", "-f", "-"], &manifest.to_string());
        applied.map(drop).map_err(|error| error.to_string())
    }

    /// Creates, for lists of many.
    pub fn create(&self, manifest: &Value) {
        self.cluster.kubectl_with(&["create", "-f", "-"], &manifest.to_string()).unwrap();
    }

    /// Puts objects in the place of those there are, for lists of many.
    pub fn replace(&self, manifest: &Value) {
        self.cluster.kubectl_with(&["replace", "-f", "-"], &manifest.to_string()).unwrap();
    }

    /// The object, if there is one.
    pub fn get(&self, resource: &str, name: &str) -> Option<Value> {
        self.try_get(resource, name).unwrap()
    }

    /// The same, or how kubectl failed.
    pub fn try_get(&self, resource: &str, name: &str) -> Result<Option<Value>, String> {
        let text = self.try_kubectl(&["get", resource, name, "-o", "json", "--ignore-not-found"])?;
        if text.is_empty() {
            return Ok(None);
        }
        serde_json::from_str(&text).map(Some).map_err(|error| format!("{error}: {text}"))
    }

    pub fn list(&self, resource: &str) -> Vec<Value> {
        let text = self.kubectl(&["get", resource, "-o", "json"]);
        let list: Value = serde_json::from_str(&text).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// A merge patch.
    pub fn patch(&self, resource: &str, name: &str, patch: &Value) {
        self.kubectl(&["patch", resource, name, "--type=merge", "-p", &patch.to_string()]);
    }

    /// Waits until the object has `Ready=True` and `Synced=True`, and answers with it.
    pub fn wait_ready(&self, resource: &str, name: &str) -> Value {
        self.wait_for(resource, name, "Ready and Synced", |object| {
            is(object, "Ready", "True") && is(object, "Synced", "True")
        })
    }

    /// Waits until the object is as `is_so` wants it, and answers with it.
    pub fn wait_for(&self, resource: &str, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("{resource} {name}: {what}"), || {
            let object = self.try_get(resource, name)?.ok_or("there is none")?;
            if is_so(&object) { Ok(object) } else { Err(object.to_string()) }
        })
    }

    /// Waits until it is not there any more.
    pub fn wait_gone(&self, resource: &str, name: &str) {
        eventually(&format!("{resource} {name} is gone"), || match self.try_get(resource, name)? {
            None => Ok(()),
            Some(object) => Err(object.to_string()),
        });
    }
}

fn start() -> Option<Arc<Cluster>> {
    let options = Options { with_controllers: true, ..Options::default() };
    Cluster::start_with(&options).unwrap().map(Arc::new)
}

/// A condition of an object, null if it has none of the type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|it| it["type"] == kind).unwrap_or(&Value::Null)
}

pub fn is(object: &Value, kind: &str, status: &str) -> bool {
    condition(object, kind)["status"] == status
}

pub fn message<'a>(object: &'a Value, kind: &str) -> &'a str {
    condition(object, kind)["message"].as_str().unwrap_or_default()
}

pub fn external_name(object: &Value) -> &str {
    object["metadata"]["annotations"]["crossplane.io/external-name"].as_str().unwrap_or_default()
}

/// A Bucket with some of its spec.
pub fn bucket(name: &str, spec: &Value) -> Value {
    let mut object = json!({"apiVersion": CLOUD, "kind": "Bucket",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"forProvider": {"region": "eu", "size": 1}}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

/// One manifest of many.
pub fn list_of(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}
