//! Managed resources as the subject of a life.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_controllers::managed::registry::Registry;
use concert_controllers::managed::vocabulary::{annotation, message};
use concert_engine::Authority;
use concert_engine::leader::Duty;
use concert_model::condition::{self, Status};
use concert_model::{GroupKind, Object, ObjectKey};
use concert_provider_example::CRDS;
use concert_provider_example::cloud;
use concert_store::Chance;
use serde_json::{Value, json};

use super::Bug;
use super::backdrop::{Backdrop, parts, registry};
use super::wire::Wire;
use crate::play::{Actor, Done, Play, Stage, Wish};

const GROUP: &str = "cloud.concert.dev";
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Buckets, whose ids the cloud makes up, and networks, whose names are known beforehand.
pub struct ManagedPlay {
    chance: Chance,
    backdrop: Backdrop,
    /// In some lives the provider cannot tell what became of a create.
    is_blind: bool,
    bug: Option<Bug>,
}

impl ManagedPlay {
    /// On this stage, perhaps with a bug.
    pub fn new(stage: &Stage, bug: Option<Bug>) -> Self {
        let settings = cloud::Settings {
            visible_after: Duration::from_secs(2),
            ready_after: Duration::from_secs(3),
            error_rate: 0.05,
            lost_answers: 0.05,
            ..cloud::Settings::default()
        };
        let backdrop = Backdrop::new(stage, settings, |it| it);
        Self { chance: stage.chance.clone(), backdrop, is_blind: stage.seed % 4 == 3, bug }
    }

    /// One wish after the other: something of each kind is made, changed, and not wanted any more.
    pub fn story() -> Vec<Wish> {
        let mut wishes = Vec::new();
        for kind in ["Bucket", "Network"] {
            let sized = |size| object(kind, "a", json!({"forProvider": {"region": "here", "size": size}}));
            wishes.extend([Wish::There(sized(1)), Wish::There(sized(2))]);
            wishes.push(Wish::Gone(ObjectKey::namespaced(GroupKind::new(GROUP, kind), "default", "a")));
        }
        wishes
    }

    fn bucket(&self, name: &str) -> Object {
        let size = self.chance.below(100);
        let mut spec = json!({"forProvider": {"region": "here", "size": size}});
        if self.chance.is_hit(0.3) {
            let to = NAMES[self.chance.below(NAMES.len() as u64) as usize];
            spec["forProvider"]["networkIdRef"] = json!({ "name": to });
        }
        object("Bucket", name, spec)
    }

    /// Whether an object waits for a person, and says so.
    fn waits_for_a_person(&self, object: &Object) -> bool {
        let synced = condition::find(object.status(), "Synced");
        self.is_blind && synced.is_some_and(|it| it.message.contains(message::CREATE_IN_DOUBT))
    }
}

fn object(kind: &str, name: &str, spec: Value) -> Object {
    let kind = GroupKind::new(GROUP, kind).at_version("v1alpha1");
    let mut object = Object::new(&kind, "default", name);
    object.set("spec", spec);
    object
}

fn is_true(object: &Object, kind: &str) -> bool {
    condition::find(object.status(), kind)
        .is_some_and(|it| it.status == Status::True && it.observed_generation == Some(object.generation()))
}

impl Play for ManagedPlay {
    fn definitions(&self) -> Vec<Value> {
        let account = json!({"apiVersion": "cloud.concert.dev/v1alpha1", "kind": "ClusterProviderConfig",
            "metadata": {"name": "default"}, "spec": {"credentials": {"source": "None"}}});
        let definitions = CRDS.iter().map(|(_, text)| serde_saphyr::from_str(text).expect("it is YAML"));
        definitions.chain([account]).collect()
    }

    fn kinds(&self) -> Vec<GroupKind> {
        vec![GroupKind::new(GROUP, "Bucket"), GroupKind::new(GROUP, "Network")]
    }

    fn duty(&self, actor: Actor) -> Arc<dyn Duty> {
        let wire = Wire { bug: self.bug, ..self.backdrop.wire(&actor, self.is_blind) };
        Arc::new(Leader { wire, actor, registry: Mutex::default() })
    }

    fn wish(&self) -> Wish {
        let name = NAMES[self.chance.below(NAMES.len() as u64) as usize];
        let kind = if self.chance.is_hit(0.4) { "Network" } else { "Bucket" };
        if self.chance.is_hit(0.3) {
            return Wish::Gone(ObjectKey::namespaced(GroupKind::new(GROUP, kind), "default", name));
        }
        match kind {
            "Bucket" => Wish::There(self.bucket(name)),
            _ => {
                let size = self.chance.below(100);
                Wish::There(object(kind, name, json!({"forProvider": {"region": "here", "size": size}})))
            }
        }
    }

    fn calm_down(&self) {
        self.backdrop.calm_down();
    }

    fn done(&self) -> Done {
        self.backdrop.done()
    }

    fn runs_max(&self, quiet: Duration) -> f64 {
        self.backdrop.calls_max(NAMES.len() * 2, quiet)
    }

    /// Everything declared is there once, as declared; and nothing else is.
    fn check(&self, objects: &[Object]) -> Vec<String> {
        let mut violations = Vec::new();
        let cloud = self.backdrop.api.cloud();
        let live = cloud.truth().live();
        let mut known = BTreeSet::new();
        for object in objects {
            let name = format!("{} {}", object.kind(), object.name());
            let uid = object.uid().map(|it| it.to_string()).unwrap_or_default();
            known.insert(uid.clone());
            if self.waits_for_a_person(object) {
                continue;
            }
            if object.deleted_at().is_some() {
                violations.push(format!("{name} is still being deleted: {}", object.status()));
                continue;
            }
            let reference = object.spec()["forProvider"]["networkIdRef"]["name"].as_str();
            let is_resolved = object.spec()["forProvider"]["networkId"].is_string();
            if reference.is_some_and(|to| !is_resolved && !objects.iter().any(|it| is_network(it, to))) {
                // It waits for a network that is not there, and rightly so.
                continue;
            }
            let mine: Vec<_> = live.iter().filter(|it| it.owner.uid == uid).collect();
            let [thing] = mine[..] else {
                violations.push(format!("{name} has {} things: {}", mine.len(), object.status()));
                continue;
            };
            if object.annotation(annotation::EXTERNAL_NAME) != Some(&thing.key.id) {
                violations.push(format!("{name} does not know its thing {:?}", thing.key));
            }
            if thing.properties.get("size") != object.spec()["forProvider"].get("size") {
                violations.push(format!("{name} is not as declared: {:?}", thing.properties));
            }
            if !is_true(object, "Ready") || !is_true(object, "Synced") {
                violations.push(format!("{name} is not said to be well: {}", object.status()));
            }
        }
        let is_leak = |thing: &&cloud::Thing| !known.contains(&thing.owner.uid);
        violations.extend(live.iter().filter(is_leak).map(|it| format!("leaked: {it:?}")));
        violations
    }

    fn violations(&self) -> Vec<String> {
        self.backdrop.doubles()
    }
}

fn is_network(object: &Object, name: &str) -> bool {
    object.kind() == "Network" && object.name() == name
}

/// Runs a registry while its process leads.
struct Leader {
    wire: Wire,
    actor: Actor,
    registry: Mutex<Option<Registry>>,
}

#[async_trait]
impl Duty for Leader {
    fn begin(&self, authority: Authority) {
        let registry = registry(parts(&self.actor, &self.wire, authority), &self.wire);
        *self.registry.lock().unwrap_or_else(PoisonError::into_inner) = Some(registry);
    }

    async fn end(&self, is_lost: bool) {
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(registry) = registry {
            registry.stop(if is_lost { Duration::ZERO } else { Duration::from_secs(5) }).await;
        }
    }
}
