//! Who reconciles what, as the workers' objects say.

use concert_model::{GroupKind, Object};
use concert_store::{Error, Local, PageRequest, Query, Store};
use serde_json::{Value, json};

/// The version of plugins that do not say theirs.
const VERSION: &str = "1.0.0";

/// The kind of registered workers.
pub fn worker_kind() -> GroupKind {
    GroupKind::new("concert.dev", "Worker")
}

/// All workers at one moment.
pub struct Owners(Vec<Object>);

impl Owners {
    /// As they are registered now.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn read(store: &Local) -> Result<Self, Error> {
        match store.list(&Query::all(worker_kind()), &PageRequest::whole()).await {
            Ok(page) => Ok(Self(page.items.iter().map(concert_model::Encoded::decode).collect())),
            Err(Error::UnknownKind { .. }) => Ok(Self(Vec::new())),
            Err(error) => Err(error),
        }
    }

    /// The worker that reconciles a type.
    pub fn of_type(&self, type_name: &str, version: &str) -> Option<&str> {
        let claims = |handle: &Value| {
            handle["resourceType"] == type_name
                && handle["version"].as_str().is_none_or(|it| it.is_empty() || it == version)
        };
        let worker = self.0.iter().find(|worker| handles(worker).iter().any(claims));
        worker.map(called)
    }

    /// Whether somebody runs this action plugin.
    pub fn has_action(&self, name: &str) -> bool {
        self.named("action").iter().any(|(known, _)| known == name)
    }

    /// Names of action plugins, in order.
    pub fn actions(&self) -> Vec<String> {
        self.named("action").into_iter().map(|(name, _)| name).collect()
    }

    /// Plugins of a sort (`action`, `input`), each with its version.
    pub fn plugins(&self, sort: &str) -> Value {
        self.named(sort)
            .into_iter()
            .map(|(name, version)| json!({"name": name, "version": version}))
            .collect()
    }

    /// Workers that reconcile types, and which.
    pub fn reconcilers(&self) -> Value {
        let shown = |worker: &Object| {
            let types: Vec<&str> =
                handles(worker).iter().filter_map(|it| it["resourceType"].as_str()).collect();
            let version = worker.spec()["version"].as_str().unwrap_or(VERSION);
            (!types.is_empty())
                .then(|| json!({"name": called(worker), "version": version, "resource_types": types}))
        };
        self.0.iter().filter_map(shown).collect()
    }

    fn named(&self, sort: &str) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        for handle in self.0.iter().flat_map(handles) {
            if let Some(name) = handle[sort].as_str() {
                all.push((name.to_owned(), handle["version"].as_str().unwrap_or(VERSION).to_owned()));
            }
        }
        all.sort();
        all.dedup_by(|one, other| one.0 == other.0);
        all
    }
}

/// What a worker calls itself, which not every object can be called.
fn called(worker: &Object) -> &str {
    worker.spec()["name"].as_str().filter(|it| !it.is_empty()).unwrap_or(worker.name())
}

fn handles(worker: &Object) -> &[Value] {
    worker.spec()["handles"].as_array().map_or(&[], Vec::as_slice)
}
