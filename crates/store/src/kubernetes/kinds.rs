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
/// How long the absence of a kind is believed: long enough that a caller who asks in a loop costs
/// little, short enough that a kind just defined is there at once.
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
    found: BTreeMap<GroupKind, (Arc<Resource>, Duration)>,
    missing: BTreeMap<GroupKind, Duration>,
}

impl Kinds {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a kind is served, as far as is known or by asking.
    pub(super) async fn find(&self, transport: &Transport, kind: &GroupKind) -> Result<Arc<Resource>> {
        let now = transport.clock.elapsed();
        {
            let known = self.known();
            if let Some((resource, at)) = known.found.get(kind)
                && now < *at + KNOWN_FOR
            {
                return Ok(resource.clone());
            }
            if known.missing.get(kind).is_some_and(|at| now < *at + UNKNOWN_FOR) {
                return Err(Error::UnknownKind { kind: kind.clone() });
            }
        }
        let found = discover(transport, kind).await;
        let mut known = self.known();
        match &found {
            Ok(resource) => {
                known.missing.remove(kind);
                known.found.insert(kind.clone(), (resource.clone(), now));
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
        found
    }

    /// Something says that what is known of a kind may be wrong.
    pub(super) fn doubt(&self, kind: &GroupKind) {
        self.known().found.remove(kind);
    }

    /// A definition was written: what is known of its group may be wrong.
    pub(super) fn doubt_definition(&self, key: &ObjectKey) {
        if is_definition(&key.kind)
            && let Some((_, group)) = key.name.split_once('.')
        {
            let mut known = self.known();
            known.found.retain(|kind, _| *kind.group != *group);
            known.missing.retain(|kind, _| *kind.group != *group);
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

async fn discover(transport: &Transport, kind: &GroupKind) -> Result<Arc<Resource>> {
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
    let kind = Arc::new(define(transport, kind, &name).await?);
    Ok(Arc::new(Resource { kind, name }))
}

/// What only the definition of a kind says; kinds without one are built in.
async fn define(transport: &Transport, mut kind: Kind, name: &str) -> Result<Kind> {
    if !kind.group_kind.group.contains('.') || is_definition(&kind.group_kind) {
        return Ok(kind);
    }
    let root = Address::new("/apis").step(DEFINITION_GROUP).step("v1").step("customresourcedefinitions");
    let definition: Option<Value> = match ask(transport, &kind.group_kind, root.step(name)).await {
        Ok(definition) => definition,
        // Whoever may not read definitions can still work with what they define.
        Err(Error::Forbidden { .. }) => None,
        Err(error) => return Err(error),
    };
    let Some(definition) = definition else { return Ok(kind) };
    kind.has_generation = true;
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let Some(stored) = versions.clone().find(|version| version["storage"] == true) else { return Ok(kind) };
    let name = stored["name"].as_str().unwrap_or_default();
    if kind.versions.iter().any(|version| **version == *name) {
        kind.storage_version = name.into();
        kind.has_status = stored["subresources"]["status"].is_object();
    }
    let shown = versions.clone().find(|version| version["name"] == *kind.storage_version);
    let fields = shown.and_then(|version| version["selectableFields"].as_array()).into_iter().flatten();
    let path = |field: &Value| Some(field["jsonPath"].as_str()?.trim_start_matches('.').to_owned());
    kind.selectable_fields = fields.filter_map(path).collect();
    Ok(kind)
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
