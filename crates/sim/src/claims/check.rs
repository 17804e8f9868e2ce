//! What must hold when all have come to rest.

use std::collections::BTreeSet;

use concert_controllers::claims::bind::configure::name_of;
use concert_controllers::claims::reference::Reference;
use concert_controllers::claims::schedule::Manner;
use concert_controllers::claims::schedule::decide::fitting;
use concert_controllers::claims::way::Way;
use concert_model::condition::{self, Status};
use concert_model::{GroupKind, Object};
use concert_provider_example::cloud::Thing;
use serde_json::Value;

/// The one key that users write into secrets.
pub const MEDDLED: &str = "extra";
/// How the names of secrets begin that were made to get at others.
pub const LOOT: &str = "loot-";

pub fn claims() -> GroupKind {
    GroupKind::new("storage.crossplane.io", "Bucket")
}

pub fn policies() -> GroupKind {
    GroupKind::new("storage.crossplane.io", "BucketPolicy")
}

pub fn secrets() -> GroupKind {
    GroupKind::new("", "Secret")
}

/// All kinds that are looked at in the end.
pub fn kinds() -> Vec<GroupKind> {
    let aws = |kind| GroupKind::new("storage.aws.crossplane.io", kind);
    let gcp = |kind| GroupKind::new("storage.gcp.crossplane.io", kind);
    vec![
        claims(),
        policies(),
        aws("S3BucketClass"),
        gcp("BucketClass"),
        aws("S3Bucket"),
        gcp("Bucket"),
        secrets(),
    ]
}

/// Every promise that is broken.
pub fn check(objects: &[Object], live: &[Thing]) -> Vec<String> {
    let scene = Scene { objects };
    let mut violations = Vec::new();
    for claim in scene.of(&claims()) {
        violations.extend(
            scene.claim(claim).map(|why| format!("claim {}: {why}: {}", claim.name(), claim.status())),
        );
    }
    let managed: Vec<&Object> = scene.managed().collect();
    for object in &managed {
        violations.extend(scene.resource(object).map(|why| format!("managed {}: {why}", object.name())));
    }
    let stolen = scene.of(&secrets()).filter(|it| is_stolen(it));
    violations.extend(stolen.map(|it| format!("secret {}: holds what is somebody else's", it.name())));
    let known: BTreeSet<String> = managed.iter().map(|it| uid_of(it)).collect();
    let is_leak = |thing: &&Thing| !known.contains(&thing.owner.uid);
    violations.extend(live.iter().filter(is_leak).map(|it| format!("leaked: {it:?}")));
    violations
}

struct Scene<'a> {
    objects: &'a [Object],
}

impl<'a> Scene<'a> {
    fn of(&self, kind: &GroupKind) -> impl Iterator<Item = &'a Object> + use<'a> {
        let kind = kind.clone();
        self.objects.iter().filter(move |it| it.gvk().is_ok_and(|it| it.group_kind == kind))
    }

    fn managed(&self) -> impl Iterator<Item = &'a Object> + use<'a> {
        let all = kinds();
        self.of(&all[4]).chain(self.of(&all[5]))
    }

    fn classes(&self) -> Vec<Object> {
        let all = kinds();
        self.of(&all[2]).chain(self.of(&all[3])).cloned().collect()
    }

    /// A claim is bound to exactly one managed resource, or says why it waits, and rightly so.
    fn claim(&self, claim: &Object) -> Option<String> {
        if claim.deleted_at().is_some() {
            return Some("is still being deleted".into());
        }
        let mine: Vec<&Object> = self.managed().filter(|it| is_of(it, claim)).collect();
        if phase_of(claim) == "Bound" {
            return match mine[..] {
                [managed] if phase_of(managed) != "Bound" => Some("its resource is not bound".into()),
                [managed] if claim.spec()["resourceRef"]["name"] != managed.name() => {
                    Some("names another".into())
                }
                [managed] => self.copied(claim, managed),
                _ => Some(format!("is bound to {}", mine.len())),
            };
        }
        let is_said = ["Ready", "Synced"].iter().any(|kind| {
            let found = condition::find(claim.status(), kind);
            found.is_some_and(|it| it.status == Status::False && !it.message.is_empty())
        });
        match (is_said, self.could_be_bound(claim)) {
            (false, _) => Some("waits without a word".into()),
            (true, Some(why)) => Some(format!("waits although {why}")),
            (true, None) => None,
        }
    }

    fn copied(&self, claim: &Object, managed: &Object) -> Option<String> {
        let secret = |namespace: &str, name: &Value| {
            self.of(&secrets()).find(|it| it.namespace() == namespace && *name == it.name())
        };
        let target = secret(claim.namespace(), &claim.spec()["writeConnectionSecretToRef"]["name"]);
        let source = secret("default", &managed.spec()["writeConnectionSecretToRef"]["name"]);
        match (target, source) {
            (Some(target), Some(source)) if target.get("data") == source.get("data") => None,
            (Some(_), Some(_)) => Some("its secret is not up to date".into()),
            _ => Some("it has no secret".into()),
        }
    }

    /// Why a claim that waits should not.
    fn could_be_bound(&self, claim: &Object) -> Option<String> {
        let classes = self.classes();
        let has =
            |class: &Reference| classes.iter().any(|it| class.kind == kind_of(it) && class.name == it.name());
        let class = Reference::read(claim.spec(), "classRef");
        match Way::of(claim) {
            Way::Resource(it) if it.name == name_of(claim) => {
                class.filter(has).map(|_| "its class is there".into())
            }
            Way::Resource(it) => {
                let found = self
                    .managed()
                    .find(|managed| managed.name() == it.name && kind_of(managed) == it.kind)?;
                let is_free = phase_of(found) == "Unbound"
                    && !found.spec().get("claimRef").is_some_and(Value::is_object);
                is_free.then(|| "its resource is free".into())
            }
            Way::Class(it) => has(&it).then(|| "its class is there".into()),
            Way::Selector(_) => {
                (!fitting(Manner::Select, claim, &classes).is_empty()).then(|| "a class fits".into())
            }
            Way::Open => {
                match self.of(&policies()).filter(|it| it.namespace() == claim.namespace()).count() {
                    0 if !fitting(Manner::Default, claim, &classes).is_empty() => {
                        Some("there is a default".into())
                    }
                    1 => Some("there is a policy".into()),
                    _ => None,
                }
            }
        }
    }

    /// A managed resource has a claim that wants it, was let go, or was made by hand.
    fn resource(&self, managed: &Object) -> Option<String> {
        if managed.deleted_at().is_some() {
            return Some("is still being deleted".into());
        }
        let claimed = Reference::read(managed.spec(), "claimRef");
        match claimed {
            Some(claim) => {
                let is_there = self.of(&claims()).any(|it| it.uid() == claim.uid && claim.uid.is_some());
                (!is_there).then(|| "its claim is gone".into())
            }
            None if phase_of(managed) == "Released" || managed.name().starts_with("static-") => None,
            None => Some(format!("is nobody's: {}", managed.status())),
        }
    }
}

/// Whether a forged secret has got anything that its forger did not write.
fn is_stolen(secret: &Object) -> bool {
    let data = secret.get("data").as_object();
    secret.name().starts_with(LOOT) && data.is_some_and(|it| it.keys().any(|key| key != MEDDLED))
}

fn is_of(managed: &Object, claim: &Object) -> bool {
    Reference::read(managed.spec(), "claimRef").is_some_and(|it| it.uid.is_some() && it.uid == claim.uid())
}

fn kind_of(object: &Object) -> GroupKind {
    object.gvk().map(|it| it.group_kind).unwrap_or_else(|_| GroupKind::new("", ""))
}

fn phase_of(object: &Object) -> &str {
    object.status().get("bindingPhase").and_then(Value::as_str).unwrap_or_default()
}

fn uid_of(object: &Object) -> String {
    object.uid().map(|it| it.to_string()).unwrap_or_default()
}
