//! A component reconciler, as its worker's object says.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use concert_engine::workers::Terms;
use concert_model::Object;
use concert_model::inventory::Entry;
use serde_json::Value;

use super::vocabulary::finalizer_of;
use crate::plugins::Worker;

/// How often what is ready is looked at, unless its reconciler says.
const RESYNC: Duration = Duration::from_secs(900);
/// Items that hosts of one reconciler may have at a time, unless it says.
const CONCURRENCY: usize = 100;

/// What a component reconciler says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// By which it is known.
    pub name: Arc<str>,
    /// The kinds of entries that it works on.
    pub kinds: BTreeSet<Arc<str>>,
    /// What wakes it.
    pub watches: Vec<Watch>,
    /// What wakes it in target clusters.
    pub events: BTreeSet<Interest>,
    /// Most items that its hosts have at a time.
    pub concurrency: usize,
    /// How long leases are.
    pub terms: Terms,
}

/// A section whose changes wake, or one value in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watch {
    /// Which section.
    pub section: Arc<str>,
    /// A JSON pointer; the whole section if none.
    pub path: Option<Arc<str>>,
}

/// Objects of a target cluster whose changes wake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interest {
    /// Their group.
    pub group: Arc<str>,
    /// Their version.
    pub version: Arc<str>,
    /// Their kind.
    pub kind: Arc<str>,
    /// Only in this namespace, if any.
    pub namespace: Option<Arc<str>>,
}

impl Component {
    /// Reads a worker; none if it does not work on entries.
    pub fn of(object: &Object) -> Option<Self> {
        let spec = object.spec();
        let list = |field: &str| spec[field].as_array().map_or(&[][..], Vec::as_slice);
        let kinds: BTreeSet<Arc<str>> =
            list("handles").iter().filter_map(|it| text(it, "entryKind")).collect();
        if kinds.is_empty() {
            return None;
        }
        let Worker { name, terms, .. } = Worker::of(object);
        let concurrency = spec["concurrency"].as_u64().and_then(|it| usize::try_from(it).ok());
        Some(Self {
            name,
            kinds,
            watches: list("watches").iter().filter_map(watch).collect(),
            events: list("clusterEvents").iter().filter_map(interest).collect(),
            concurrency: concurrency.unwrap_or(CONCURRENCY),
            terms,
        })
    }

    /// Whether it works on entries of a kind.
    pub fn handles(&self, kind: &str) -> bool {
        self.kinds.contains(kind)
    }

    /// Whether it holds an entry that it has worked on.
    pub fn holds(&self, entry: &Object) -> bool {
        entry.finalizers().contains(&finalizer_of(&self.name))
    }

    /// Whether an entry is its business: one that it handles, or one that goes and has to be let go, although
    /// it handles the kind no longer.
    pub fn concerns(&self, entry: &Object) -> bool {
        let entry_of = Entry(entry);
        self.handles(entry_of.kind()) || entry_of.is_deleting() && self.holds(entry)
    }

    /// How often what is ready is looked at.
    pub fn resync(&self) -> Duration {
        self.terms.resync.unwrap_or(RESYNC)
    }

    /// The sections that wake it.
    pub fn sections(&self) -> BTreeSet<&str> {
        self.watches.iter().map(|it| &*it.section).collect()
    }
}

impl Interest {
    /// Whether an event of such an object is meant.
    pub fn matches(&self, group: &str, kind: &str, namespace: &str) -> bool {
        let is_there = self.namespace.as_deref().is_none_or(|it| it == namespace);
        *self.group == *group && *self.kind == *kind && is_there
    }
}

fn text(value: &Value, field: &str) -> Option<Arc<str>> {
    value[field].as_str().filter(|it| !it.is_empty()).map(Arc::from)
}

fn watch(value: &Value) -> Option<Watch> {
    Some(Watch { section: text(value, "section")?, path: text(value, "path") })
}

fn interest(value: &Value) -> Option<Interest> {
    let (version, kind) = (text(value, "version")?, text(value, "kind")?);
    let group = value["group"].as_str().unwrap_or_default().into();
    Some(Interest { group, version, kind, namespace: text(value, "namespace") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn worker(spec: Value) -> Object {
        let metadata = json!({"name": "shoot"});
        Object::from_value(json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Worker",
            "metadata": metadata, "spec": spec}))
        .unwrap()
    }

    #[test]
    fn a_component_is_a_worker_that_handles_kinds_of_entries() {
        let object = worker(json!({"handles": [{"entryKind": "runtime"}], "resyncSeconds": 30,
            "watches": [{"section": "network", "path": "/vnet_name"}, {"section": "spec"}],
            "clusterEvents": [{"group": "services.example.com", "version": "v1", "kind": "ServiceInstance"}]}));
        let component = Component::of(&object).unwrap();
        assert!(component.handles("runtime") && !component.handles("byoc"));
        assert_eq!(component.sections(), ["network", "spec"].into());
        assert_eq!((component.resync(), component.concurrency), (Duration::from_secs(30), CONCURRENCY));
        let interest = component.events.first().unwrap();
        assert!(interest.matches("services.example.com", "ServiceInstance", "any"));
        assert!(!interest.matches("", "ServiceInstance", "any"));
        assert_eq!(Component::of(&worker(json!({"handles": [{"resourceType": "Dns"}]}))), None);
    }
}
