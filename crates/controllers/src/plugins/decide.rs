//! Which controllers there should be. A plain function of what is registered and served.

use std::collections::BTreeSet;
use std::sync::Arc;

use concert_model::no8s::{is_ours, names};
use concert_model::{GroupKind, LabelSelector};
use concert_store::{Kind, Query};

use super::worker::{Handle, Worker};

/// A controller to be: the resources of one kind that one worker is in charge of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Which worker.
    pub worker: Arc<str>,
    /// Which kind.
    pub kind: GroupKind,
    /// Those that name one of these action plugins; those that name none if empty.
    pub actions: Vec<Arc<str>>,
}

impl Target {
    /// What its controller is called.
    pub fn name(&self) -> String {
        let part = if self.actions.is_empty() { "" } else { "/actions" };
        format!("{}{}{part}", controllers_of(&self.worker), self.kind)
    }

    /// The objects. No two targets of [`wanted`] have one in common.
    pub fn query(&self) -> Query {
        let text = match &self.actions[..] {
            [] => format!("!{}", names::ACTION),
            actions => format!("{} in ({})", names::ACTION, actions.join(",")),
        };
        // A name that cannot be the value of a label is on no object.
        let labels = LabelSelector::parse(&text).unwrap_or_else(|_| LabelSelector::label(names::ACTION, "-"));
        Query::all(self.kind.clone()).with_labels(labels)
    }
}

/// What the names of all controllers of a worker begin with.
pub fn controllers_of(worker: &str) -> String {
    format!("plugins/{worker}/")
}

/// The controllers that there should be. Whatever two workers claim, the first by name gets: the API
/// refuses the second, but objects can be written without asking it.
pub fn wanted(workers: &[Worker], kinds: &[Arc<Kind>]) -> BTreeSet<Target> {
    let mut workers: Vec<&Worker> = workers.iter().collect();
    workers.sort_by(|a, b| a.name.cmp(&b.name));
    let mut wanted = BTreeSet::new();
    for kind in kinds.iter().filter(|it| is_ours(&it.group_kind.group)) {
        if let Some(owner) = workers.iter().find(|it| it.handles.iter().any(|handle| is_of(handle, kind))) {
            let (worker, kind) = (owner.name.clone(), kind.group_kind.clone());
            wanted.insert(Target { worker, kind, actions: Vec::new() });
        }
        let mut taken = BTreeSet::new();
        for worker in &workers {
            let actions = worker.actions().into_iter().filter(|it| taken.insert(*it)).map(Arc::from);
            let actions: Vec<Arc<str>> = actions.collect();
            if !actions.is_empty() {
                let (worker, kind) = (worker.name.clone(), kind.group_kind.clone());
                wanted.insert(Target { worker, kind, actions });
            }
        }
    }
    wanted
}

fn is_of(handle: &Handle, kind: &Kind) -> bool {
    match handle {
        Handle::Type(name, version) => {
            *name == kind.group_kind.kind && version.as_ref().is_none_or(|it| *it == kind.storage_version)
        }
        Handle::Action(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use concert_model::metadata::NameRule;

    use super::*;

    fn kind(group: &str, name: &str, version: &str) -> Arc<Kind> {
        Arc::new(Kind {
            group_kind: GroupKind::new(group, name),
            storage_version: version.into(),
            versions: vec![version.into()],
            plural: "x".into(),
            is_namespaced: false,
            has_status: true,
            has_generation: true,
            name_rule: NameRule::Subdomain,
            selectable_fields: Vec::new(),
        })
    }

    fn worker(name: &str, handles: &[Handle]) -> Worker {
        let (concurrency, terms) = (1, Default::default());
        Worker { name: name.into(), handles: handles.to_vec(), concurrency, terms }
    }

    fn type_of(name: &str, version: Option<&str>) -> Handle {
        Handle::Type(name.into(), version.map(Arc::from))
    }

    fn names(workers: &[Worker], kinds: &[Arc<Kind>]) -> Vec<String> {
        wanted(workers, kinds).iter().map(Target::name).collect()
    }

    #[test]
    fn a_worker_gets_its_types_in_all_versions_or_in_the_one_it_names() {
        let kinds = [
            kind("no8s.concert.dev", "Dns", "v1"),
            kind("v2.no8s.concert.dev", "Dns", "v2"),
            kind("example.com", "Dns", "v1"),
        ];
        let all = worker("all", &[type_of("Dns", None)]);
        assert_eq!(
            names(&[all], &kinds),
            ["plugins/all/Dns.no8s.concert.dev", "plugins/all/Dns.v2.no8s.concert.dev"]
        );
        let one = worker("one", &[type_of("Dns", Some("v2"))]);
        assert_eq!(names(&[one], &kinds), ["plugins/one/Dns.v2.no8s.concert.dev"]);
        assert!(names(&[worker("none", &[type_of("Other", None)])], &kinds).is_empty());
    }

    #[test]
    fn every_object_has_one_owner() {
        let kinds = [kind("no8s.concert.dev", "Dns", "v1")];
        let actions = [Handle::Action("exec".into()), Handle::Action("http_api".into())];
        let workers = [
            worker("b", &[type_of("Dns", None), Handle::Action("exec".into())]),
            worker("a", &[type_of("Dns", None)]),
            worker("actions", &actions),
        ];
        let targets = wanted(&workers, &kinds);
        for (action, owner) in [(None, "a"), (Some("exec"), "actions"), (Some("http_api"), "actions")] {
            let labels = action.map(|it| (names::ACTION.to_owned(), it.to_owned())).into_iter().collect();
            let owners: Vec<&str> = targets
                .iter()
                .filter(|it| it.query().labels.matches(&labels))
                .map(|it| &*it.worker)
                .collect();
            assert_eq!(owners, [owner], "{action:?}");
        }
    }

    use concert_model::no8s::names;
}
