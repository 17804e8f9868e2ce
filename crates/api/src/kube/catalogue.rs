//! What is served right now, by path.
//!
//! A snapshot of the kinds' cards, made anew when one of them changes. Discovery and OpenAPI are written
//! once for each snapshot.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use concert_model::GroupKind;
use concert_store::{Card, Local, View};

use super::discovery::Discovery;
use super::hash::Hashed;
use super::{openapi, reviews};
use crate::error::Naming;

/// One resource in one version.
#[derive(Debug)]
pub(crate) struct Resource {
    card: Arc<Card>,
    view: usize,
    /// `v1` or `GROUP/VERSION`.
    pub(crate) api_version: Arc<str>,
}

impl Resource {
    pub(crate) fn card(&self) -> &Card {
        &self.card
    }

    pub(crate) fn view(&self) -> &View {
        &self.card.views[self.view]
    }

    pub(crate) fn version(&self) -> &str {
        &self.view().version
    }

    pub(crate) fn group_kind(&self) -> &GroupKind {
        &self.card.kind.group_kind
    }

    pub(crate) fn plural(&self) -> &str {
        &self.card.kind.plural
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.card.kind.is_namespaced
    }

    /// Whether nothing but its status was written to where it is defined since `other` was.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.card.origin == other.card.origin && self.view == other.view
    }

    /// What errors call an object of it.
    pub(crate) fn naming<'a>(&'a self, name: &'a str) -> Naming<'a> {
        Naming { kind: self.group_kind(), plural: self.plural(), name }
    }

    /// True for one of the core group's kinds.
    pub(crate) fn is_core(&self, kind: &str) -> bool {
        self.group_kind().group.is_empty() && &*self.group_kind().kind == kind
    }
}

/// The resources of one version of one group.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: Arc<str>,
    /// `v1` or `GROUP/VERSION`.
    pub(crate) api_version: Arc<str>,
    /// By their plural.
    pub(crate) resources: BTreeMap<Arc<str>, Arc<Resource>>,
    openapi: OnceLock<Hashed>,
}

impl Version {
    fn new(group: &str, name: &Arc<str>) -> Self {
        let api_version = if group.is_empty() { name.clone() } else { format!("{group}/{name}").into() };
        Self { name: name.clone(), api_version, resources: BTreeMap::new(), openapi: OnceLock::new() }
    }

    /// Its OpenAPI document.
    pub(crate) fn openapi(&self) -> &Hashed {
        self.openapi.get_or_init(|| Hashed::new(openapi::document(self)))
    }
}

/// The versions of one group, the best first.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: Arc<str>,
    pub(crate) versions: Vec<Arc<Version>>,
}

/// All that is served.
pub(crate) struct Catalogue {
    version: u64,
    by_api_version: HashMap<Arc<str>, Arc<Version>>,
    /// The core group first, then Kubernetes' own, then all others by name.
    pub(crate) groups: Vec<Group>,
    discovery: OnceLock<Discovery>,
    openapi: OnceLock<Hashed>,
}

impl Catalogue {
    fn new(version: u64, cards: &[Arc<Card>]) -> Self {
        let mut groups: BTreeMap<Rank, BTreeMap<Arc<str>, Version>> = BTreeMap::new();
        for (group, version) in reviews::GROUP_VERSIONS {
            let versions = groups.entry(rank(&Arc::from(*group))).or_default();
            let version: Arc<str> = Arc::from(*version);
            versions.insert(version.clone(), Version::new(group, &version));
        }
        for card in cards {
            let group = &card.kind.group_kind.group;
            let versions = groups.entry(rank(group)).or_default();
            for (index, view) in card.views.iter().enumerate().filter(|(_, view)| view.is_served) {
                let version = versions.entry(view.version.clone());
                let version = version.or_insert_with(|| Version::new(group, &view.version));
                let api_version = version.api_version.clone();
                let resource = Resource { card: card.clone(), view: index, api_version };
                version.resources.insert(card.kind.plural.clone(), Arc::new(resource));
            }
        }
        let groups: Vec<Group> = groups
            .into_iter()
            .map(|((.., name), versions)| {
                let mut versions: Vec<_> = versions.into_values().map(Arc::new).collect();
                versions.sort_by_cached_key(|version| Reverse(precedence(&version.name)));
                Group { name, versions }
            })
            .collect();
        let all = groups.iter().flat_map(|group| &group.versions);
        let by_api_version = all.map(|version| (version.api_version.clone(), version.clone())).collect();
        Self { version, by_api_version, groups, discovery: OnceLock::new(), openapi: OnceLock::new() }
    }

    pub(crate) fn version(&self, api_version: &str) -> Option<&Arc<Version>> {
        self.by_api_version.get(api_version)
    }

    pub(crate) fn find(&self, api_version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_api_version.get(api_version)?.resources.get(plural)
    }

    pub(crate) fn discovery(&self) -> &Discovery {
        self.discovery.get_or_init(|| Discovery::new(&self.groups))
    }

    /// The index of all OpenAPI documents.
    pub(crate) fn openapi(&self) -> &Hashed {
        self.openapi.get_or_init(|| Hashed::new(openapi::index(&self.groups)))
    }
}

/// Where a group stands among all: not the core, not one of Kubernetes, and its name.
type Rank = (bool, bool, Arc<str>);

fn rank(group: &Arc<str>) -> Rank {
    (!group.is_empty(), !group.ends_with(".k8s.io"), group.clone())
}

/// How good a version is: `v2` before `v1` before `v2beta1` before `v1alpha1` before anything else.
fn precedence(version: &str) -> (u8, u64, u64, Reverse<String>) {
    let other = || (0, 0, 0, Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return other() };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (Ok(major), stage) = (rest[..end].parse::<u64>(), &rest[end..]) else { return other() };
    let (stage, minor) = match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
        _ if stage.is_empty() => (3, "0"),
        (Some(minor), _) => (2, minor),
        (_, Some(minor)) => (1, minor),
        _ => return other(),
    };
    minor.parse().map_or_else(|_| other(), |minor| (stage, major, minor, Reverse(String::new())))
}

/// The newest snapshot.
pub(crate) struct Catalogues {
    store: Local,
    newest: RwLock<Arc<Catalogue>>,
}

impl Catalogues {
    pub(crate) fn new(store: Local) -> Self {
        let version = store.cards_version();
        let newest = RwLock::new(Arc::new(Catalogue::new(version, &store.cards())));
        Self { store, newest }
    }

    /// What is served at this moment.
    pub(crate) fn now(&self) -> Arc<Catalogue> {
        let version = self.store.cards_version();
        {
            let newest = self.newest.read().unwrap_or_else(PoisonError::into_inner);
            if newest.version == version {
                return newest.clone();
            }
        }
        // The version was read before the cards: if they change meanwhile, the next caller looks again.
        let made = Arc::new(Catalogue::new(version, &self.store.cards()));
        *self.newest.write().unwrap_or_else(PoisonError::into_inner) = made.clone();
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_does() {
        let mut versions =
            ["foo1", "v1alpha1", "v1", "v10", "v2beta1", "v1beta2", "v2", "v11alpha2", "foo10"];
        versions.sort_by_cached_key(|version| Reverse(precedence(version)));
        let best_first = ["v10", "v2", "v1", "v2beta1", "v1beta2", "v11alpha2", "v1alpha1", "foo1", "foo10"];
        assert_eq!(versions, best_first);
    }
}
