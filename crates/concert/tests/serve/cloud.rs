//! A control plane in this process, with the example provider and its cloud.

use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use concert_provider::InProcess;
use concert_provider_example::cloud::{Api, Cloud, Settings};
use concert_provider_example::{CLAIMED_CRDS, CRDS, Example};
use concert_server::serve::{Layer, Plane, Running};
use concert_server::{Chance, SystemClock};
use serde_json::{Value, json};

use crate::wait::eventually;
use crate::wire::{call, send};

pub const BUCKETS: &str = "/apis/cloud.concert.dev/v1alpha1/namespaces/default/buckets";
const PLAN: &str = "/apis/concert.dev/v1alpha1/plan";

/// A control plane with a cloud in this process. It ends with the value.
pub struct World {
    runtime: tokio::runtime::Runtime,
    running: Option<Running>,
    pub api: Arc<Api>,
    pub address: String,
    folder: tempfile::TempDir,
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self::open(seed, false)
    }

    /// The same, and its provider serves the kinds too that portable claims are bound to.
    pub fn with_claims(seed: u64) -> Self {
        Self::open(seed, true)
    }

    fn open(seed: u64, has_claims: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let cloud = Cloud::new(Settings::default(), Chance::seeded(seed));
        let api = Arc::new(Api::new(cloud, Arc::new(SystemClock::new())));
        let provider = Arc::new(Example::new(api.clone()).with_claims(has_claims));
        let settings = Layer {
            data_dir: Some(folder.path().join("data")),
            listen: Some("127.0.0.1:0".to_owned()),
            admin_listen: Some("0".to_owned()),
            dev: Some(true),
            poll_interval: Some("1h".to_owned()),
            ..Layer::default()
        };
        let running = runtime.block_on(async {
            let plane = Plane::new(settings.resolve().unwrap());
            let dial = Arc::new(move |_: &_| Ok(Arc::new(InProcess::new(provider.clone())) as _));
            let running = plane.with_dial(dial).start().await.unwrap();
            let claimed = if has_claims { CLAIMED_CRDS } else { &[] };
            for (_, definition) in CRDS.iter().chain(claimed) {
                running.apply(definition, "test").await.unwrap();
            }
            for object in [
                json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider", "metadata": {"name": "example"},
                    "spec": {"endpoint": "in-process:1"}}),
                json!({"apiVersion": "cloud.concert.dev/v1alpha1", "kind": "ClusterProviderConfig",
                    "metadata": {"name": "default"}, "spec": {"credentials": {"source": "None"}}}),
            ] {
                running.apply(&object.to_string(), "test").await.unwrap();
            }
            running
        });
        let address = running.address().to_string();
        let world = Self { runtime, running: Some(running), api, address, folder };
        eventually("the provider is known", || {
            let answer = world.plan(&bucket("probe", &json!({"size": 1})));
            if answer["action"] == "create" { Ok(()) } else { Err(answer.to_string()) }
        });
        world
    }

    /// Applies a file of manifests.
    pub fn apply_all(&self, manifests: &str) {
        let running = self.running.as_ref().unwrap();
        self.runtime.block_on(running.apply(manifests, "test")).unwrap();
    }

    /// What would become of an object, asked without applying it first.
    pub fn plan_of(&self, object: &Value) -> Value {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [object]});
        let answer = self.json("POST", PLAN, &list);
        let plans = answer.as_array().or(answer["items"].as_array()).cloned().unwrap_or_default();
        plans.first().cloned().unwrap_or_default()
    }

    /// Changes how the cloud behaves.
    pub fn set_cloud(&self, fields: &Value) {
        let mut cloud = self.api.cloud();
        let settings = cloud.settings().with(fields.as_object().unwrap()).unwrap();
        cloud.set_settings(settings);
    }

    /// The program, pointed at it.
    pub fn concert(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_concert"));
        command.args(words).args(["--server", &format!("http://{}", self.address)]).env_clear();
        command.env("HOME", self.folder.path()).stdin(Stdio::null()).output().unwrap()
    }

    /// A path that is nobody's.
    pub fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn json(&self, method: &str, path: &str, body: &Value) -> Value {
        let (code, text) = call(&self.address, method, path, &body.to_string()).unwrap();
        assert!((200..300).contains(&code), "{method} {path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Server-side apply, as `concert` does it.
    pub fn apply(&self, object: &Value, more: &str) -> Value {
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = format!("{BUCKETS}/{name}?fieldManager=concert&force=true{more}");
        let kind = "application/apply-patch+yaml";
        let (code, text) = send(&self.address, "PATCH", &path, kind, &object.to_string()).unwrap();
        assert!(code == 200 || code == 201, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// What the provider would do, asked as `concert plan` asks.
    pub fn plan(&self, object: &Value) -> Value {
        let wanted = self.apply(object, "&dryRun=All");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [wanted]});
        let answer = self.json("POST", PLAN, &list);
        answer
            .as_array()
            .or(answer["items"].as_array())
            .and_then(|it| it.first().cloned())
            .unwrap_or_default()
    }

    /// Waits for the object to be looked at as it was applied; says whether all went well.
    pub fn settle(&self, applied: &Value) -> bool {
        let name = applied["metadata"]["name"].as_str().unwrap();
        let generation = applied["metadata"]["generation"].as_i64().unwrap();
        eventually(&format!("{name} is looked at"), || {
            let object = self.json("GET", &format!("{BUCKETS}/{name}"), &Value::Null);
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let synced = conditions.iter().find(|it| it["type"] == "Synced");
            let is_seen = |it: &&Value| {
                it["observedGeneration"].as_i64().unwrap_or_default() >= generation
                    && it["observedGeneration"] == object["metadata"]["generation"]
            };
            match synced.filter(is_seen) {
                Some(it) => Ok(it["status"] == "True"),
                None => Err(object.to_string()),
            }
        })
    }

    pub fn delete(&self, name: &str) {
        self.delete_with(name, &json!({}));
    }

    /// Deletes with these options, and waits until it is gone.
    pub fn delete_with(&self, name: &str, options: &Value) {
        self.json("DELETE", &format!("{BUCKETS}/{name}"), options);
        eventually("it is gone", || match call(&self.address, "GET", &format!("{BUCKETS}/{name}"), "") {
            Some((404, _)) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.stop());
        }
    }
}

pub fn bucket(name: &str, fields: &Value) -> Value {
    json!({"apiVersion": "cloud.concert.dev/v1alpha1", "kind": "Bucket",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"forProvider": fields}})
}
