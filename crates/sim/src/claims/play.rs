//! Claims as the subject of a life.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_controllers::claims;
use concert_controllers::managed::event::Silent;
use concert_controllers::managed::metrics::Metrics;
use concert_controllers::managed::registry::{Declaration, Parts, Registry, Settings};
use concert_engine::leader::Duty;
use concert_model::{GroupKind, Object, ObjectKey};
use concert_provider::InProcess;
use concert_provider_example::cloud::{self, Api, Cloud};
use concert_provider_example::{CLAIMED_CRDS, CRDS, Example};
use concert_store::{Chance, Clock, Fence};
use serde_json::{Value, json};

use super::check;
use crate::executor::Executor;
use crate::faults::Weather;
use crate::managed::Wire;
use crate::play::{Actor, Done, Play, Stage, Wish};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const CLASSES: [(&str, &str, &str); 2] = [
    ("storage.aws.crossplane.io", "S3BucketClass", "region"),
    ("storage.gcp.crossplane.io", "BucketClass", "location"),
];
/// Made by hand in one life, at most.
const STATIC_MAX: u64 = 3;
const POLL: Duration = Duration::from_secs(60);
/// In lives where watches lose events.
const RELIST: Duration = Duration::from_secs(120);

const SHIPPED: [&str; 4] = [
    include_str!("../../../../deploy/crds/claims.yaml"),
    include_str!("../../../../deploy/claims/buckets.yaml"),
    include_str!("../../../../deploy/claims/classes.yaml"),
    include_str!("../../../../deploy/claims/definitions.yaml"),
];

/// Claims for buckets on two clouds.
pub struct ClaimsPlay {
    executor: Executor,
    chance: Chance,
    weather: Weather,
    api: Arc<Api>,
    provider: Arc<InProcess>,
    calls: Arc<AtomicU64>,
    statics: AtomicU64,
}

impl ClaimsPlay {
    /// On this stage.
    pub fn new(stage: &Stage) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(stage.executor.clone());
        let settings = cloud::Settings {
            visible_after: Duration::from_secs(1),
            ready_after: Duration::from_secs(2),
            error_rate: 0.03,
            lost_answers: 0.03,
            ..cloud::Settings::default()
        };
        let api = Arc::new(Api::new(Cloud::new(settings, stage.chance.fork()), clock));
        let provider = Example::new(api.clone()).with_claims(true);
        Self {
            executor: stage.executor.clone(),
            chance: stage.chance.clone(),
            weather: stage.weather.clone(),
            provider: Arc::new(InProcess::new(Arc::new(provider))),
            api,
            calls: Arc::default(),
            statics: AtomicU64::new(0),
        }
    }

    fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.chance.below(of.len() as u64) as usize]
    }

    fn claim(&self) -> Wish {
        let name = self.pick(&NAMES);
        if self.chance.is_hit(0.3) {
            return Wish::Gone(ObjectKey::namespaced(check::claims(), "default", name));
        }
        // Nobody collects garbage here, so each has a secret of its own.
        let secret = format!("{name}-{}", self.chance.below(1_000_000_000));
        let mut spec = json!({"writeConnectionSecretToRef": {"name": secret}});
        match self.chance.below(5) {
            0 => spec["classRef"] = class_ref(self.pick(&CLASSES), self.pick(&["x", "y"])),
            1 | 2 => spec["classSelector"] = json!({"matchLabels": {"grade": self.pick(&["prod", "dev"])}}),
            3 => {
                let number = self.chance.below(STATIC_MAX);
                spec["resourceRef"] = json!({"apiVersion": "storage.aws.crossplane.io/v1beta1",
                    "kind": "S3Bucket", "name": format!("static-{number}")});
            }
            _ => {}
        }
        let kind = check::claims().at_version("v1alpha1");
        let mut claim = Object::new(&kind, "default", name);
        claim.set("spec", spec);
        Wish::There(claim)
    }

    fn class(&self) -> Wish {
        let (group, kind, place) = self.pick(&CLASSES);
        let (kind, name) = (GroupKind::new(group, kind), self.pick(&["x", "y"]));
        if self.chance.is_hit(0.3) {
            return Wish::Gone(ObjectKey::cluster(kind, name));
        }
        let mut class = Object::new(&kind.at_version("v1beta1"), "", name);
        class.set_label("grade", self.pick(&["prod", "dev"]));
        if self.chance.is_hit(0.3) {
            class.set_annotation("resourceclass.crossplane.io/is-default-class", "true");
        }
        let reclaim = self.pick(&["Delete", "Delete", "Retain"]);
        class.set(
            "specTemplate",
            json!({"writeConnectionSecretsToNamespace": "default",
            "providerRef": {"name": "default"}, "reclaimPolicy": reclaim, "forProvider": {place: "here"}}),
        );
        Wish::There(class)
    }

    fn policy(&self) -> Wish {
        let (kind, name) = (check::policies(), self.pick(&["p", "q"]));
        if self.chance.is_hit(0.5) {
            return Wish::Gone(ObjectKey::namespaced(kind, "default", name));
        }
        let mut policy = Object::new(&kind.at_version("v1alpha1"), "default", name);
        policy.set("defaultClassRef", class_ref(self.pick(&CLASSES), self.pick(&["x", "y"])));
        Wish::There(policy)
    }

    /// Something that was there before, once: who writes over it would take it from its claim.
    fn by_hand(&self) -> Option<Wish> {
        let number = self.statics.fetch_add(1, Ordering::Relaxed);
        if number >= STATIC_MAX {
            return None;
        }
        let kind = GroupKind::new("storage.aws.crossplane.io", "S3Bucket").at_version("v1beta1");
        let mut bucket = Object::new(&kind, "", &format!("static-{number}"));
        bucket.set(
            "spec",
            json!({"forProvider": {"region": "here"}, "providerRef": {"name": "default"},
            "reclaimPolicy": self.pick(&["Retain", "Delete"]),
            "writeConnectionSecretToRef": {"namespace": "default", "name": format!("static-{number}")}}),
        );
        Some(Wish::There(bucket))
    }
}

fn class_ref((group, kind, _): (&str, &str, &str), name: &str) -> Value {
    json!({"apiVersion": format!("{group}/v1beta1"), "kind": kind, "name": name})
}

fn documents(text: &str) -> impl Iterator<Item = Value> {
    text.split("\n---\n").map(|it| serde_saphyr::from_str(it).expect("it is YAML"))
}

impl Play for ClaimsPlay {
    fn definitions(&self) -> Vec<Value> {
        let account = json!({"apiVersion": "example.crossplane.io/v1alpha1", "kind": "ProviderConfig",
            "metadata": {"name": "default"}, "spec": {"credentials": {"source": "None"}}});
        let texts = CRDS.iter().chain(CLAIMED_CRDS).map(|(_, text)| *text).chain(SHIPPED);
        let all = texts.flat_map(|text| documents(text).collect::<Vec<_>>());
        // Of the definitions only the one whose kinds are there.
        let is_wanted = |it: &Value| it["kind"] != "ClaimDefinition" || it["metadata"]["name"] == "bucket";
        all.filter(is_wanted).chain([account]).collect()
    }

    fn kinds(&self) -> Vec<GroupKind> {
        check::kinds()
    }

    fn duty(&self, actor: Actor) -> Arc<dyn Duty> {
        let wire = Wire {
            provider: self.provider.clone(),
            executor: self.executor.clone(),
            chance: actor.chance.fork(),
            weather: self.weather.clone(),
            is_blind: false,
            calls: self.calls.clone(),
        };
        Arc::new(Leader { wire, actor, running: Mutex::default() })
    }

    fn wish(&self) -> Wish {
        match self.chance.below(10) {
            0..2 => self.class(),
            2 => self.policy(),
            3 => self.by_hand().unwrap_or_else(|| self.claim()),
            _ => self.claim(),
        }
    }

    fn calm_down(&self) {
        let mut cloud = self.api.cloud();
        let settings = cloud::Settings { error_rate: 0.0, lost_answers: 0.0, ..cloud.settings().clone() };
        cloud.set_settings(settings);
    }

    fn done(&self) -> Done {
        let cloud = self.api.cloud();
        let summary = cloud.truth().summary();
        Done {
            creates: summary.created,
            deletes: summary.deleted,
            effects: summary.created + summary.updated + summary.deleted,
            fenced: 0,
            runs: self.calls.load(Ordering::Relaxed),
        }
    }

    fn runs_max(&self, quiet: Duration) -> f64 {
        // Each poll connects and observes; polls come a tenth early at most.
        let polls = quiet.div_duration_f64(POLL * 9 / 10) + 2.0;
        (self.api.cloud().truth().live().len() + 1) as f64 * polls * 3.0
    }

    fn check(&self, objects: &[Object]) -> Vec<String> {
        check::check(objects, &self.api.cloud().truth().live())
    }

    fn violations(&self) -> Vec<String> {
        let cloud = self.api.cloud();
        cloud.truth().doubles().iter().map(|it| format!("made twice: {it:?}")).collect()
    }
}

/// Runs both registries while its process leads.
struct Leader {
    wire: Wire,
    actor: Actor,
    running: Mutex<Option<(Registry, claims::registry::Registry)>>,
}

#[async_trait]
impl Duty for Leader {
    fn begin(&self, fence: Option<Fence>) {
        let actor = &self.actor;
        let parts = Parts {
            engine: actor.engine.clone(),
            store: actor.remote.clone(),
            clock: actor.clock.clone(),
            chance: actor.chance.fork(),
            tasks: actor.tasks.clone(),
            recorder: Arc::new(Silent),
            metrics: Metrics::new(),
            environment: Arc::new(|_| None),
            settings: Settings {
                work: Some(actor.remote.clone()),
                poll: Some(POLL),
                relist: if self.wire.weather.is_lossy() { RELIST } else { Settings::default().relist },
                ..Settings::default()
            },
            fence,
        };
        let registry = Registry::start(parts.clone());
        let connector = Arc::new(self.wire.clone());
        let declaration = Declaration { name: "cloud".into(), connector, kinds: Vec::new() };
        registry.add(declaration).expect("it is the only one");
        let claims = claims::registry::start(parts).expect("it does not run yet");
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some((registry, claims));
    }

    async fn end(&self, is_lost: bool) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let patience = if is_lost { Duration::ZERO } else { Duration::from_secs(5) };
        if let Some((registry, claims)) = running {
            claims.stop(patience).await;
            registry.stop(patience).await;
        }
    }
}
