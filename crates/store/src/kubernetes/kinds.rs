//! Which kinds the cluster serves, and where.
//!
//! Asked one kind at a time, when it is first needed, and kept. What is kept is asked again after a
//! while, when a path turns out to be gone, and when a definition was written through this store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concert_model::metadata::NameRule;
use concert_model::{Address, GroupKind, ObjectKey};
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::requests::Verb;
use super::status::{About, Refusal, Status};
use super::transport::{Ask, Content, Transport};
use crate::contract::Result;
use crate::error::Error;
use crate::kind::Kind;
use crate::local::{DEFINITION_GROUP, DEFINITION_KIND};

/// How long an answer is believed: definitions change seldom, and most changes are noticed earlier.
const KNOWN_FOR: Duration = Duration::from_secs(300);
/// How long the absence of a kind is believed, or what may be half of it: long enough that a caller who asks
/// in a loop costs little, short enough that a kind just defined is there at once.
const UNKNOWN_FOR: Duration = Duration::from_millis(100);
/// Absences kept: beyond that the oldest are asked for again.
const UNKNOWN_MAX: usize = 1_024;

/// A kind, and where its objects are.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) kind: Arc<Kind>,
    /// What requests are counted under: `widgets.example.com`.
    pub(super) name: Arc<str>,
}

impl Resource {
    /// Where the objects of a namespace are, or all of them.
    pub(super) fn address(&self, namespace: Option<&str>) -> Address {
        self.address_in(&self.kind.storage_version, namespace)
    }

    /// The same, in another version.
    pub(super) fn address_in(&self, version: &str, namespace: Option<&str>) -> Address {
        let group = &*self.kind.group_kind.group;
        let mut address =
            if group.is_empty() { Address::new("/api") } else { Address::new("/apis").step(group) };
        address = address.step(version);
        if let Some(namespace) = namespace.filter(|n| !n.is_empty() && self.kind.is_namespaced) {
            address = address.step("namespaces").step(namespace);
        }
        address.step(&self.kind.plural)
    }

    /// Where one object is.
    pub(super) fn address_of(&self, key: &ObjectKey) -> Address {
        self.address(Some(&key.namespace)).step(&key.name)
    }
}

/// All kinds that were asked for.
#[derive(Default)]
pub(super) struct Kinds(Mutex<Known>);

#[derive(Default)]
struct Known {
    found: BTreeMap<GroupKind, Kept>,
    missing: BTreeMap<GroupKind, Duration>,
    /// How often something was doubted: what was asked before that is not kept.
    doubts: u64,
}

/// An answer, and for how long it is believed.
struct Kept {
    resource: Arc<Resource>,
    is_whole: bool,
    at: Duration,
    span: Duration,
}

/// For how long an answer is believed, after what was kept before. One that may be half is asked again soon,
/// and ever more seldom while it stays as it is: many kinds really are in some versions of their group only.
fn span(versions: &[Arc<str>], is_whole: bool, before: Option<&Kept>) -> Duration {
    match before {
        _ if is_whole => KNOWN_FOR,
        Some(before) if !before.is_whole && before.resource.kind.versions == versions => {
            KNOWN_FOR.min(before.span * 2)
        }
        _ => UNKNOWN_FOR,
    }
}

impl Kinds {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a kind is served, as far as is known or by asking.
    pub(super) async fn find(&self, transport: &Transport, kind: &GroupKind) -> Result<Arc<Resource>> {
        let now = transport.clock.elapsed();
        let doubts = {
            let known = self.known();
            if let Some(kept) = known.found.get(kind)
                && now < kept.at + kept.span
            {
                return Ok(kept.resource.clone());
            }
            if known.missing.get(kind).is_some_and(|at| now < *at + UNKNOWN_FOR) {
                return Err(Error::UnknownKind { kind: kind.clone() });
            }
            known.doubts
        };
        let found = discover(transport, kind).await;
        let mut known = self.known();
        if known.doubts != doubts {
            return found.map(|(resource, _)| resource);
        }
        match &found {
            Ok((resource, is_whole)) => {
                known.missing.remove(kind);
                let span = span(&resource.kind.versions, *is_whole, known.found.get(kind));
                let kept = Kept { resource: resource.clone(), is_whole: *is_whole, at: now, span };
                known.found.insert(kind.clone(), kept);
            }
            Err(Error::UnknownKind { .. }) => {
                known.found.remove(kind);
                if known.missing.len() >= UNKNOWN_MAX {
                    known.missing.clear();
                }
                known.missing.insert(kind.clone(), now);
            }
            Err(_) => {}
        }
        found.map(|(resource, _)| resource)
    }

    /// Something says that what is known of a kind may be wrong.
    pub(super) fn doubt(&self, kind: &GroupKind) {
        let mut known = self.known();
        known.found.remove(kind);
        known.doubts += 1;
    }

    /// A definition was written: what is known of its group may be wrong.
    pub(super) fn doubt_definition(&self, key: &ObjectKey) {
        if is_definition(&key.kind)
            && let Some((_, group)) = key.name.split_once('.')
        {
            let mut known = self.known();
            known.found.retain(|kind, _| *kind.group != *group);
            known.missing.retain(|kind, _| *kind.group != *group);
            known.doubts += 1;
        }
    }
}

pub(super) fn is_definition(kind: &GroupKind) -> bool {
    *kind.group == *DEFINITION_GROUP && *kind.kind == *DEFINITION_KIND
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Group {
    versions: Vec<Version>,
    preferred_version: Version,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    version: Arc<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    resources: Vec<Found>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Found {
    name: String,
    kind: String,
    namespaced: bool,
}

/// How a kind is served, and whether that is surely all of it: versions of a kind that was just defined are
/// announced one after the other.
async fn discover(transport: &Transport, kind: &GroupKind) -> Result<(Arc<Resource>, bool)> {
    let unknown = || Error::UnknownKind { kind: kind.clone() };
    let group = if kind.group.is_empty() {
        let v1 = || Version { version: "v1".into() };
        Group { versions: vec![v1()], preferred_version: v1() }
    } else {
        ask(transport, kind, Address::new("/apis").step(&kind.group)).await?.ok_or_else(unknown)?
    };
    let mut served = Vec::new();
    let preferred = group.preferred_version.version;
    let others = group.versions.into_iter().map(|it| it.version).filter(|version| *version != preferred);
    let versions: Vec<Arc<str>> = std::iter::once(preferred.clone()).chain(others).collect();
    let announced = versions.len();
    for version in versions {
        let root = if kind.group.is_empty() {
            Address::new("/api")
        } else {
            Address::new("/apis").step(&kind.group)
        };
        let list: Resources = ask(transport, kind, root.step(&version)).await?.unwrap_or_default();
        let is_main = |found: &&Found| *found.kind == *kind.kind && !found.name.contains('/');
        if let Some(main) = list.resources.iter().find(is_main) {
            let status = format!("{}/status", main.name);
            let has_status = list.resources.iter().any(|found| found.name == status);
            served.push((version, main.name.clone(), main.namespaced, has_status));
        }
    }
    let Some((version, plural, is_namespaced, has_status)) = served.first().cloned() else {
        return Err(unknown());
    };
    let is_everywhere = served.len() == announced;
    let versions = served.into_iter().map(|(version, ..)| version).collect();
    let kind = Kind {
        group_kind: kind.clone(),
        storage_version: version,
        versions,
        plural: plural.into(),
        is_namespaced,
        has_status,
        has_generation: counts_generations(kind, has_status),
        name_rule: name_rule(kind),
        selectable_fields: Vec::new(),
    };
    let name = match &*kind.group_kind.group {
        "" => kind.plural.clone(),
        group => format!("{}.{group}", kind.plural).into(),
    };
    let (kind, is_whole) = match definition(transport, &kind.group_kind, &name).await? {
        Defined::BuiltIn => (kind, true),
        Defined::Absent => (kind, is_everywhere),
        Defined::Secret => (kind, false),
        Defined::As(definition) => (complete(kind, &definition), true),
    };
    Ok((Arc::new(Resource { kind: Arc::new(kind), name }), is_whole))
}

/// What there is to learn from the definition of a kind.
enum Defined {
    /// Kinds of this group have none.
    BuiltIn,
    /// It has none, though it might.
    Absent,
    /// We may not read it.
    Secret,
    As(Value),
}

async fn definition(transport: &Transport, kind: &GroupKind, name: &str) -> Result<Defined> {
    if !kind.group.contains('.') || is_definition(kind) {
        return Ok(Defined::BuiltIn);
    }
    let root = Address::new("/apis").step(DEFINITION_GROUP).step("v1").step("customresourcedefinitions");
    match ask(transport, kind, root.step(name)).await {
        Ok(Some(definition)) => Ok(Defined::As(definition)),
        Ok(None) => Ok(Defined::Absent),
        // Whoever may not read definitions can still work with what they define.
        Err(Error::Forbidden { .. }) => Ok(Defined::Secret),
        Err(error) => Err(error),
    }
}

/// A kind as its definition has it, whichever of its versions were announced so far. Those that were come
/// first, in their order.
fn complete(mut kind: Kind, definition: &Value) -> Kind {
    kind.has_generation = true;
    let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let served: Vec<&Value> = versions.iter().filter(|version| version["served"] == true).collect();
    let mut names: Vec<Arc<str>> =
        served.iter().filter_map(|version| version["name"].as_str()).map(Arc::from).collect();
    let rank = |name: &Arc<str>| kind.versions.iter().position(|it| it == name).unwrap_or(usize::MAX);
    names.sort_by_key(rank);
    let Some(first) = names.first().cloned() else { return kind };
    kind.versions = names;
    let stored = served.iter().find(|version| version["storage"] == true);
    let Some(shown) = stored.or_else(|| served.iter().find(|version| version["name"] == *first)) else {
        return kind;
    };
    kind.storage_version = shown["name"].as_str().map_or(first, Arc::from);
    kind.has_status = shown["subresources"]["status"].is_object();
    let fields = shown["selectableFields"].as_array().into_iter().flatten();
    let path = |field: &Value| Some(field["jsonPath"].as_str()?.trim_start_matches('.').to_owned());
    kind.selectable_fields = fields.filter_map(path).collect();
    kind
}

/// Kinds that are built in count generations where they have something to make true.
fn counts_generations(kind: &GroupKind, has_status: bool) -> bool {
    is_definition(kind) || has_status && !kind.group.is_empty() && &*kind.group != "coordination.k8s.io"
}

fn name_rule(kind: &GroupKind) -> NameRule {
    match (&*kind.group, &*kind.kind) {
        ("", "Namespace") => NameRule::Label,
        ("rbac.authorization.k8s.io", _) => NameRule::PathSegment,
        _ => NameRule::Subdomain,
    }
}

/// Reads something about kinds; none if it is not there.
async fn ask<T: for<'a> Deserialize<'a>>(
    transport: &Transport,
    kind: &GroupKind,
    address: Address,
) -> Result<Option<T>> {
    let path = address.into_path();
    let ask = Ask { verb: Verb::Discover, resource: "".into(), path, content: Content::None };
    let answer = transport.send(&ask).await?;
    match answer.status {
        StatusCode::OK => {
            Ok(Some(serde_json::from_slice(&answer.bytes).map_err(|e| Error::Unavailable(e.into()))?))
        }
        StatusCode::NOT_FOUND => Ok(None),
        _ => match Status::of(&answer).refusal(About::Kind(kind)) {
            Refusal::NotServed => Ok(None),
            Refusal::Error(error) => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(versions: &[&str]) -> Kind {
        let group_kind = GroupKind::new("a.dev", "Widget");
        Kind {
            name_rule: name_rule(&group_kind),
            group_kind,
            storage_version: versions[0].into(),
            versions: versions.iter().map(|it| Arc::from(*it)).collect(),
            plural: "widgets".into(),
            is_namespaced: true,
            has_status: false,
            has_generation: false,
            selectable_fields: Vec::new(),
        }
    }

    /// A definition of these versions: the name of each, whether it is served, and whether it is stored.
    fn definition(versions: &[(&str, bool, bool)]) -> Value {
        let version = |(name, served, storage): &(&str, bool, bool)| {
            json!({"name": name, "served": served, "storage": storage, "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": format!(".spec.{name}")}]})
        };
        json!({"spec": {"versions": versions.iter().map(version).collect::<Vec<_>>()}})
    }

    fn names(kind: &Kind) -> Vec<&str> {
        kind.versions.iter().map(|it| &**it).collect()
    }

    #[test]
    fn a_kind_of_which_half_is_announced_has_all_the_versions_of_its_definition() {
        let both = definition(&[("v1alpha1", true, false), ("v1beta1", true, true)]);
        let half = complete(kind(&["v1alpha1"]), &both);
        assert_eq!(names(&half), ["v1alpha1", "v1beta1"]);
        assert_eq!((&*half.storage_version, half.has_status, half.has_generation), ("v1beta1", true, true));
        assert_eq!(half.selectable_fields, ["spec.v1beta1"]);
        // What is preferred stays first.
        let whole = complete(kind(&["v1beta1", "v1alpha1"]), &both);
        assert_eq!(names(&whole), ["v1beta1", "v1alpha1"]);
    }

    #[test]
    fn a_version_that_is_not_served_is_none() {
        let old = definition(&[("v1alpha1", false, false), ("v1beta1", true, true)]);
        assert_eq!(names(&complete(kind(&["v1alpha1"]), &old)), ["v1beta1"]);
        // Stored in one that nobody can ask for: shown in the first that one can.
        let new = definition(&[("v1alpha1", true, false), ("v1beta1", false, true)]);
        let shown = complete(kind(&["v1alpha1"]), &new);
        assert_eq!((names(&shown), &*shown.storage_version), (vec!["v1alpha1"], "v1alpha1"));
        assert_eq!(shown.selectable_fields, ["spec.v1alpha1"]);
        assert_eq!(names(&complete(kind(&["v1"]), &json!({}))), ["v1"]);
    }

    #[test]
    fn half_an_answer_is_asked_again_soon_and_ever_more_seldom_while_it_stays_so() {
        let kept = |versions: &[&str], is_whole, span| {
            let resource = Arc::new(Resource { kind: Arc::new(kind(versions)), name: "widgets".into() });
            Kept { resource, is_whole, at: Duration::ZERO, span }
        };
        let (one, two) = (kind(&["v1"]).versions, kind(&["v1", "v2"]).versions);
        assert_eq!(span(&one, true, None), KNOWN_FOR);
        assert_eq!(span(&one, false, None), UNKNOWN_FOR);
        assert_eq!(span(&one, false, Some(&kept(&["v1"], true, KNOWN_FOR))), UNKNOWN_FOR);
        assert_eq!(span(&one, false, Some(&kept(&["v1"], false, UNKNOWN_FOR))), UNKNOWN_FOR * 2);
        assert_eq!(span(&one, false, Some(&kept(&["v1"], false, KNOWN_FOR))), KNOWN_FOR);
        assert_eq!(span(&two, false, Some(&kept(&["v1"], false, KNOWN_FOR))), UNKNOWN_FOR);
    }
}
