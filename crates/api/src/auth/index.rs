//! All roles and bindings at one moment, by whom they are for.
//!
//! A plain data structure: it decides, and says which objects its answer rests on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use concert_model::{
    Encoded, FieldPath, LabelSelector, Labels, Object, ObjectKey, ResourceVersion, Revision,
};
use serde_json::Value;

use super::rule::Rule;
use super::user::account_name;
use super::{Access, User};

pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// An object that an answer rests on, in the state it was seen in.
pub(super) type Witness = (ObjectKey, ResourceVersion);

/// Roles and bindings as they were at `position` or a little later.
#[derive(Default)]
pub(super) struct Index {
    pub(super) position: Revision,
    /// By namespace and name; the namespace of cluster roles is empty.
    roles: HashMap<(Arc<str>, Arc<str>), Role>,
    bindings: Vec<Binding>,
    /// Places in `bindings`.
    by_subject: HashMap<Subject, Vec<usize>>,
}

struct Role {
    witness: Witness,
    labels: Labels,
    rules: Vec<Rule>,
    /// Set on roles whose rules are those of others.
    selectors: Option<Vec<LabelSelector>>,
    /// The cluster roles that an aggregating one takes its rules from, those of others in between included.
    sources: Vec<Arc<str>>,
}

struct Binding {
    witness: Witness,
    /// Where it holds; everywhere if empty.
    namespace: Arc<str>,
    /// Namespace and name of the role.
    role: (Arc<str>, Arc<str>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Subject {
    User(String),
    Group(String),
}

impl Index {
    /// Reads what the four lists hold. What makes no sense grants nothing.
    pub(super) fn build(position: Revision, objects: impl IntoIterator<Item = Encoded>) -> Self {
        let mut index = Self { position, ..Self::default() };
        for encoded in objects {
            let witness = (encoded.key().clone(), encoded.resource_version().clone());
            let object = encoded.decode();
            match &*encoded.key().kind.kind {
                "Role" | "ClusterRole" => index.add_role(witness, &object),
                _ => index.add_binding(witness, &object),
            }
        }
        index.aggregate();
        index
    }

    fn add_role(&mut self, witness: Witness, object: &Object) {
        let key = &witness.0;
        let rules = Rule::read_all(object.get("rules")).unwrap_or_else(|error| {
            tracing::warn!(role = %key, %error, "role grants nothing: its rules cannot be read");
            Vec::new()
        });
        let selectors = object.get("aggregationRule").get("clusterRoleSelectors").and_then(Value::as_array);
        let selectors = selectors.filter(|_| key.namespace.is_empty()).map(|selectors| {
            let path = FieldPath::new("aggregationRule").child("clusterRoleSelectors");
            selectors.iter().filter_map(|it| LabelSelector::from_json(&path, it).ok()).collect()
        });
        let place = (key.namespace.clone(), key.name.clone());
        let labels = object.labels();
        self.roles.insert(place, Role { witness, labels, rules, selectors, sources: Vec::new() });
    }

    fn add_binding(&mut self, witness: Witness, object: &Object) {
        let namespace = witness.0.namespace.clone();
        let Some(role) = role_place(object.get("roleRef"), &namespace) else {
            tracing::warn!(binding = %witness.0, "binding grants nothing: its roleRef names no role");
            return;
        };
        let place = self.bindings.len();
        for subject in object.get("subjects").as_array().into_iter().flatten() {
            if let Some(subject) = Subject::read(subject, &namespace) {
                self.by_subject.entry(subject).or_default().push(place);
            }
        }
        self.bindings.push(Binding { witness, namespace, role });
    }

    /// Follows the selectors of aggregating roles, through others that aggregate in turn.
    fn aggregate(&mut self) {
        let cluster: BTreeMap<&Arc<str>, &Role> = self
            .roles
            .iter()
            .filter(|((n, _), _)| n.is_empty())
            .map(|((_, name), role)| (name, role))
            .collect();
        let selected = |role: &Role| -> Vec<Arc<str>> {
            let Some(selectors) = &role.selectors else { return Vec::new() };
            let is_selected = |it: &Role| selectors.iter().any(|selector| selector.matches(&it.labels));
            cluster.iter().filter(|(_, it)| is_selected(it)).map(|(name, _)| (*name).clone()).collect()
        };
        let next: BTreeMap<Arc<str>, Vec<Arc<str>>> = cluster
            .iter()
            .filter(|(_, role)| role.selectors.is_some())
            .map(|(name, role)| ((*name).clone(), selected(role)))
            .collect();
        for name in next.keys() {
            let (mut seen, mut todo) = (BTreeSet::from([name.clone()]), next[name].clone());
            let mut sources = Vec::new();
            while let Some(source) = todo.pop() {
                if !seen.insert(source.clone()) {
                    continue;
                }
                todo.extend(next.get(&source).into_iter().flatten().cloned());
                sources.push(source);
            }
            if let Some(role) = self.roles.get_mut(&("".into(), name.clone())) {
                role.sources = sources;
            }
        }
    }

    /// The objects that together let `user` do `access`; none if nothing does.
    pub(super) fn grant(&self, user: &User, access: &Access<'_>) -> Option<Vec<Witness>> {
        self.bindings_of(user, access.namespace()).find_map(|binding| {
            let role = self.roles.get(&binding.role)?;
            let source = self.parts(role).find(|part| part.rules.iter().any(|rule| rule.allows(access)))?;
            let mut witnesses = vec![binding.witness.clone(), role.witness.clone()];
            if source.witness != role.witness {
                witnesses.push(source.witness.clone());
            }
            Some(witnesses)
        })
    }

    /// All that `user` may do in `namespace`, or in the cluster as a whole if it is empty.
    pub(super) fn rules(&self, user: &User, namespace: &str) -> Vec<Rule> {
        let mut places: Vec<_> = self.bindings_of(user, namespace).map(|binding| &binding.role).collect();
        places.sort_unstable();
        places.dedup();
        let roles = places.into_iter().filter_map(|place| self.roles.get(place));
        roles.flat_map(|role| self.parts(role)).flat_map(|part| part.rules.iter().cloned()).collect()
    }

    /// The rules of one role; none if there is no such role.
    pub(super) fn rules_of(&self, namespace: &str, name: &str) -> Option<Vec<Rule>> {
        let role = self.roles.get(&(namespace.into(), name.into()))?;
        Some(self.parts(role).flat_map(|part| part.rules.iter().cloned()).collect())
    }

    fn bindings_of(&self, user: &User, namespace: &str) -> impl Iterator<Item = &Binding> {
        let groups = user.groups.iter().map(|group| Subject::Group(group.to_string()));
        let subjects = std::iter::once(Subject::User(user.name.to_string())).chain(groups);
        subjects
            .filter_map(|subject| self.by_subject.get(&subject))
            .flatten()
            .map(|place| &self.bindings[*place])
            .filter(move |it| it.namespace.is_empty() || *it.namespace == *namespace)
    }

    /// The roles whose own rules `role` has.
    fn parts<'a>(&'a self, role: &'a Role) -> impl Iterator<Item = &'a Role> {
        let own = role.selectors.is_none().then_some(role);
        let sources = role.sources.iter().filter_map(|name| self.roles.get(&("".into(), name.clone())));
        // What an aggregating role says itself does not count, nor does that of those in between.
        own.into_iter().chain(sources.filter(|it| it.selectors.is_none()))
    }
}

/// Namespace and name of the role that a binding in `namespace` refers to.
pub(super) fn role_place(reference: &Value, namespace: &Arc<str>) -> Option<(Arc<str>, Arc<str>)> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    if !matches!(text("apiGroup"), "" | GROUP) || text("name").is_empty() {
        return None;
    }
    match text("kind") {
        "ClusterRole" => Some(("".into(), text("name").into())),
        "Role" if !namespace.is_empty() => Some((namespace.clone(), text("name").into())),
        _ => None,
    }
}

impl Subject {
    fn read(value: &Value, namespace: &str) -> Option<Self> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let (group, name) = (text("apiGroup"), text("name"));
        match text("kind") {
            _ if name.is_empty() => None,
            "User" if matches!(group, "" | GROUP) => Some(Self::User(name.to_owned())),
            "Group" if matches!(group, "" | GROUP) => Some(Self::Group(name.to_owned())),
            "ServiceAccount" if group.is_empty() => {
                let namespace = Some(text("namespace")).filter(|it| !it.is_empty()).unwrap_or(namespace);
                (!namespace.is_empty()).then(|| Self::User(account_name(namespace, name)))
            }
            _ => None,
        }
    }
}
