//! Management policies: which of the verbs a user allows.

use std::collections::BTreeSet;

use concert_model::Object;
use concert_provider::Action;
use serde_json::Value;

use Action::{All, Create, Delete, LateInitialize, Observe, Update};

/// The sets that make sense, as Crossplane has them. A provider may bring a list of its own.
const SUPPORTED: [&[Action]; 15] = [
    &[All],
    &[Observe, Create, Update, LateInitialize, Delete],
    &[Observe],
    &[],
    &[Observe, Create, Update, Delete],
    &[Observe, Create, Update, LateInitialize],
    &[Observe, Create, Update],
    &[Observe, Create, Delete, LateInitialize],
    &[Observe, Create, LateInitialize],
    &[Observe, Create, Delete],
    &[Observe, Create],
    &[Observe, Delete],
    &[Observe, Update],
    &[Observe, LateInitialize],
    &[Observe, Update, LateInitialize],
];

/// What may be done to the external thing of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    actions: BTreeSet<Action>,
    is_enabled: bool,
    /// Only cluster-scoped objects have one.
    deletion: Option<Deletion>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deletion {
    Delete,
    Orphan,
}

/// A set of policies that is not supported, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(pub String);

impl Policy {
    /// The policy of an object. An absent list means everything; so does a feature that is off, as
    /// long as nothing else is asked for.
    ///
    /// # Errors
    /// The set is not one of `supported`, or none of the standard ones if there is no such list.
    pub fn of(
        object: &Object,
        is_enabled: bool,
        supported: Option<&[Vec<Action>]>,
    ) -> Result<Self, PolicyError> {
        let listed = object.spec().get("managementPolicies").filter(|it| !it.is_null());
        let names: Vec<&str> = match listed {
            None => vec!["*"],
            Some(list) => list.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
        };
        let unsupported = || {
            PolicyError(format!(
                "`spec.managementPolicies` is set to a value([{}]) which is not supported. Check docs for supported policies",
                names.join(" ")
            ))
        };
        let actions: Option<BTreeSet<Action>> = names.iter().map(|name| action(name)).collect();
        let actions = actions.ok_or_else(unsupported)?;
        let is_namespaced = !object.namespace().is_empty();
        let deletion = match object.spec().get("deletionPolicy").and_then(Value::as_str) {
            // Of these only the management policies tell.
            _ if is_namespaced => None,
            Some("Orphan") => Some(Deletion::Orphan),
            _ => Some(Deletion::Delete),
        };
        let policy = Self { actions, is_enabled, deletion };
        if !is_enabled {
            let is_plain = policy.actions.is_empty() || policy.actions == BTreeSet::from([All]);
            return if is_plain {
                Ok(policy)
            } else {
                Err(PolicyError(format!(
                    "`spec.managementPolicies` is set to a non-default value([{}]) but the feature is not enabled",
                    names.join(" ")
                )))
            };
        }
        let is_one_of = |set: &[Action]| policy.actions == set.iter().copied().collect();
        let is_supported = match supported {
            Some(sets) => sets.iter().any(|set| is_one_of(set)),
            None => SUPPORTED.iter().any(|set| is_one_of(set)),
        };
        if is_supported { Ok(policy) } else { Err(unsupported()) }
    }

    /// The same, but the external thing goes with its object, or stays.
    pub fn deleting(mut self, deletes: bool) -> Self {
        self.deletion = Some(if deletes { Deletion::Delete } else { Deletion::Orphan });
        self
    }

    /// Whether an action is allowed.
    pub fn allows(&self, action: Action) -> bool {
        !self.is_enabled || self.actions.contains(&All) || self.actions.contains(&action)
    }

    /// Whether the external thing may only be looked at.
    pub fn is_observe_only(&self) -> bool {
        self.is_enabled && self.actions == BTreeSet::from([Observe])
    }

    /// Whether nothing at all may be done.
    pub fn is_paused(&self) -> bool {
        self.is_enabled && self.actions.is_empty()
    }

    /// Whether the external thing goes with its object.
    pub fn deletes(&self) -> bool {
        let is_orphaned = self.deletion == Some(Deletion::Orphan);
        if !self.is_enabled {
            return !is_orphaned;
        }
        // A list that names Delete outright is younger than deletionPolicy, and wins.
        self.actions.contains(&Delete) || (self.actions.contains(&All) && !is_orphaned)
    }
}

fn action(name: &str) -> Option<Action> {
    Some(match name {
        "*" => All,
        "Observe" => Observe,
        "Create" => Create,
        "Update" => Update,
        "Delete" => Delete,
        "LateInitialize" => LateInitialize,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(namespace: &str, spec: Value) -> Object {
        let mut object = Object::from_value(json!({"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": "a"}, "spec": spec}))
        .unwrap();
        if !namespace.is_empty() {
            object.set_metadata("namespace", json!(namespace));
        }
        object
    }

    fn policy(spec: Value) -> Result<Policy, PolicyError> {
        Policy::of(&object("", spec), true, None)
    }

    #[test]
    fn an_absent_list_means_everything() {
        let policy = policy(json!({})).unwrap();
        assert!(policy.allows(Create) && policy.allows(LateInitialize) && policy.deletes());
        assert!(!policy.is_paused() && !policy.is_observe_only());
    }

    #[test]
    fn only_sets_that_make_sense_are_taken() {
        for set in SUPPORTED {
            let names: Vec<&str> = set.iter().map(|it| name(*it)).collect();
            assert!(policy(json!({"managementPolicies": names})).is_ok(), "{names:?}");
        }
        let error = policy(json!({"managementPolicies": ["Create", "Delete"]})).unwrap_err();
        assert_eq!(
            error.0,
            "`spec.managementPolicies` is set to a value([Create Delete]) which is not supported. Check docs for supported policies"
        );
        assert!(policy(json!({"managementPolicies": ["Everything"]})).is_err());
    }

    #[test]
    fn a_provider_may_bring_its_own_list() {
        let object = object("", json!({"managementPolicies": ["Observe"]}));
        assert!(Policy::of(&object, true, Some(&[vec![All]])).is_err());
    }

    #[test]
    fn without_the_feature_everything_is_allowed_and_nothing_else_can_be_asked_for() {
        let of = |spec| Policy::of(&object("", spec), false, None);
        let empty = of(json!({"managementPolicies": []})).unwrap();
        assert!(!empty.is_paused() && empty.allows(Create));
        assert!(of(json!({"managementPolicies": ["Observe"]})).unwrap_err().0.contains("not enabled"));
    }

    #[test]
    fn who_deletes_the_external_thing() {
        for (enabled, deletion, policies, expected) in [
            (false, "Orphan", json!(["*"]), false),
            (false, "Delete", json!(["*"]), true),
            (true, "Delete", json!(["*"]), true),
            (true, "Delete", json!(["Observe", "Delete"]), true),
            (true, "Orphan", json!(["Observe", "Delete"]), true),
            (true, "Orphan", json!(["*"]), false),
            (true, "Delete", json!(["Observe", "Create"]), false),
        ] {
            let spec = json!({"deletionPolicy": deletion, "managementPolicies": policies});
            let policy = Policy::of(&object("", spec.clone()), enabled, None).unwrap();
            assert_eq!(policy.deletes(), expected, "{spec}");
        }
        let namespaced = |spec| Policy::of(&object("default", spec), true, None).unwrap();
        assert!(!namespaced(json!({"managementPolicies": ["Observe"]})).deletes());
        assert!(namespaced(json!({"deletionPolicy": "Orphan"})).deletes());
    }

    fn name(action: Action) -> &'static str {
        match action {
            All => "*",
            Observe => "Observe",
            Create => "Create",
            Update => "Update",
            Delete => "Delete",
            LateInitialize => "LateInitialize",
        }
    }
}
