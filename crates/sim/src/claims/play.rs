//! Claims as the subject of a life.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_controllers::claims;
use concert_controllers::claims::vocabulary::annotation;
use concert_controllers::managed::registry::{Parts, Registry};
use concert_controllers::managed::vocabulary::connection::SECRET_TYPE;
use concert_engine::Authority;
use concert_engine::leader::Duty;
use concert_model::{GroupKind, Object, ObjectKey};
use concert_provider_example::cloud;
use concert_provider_example::{CLAIMED_CRDS, CRDS};
use concert_store::{Chance, Store};
use serde_json::{Value, json};

use super::stores::Crooked;
use super::witness::Consents;
use super::{Bug, check};
use crate::faults::Witness;
use crate::managed::{Backdrop, Wire, parts, registry};
use crate::play::{Actor, Done, Play, Stage, Wish};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Most is done in the first.
const NAMESPACES: [&str; 3] = ["default", "default", "other"];
pub const CLASSES: [(&str, &str, &str); 2] = [
    ("storage.aws.crossplane.io", "S3BucketClass", "region"),
    ("storage.gcp.crossplane.io", "BucketClass", "location"),
];
/// What says of a class that it is a default.
pub const DEFAULT: &str = "resourceclass.crossplane.io/is-default-class";
/// Made by hand in one life, at most.
const STATIC_MAX: u64 = 3;

const SHIPPED: [&str; 4] = [
    include_str!("../../../../deploy/crds/claims.yaml"),
    include_str!("../../../../deploy/claims/buckets.yaml"),
    include_str!("../../../../deploy/claims/classes.yaml"),
    include_str!("../../../../deploy/claims/definitions.yaml"),
];

/// Claims for buckets on two clouds.
pub struct ClaimsPlay {
    chance: Chance,
    backdrop: Backdrop,
    statics: AtomicU64,
    bug: Option<Bug>,
    consents: Arc<Consents>,
}

impl ClaimsPlay {
    /// On this stage, perhaps with a bug.
    pub fn new(stage: &Stage, bug: Option<Bug>) -> Self {
        let settings = cloud::Settings {
            visible_after: Duration::from_secs(1),
            ready_after: Duration::from_secs(2),
            error_rate: 0.03,
            lost_answers: 0.03,
            ..cloud::Settings::default()
        };
        let backdrop = Backdrop::new(stage, settings, |it| it.with_claims(true));
        Self {
            chance: stage.chance.clone(),
            backdrop,
            statics: AtomicU64::new(0),
            bug,
            consents: Arc::default(),
        }
    }

    fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.chance.below(of.len() as u64) as usize]
    }

    fn claim(&self) -> Wish {
        let (namespace, name) = (self.pick(&NAMESPACES), self.pick(&NAMES));
        if self.chance.is_hit(0.3) {
            return Wish::Gone(ObjectKey::namespaced(check::claims(), namespace, name));
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
        Wish::There(claim(namespace, name, spec))
    }

    fn class(&self) -> Wish {
        let (group, kind, place) = self.pick(&CLASSES);
        let (kind, name) = (GroupKind::new(group, kind), self.pick(&["x", "y"]));
        if self.chance.is_hit(0.3) {
            return Wish::Gone(ObjectKey::cluster(kind, name));
        }
        let (grade, reclaim) = (self.pick(&["prod", "dev"]), self.pick(&["Delete", "Delete", "Retain"]));
        let mut class = class(kind, name, place, grade, reclaim);
        let is_default = if self.chance.is_hit(0.3) { "true" } else { "false" };
        class.set_annotation(DEFAULT, is_default);
        Wish::There(class)
    }

    fn policy(&self) -> Wish {
        let (kind, name) = (check::policies(), self.pick(&["p", "q"]));
        let namespace = self.pick(&NAMESPACES);
        if self.chance.is_hit(0.5) {
            return Wish::Gone(ObjectKey::namespaced(kind, namespace, name));
        }
        let class = class_ref(self.pick(&CLASSES), self.pick(&["x", "y"]));
        Wish::There(policy(namespace, name, class))
    }

    /// Another name for the secret of a claim, or something done to one of the secrets: what they are copied
    /// from as well as what they are copied to.
    fn meddle(&self) -> Wish {
        let number = self.chance.below(1_000_000_000);
        match self.chance.below(5) {
            0 => Wish::OneOf(check::secrets(), number, None),
            1 | 2 => {
                let data = json!({check::MEDDLED: self.pick(&["MQ==", "Mg=="])});
                Wish::OneOf(check::secrets(), number, Some(json!({"data": data})))
            }
            3 => Wish::Forged(check::secrets(), number, forged),
            _ => {
                let (namespace, name) = (self.pick(&NAMESPACES), self.pick(&NAMES));
                let change =
                    json!({"spec": {"writeConnectionSecretToRef": {"name": format!("{name}-{number}")}}});
                Wish::Changed(ObjectKey::namespaced(check::claims(), namespace, name), change)
            }
        }
    }

    /// Something that was there before, once: who writes over it would take it from its claim.
    fn by_hand(&self) -> Option<Wish> {
        let number = self.statics.fetch_add(1, Ordering::Relaxed);
        if number >= STATIC_MAX {
            return None;
        }
        Some(Wish::There(by_hand(number, self.pick(&["Retain", "Delete"]))))
    }
}

/// A claim of a bucket.
pub fn claim(namespace: &str, name: &str, spec: Value) -> Object {
    let mut claim = Object::new(&check::claims().at_version("v1alpha1"), namespace, name);
    claim.set("spec", spec);
    claim
}

/// What makes a class the default of a namespace.
pub fn policy(namespace: &str, name: &str, class: Value) -> Object {
    let mut policy = Object::new(&check::policies().at_version("v1alpha1"), namespace, name);
    policy.set("defaultClassRef", class);
    policy
}

/// A class; `place` is what its kind calls where a bucket is.
pub fn class(kind: GroupKind, name: &str, place: &str, grade: &str, reclaim: &str) -> Object {
    let mut class = Object::new(&kind.at_version("v1beta1"), "", name);
    class.set_label("grade", grade);
    class.set(
        "specTemplate",
        json!({"writeConnectionSecretsToNamespace": "default",
            "providerRef": {"name": "default"}, "reclaimPolicy": reclaim, "forProvider": {place: "here"}}),
    );
    class
}

/// A bucket that nobody has claimed yet.
pub fn by_hand(number: u64, reclaim: &str) -> Object {
    let kind = GroupKind::new("storage.aws.crossplane.io", "S3Bucket").at_version("v1beta1");
    let mut bucket = Object::new(&kind, "", &format!("static-{number}"));
    bucket.set(
        "spec",
        json!({"forProvider": {"region": "here"}, "providerRef": {"name": "default"},
            "reclaimPolicy": reclaim,
            "writeConnectionSecretToRef": {"namespace": "default", "name": format!("static-{number}")}}),
    );
    bucket
}

/// What somebody who may write secrets in another namespace makes to get at one: it says that it is a copy
/// of it, and that a claim controls it.
fn forged(source: &Object) -> Object {
    let kind = GroupKind::new("", "Secret").at_version("v1");
    let mut secret = Object::new(&kind, "other", &format!("{}{}", check::LOOT, source.name()));
    let owner = json!({"apiVersion": check::claims().at_version("v1alpha1").api_version(), "kind": "Bucket",
        "name": "a", "uid": "00000000-0000-4000-8000-000000000000", "controller": true});
    secret.set_metadata("ownerReferences", json!([owner]));
    secret.set("type", json!(SECRET_TYPE));
    secret.set_annotation(annotation::FROM_NAMESPACE, source.namespace());
    secret.set_annotation(annotation::FROM_NAME, source.name());
    secret.set_annotation(annotation::FROM_UID, &source.uid().map(|it| it.to_string()).unwrap_or_default());
    secret
}

/// What a claim says of a class.
pub fn class_ref((group, kind, _): (&str, &str, &str), name: &str) -> Value {
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
        let wire = self.backdrop.wire(&actor, false);
        Arc::new(Leader { wire, actor, bug: self.bug, running: Mutex::default() })
    }

    fn wish(&self) -> Wish {
        match self.chance.below(12) {
            10..12 => self.meddle(),
            0..2 => self.class(),
            2 => self.policy(),
            3 => self.by_hand().unwrap_or_else(|| self.claim()),
            _ => self.claim(),
        }
    }

    fn witness(&self) -> Option<Arc<dyn Witness>> {
        Some(self.consents.clone())
    }

    fn calm_down(&self) {
        self.backdrop.calm_down();
    }

    fn done(&self) -> Done {
        self.backdrop.done()
    }

    fn runs_max(&self, quiet: Duration) -> f64 {
        let live = self.backdrop.api.cloud().truth().live().len();
        self.backdrop.calls_max(live + 1, quiet)
    }

    fn check(&self, objects: &[Object]) -> Vec<String> {
        check::check(objects, &self.backdrop.api.cloud().truth().live())
    }

    fn violations(&self) -> Vec<String> {
        let mut violations = self.backdrop.doubles();
        violations.extend(self.consents.violations());
        violations
    }
}

/// Runs both registries while its process leads.
struct Leader {
    wire: Wire,
    actor: Actor,
    bug: Option<Bug>,
    running: Mutex<Option<(Registry, claims::registry::Registry)>>,
}

#[async_trait]
impl Duty for Leader {
    fn begin(&self, authority: Authority) {
        let parts = parts(&self.actor, &self.wire, authority);
        let registry = registry(parts.clone(), &self.wire);
        let store: Arc<dyn Store> = match self.bug {
            Some(bug) => Arc::new(Crooked::new(parts.store.clone(), bug, self.actor.chance.fork())),
            None => parts.store.clone(),
        };
        let claims = claims::registry::start(Parts { store, ..parts }).expect("it does not run yet");
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
