//! A worker, as its object says.

use std::sync::Arc;
use std::time::Duration;

use concert_engine::workers::Terms;
use concert_model::{GroupKind, Object};
use serde_json::Value;

/// The group of workers.
pub const WORKER_GROUP: &str = "concert.dev";
/// Their kind.
pub const WORKER_KIND: &str = "Worker";
/// Their version.
pub const WORKER_VERSION: &str = "v1alpha1";

/// Items that hosts of one worker may have at a time, unless it says.
const CONCURRENCY: usize = 1000;

/// The kind of workers.
pub fn worker_kind() -> GroupKind {
    GroupKind::new(WORKER_GROUP, WORKER_KIND)
}

/// What a worker says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// By which it is known; the finalizer of resources whose type it owns.
    pub name: Arc<str>,
    /// What it is in charge of.
    pub handles: Vec<Handle>,
    /// Most items of one kind that its hosts have at a time.
    pub concurrency: usize,
    /// How long leases are, and how often what is ready is looked at.
    pub terms: Terms,
}

/// Something that a worker is in charge of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Handle {
    /// Resources of a type, of one version or of all.
    Type(Arc<str>, Option<Arc<str>>),
    /// Resources of any type that name this action plugin.
    Action(Arc<str>),
}

impl Worker {
    /// Reads an object of the kind.
    pub fn of(object: &Object) -> Self {
        let spec = object.spec();
        let seconds = |field: &str| spec[field].as_u64().filter(|it| *it > 0).map(Duration::from_secs);
        let handles = spec["handles"].as_array().map_or(&[][..], Vec::as_slice);
        let usual = Terms::default();
        Self {
            // An object cannot be called like every worker.
            name: spec["name"].as_str().filter(|it| !it.is_empty()).unwrap_or(object.name()).into(),
            handles: handles.iter().filter_map(handle).collect(),
            concurrency: spec["concurrency"]
                .as_u64()
                .map_or(CONCURRENCY, |it| usize::try_from(it).unwrap_or(CONCURRENCY)),
            terms: Terms {
                lease: seconds("leaseSeconds").unwrap_or(usual.lease),
                deadline: seconds("deadlineSeconds").unwrap_or(usual.deadline),
                resync: seconds("resyncSeconds"),
            },
        }
    }

    /// The action plugins that it runs, in order.
    pub fn actions(&self) -> Vec<&str> {
        let actions = self.handles.iter().filter_map(|it| match it {
            Handle::Action(name) => Some(&**name),
            Handle::Type(..) => None,
        });
        let mut actions: Vec<&str> = actions.collect();
        actions.sort_unstable();
        actions.dedup();
        actions
    }
}

fn handle(value: &Value) -> Option<Handle> {
    let text = |field: &str| value[field].as_str().filter(|it| !it.is_empty()).map(Arc::from);
    let of_type = text("resourceType").map(|name| Handle::Type(name, text("version")));
    of_type.or_else(|| text("action").map(Handle::Action))
}
