//! Custom roles: rights by resource type, version and operation, as rules of RBAC.
//!
//! A role speaks of types by name, RBAC of kinds by group and plural. Which kinds there are is known
//! only at one moment, so a role is compiled again whenever a type comes or goes.

use std::collections::BTreeMap;

use concert_model::{GroupKind, Object};
use serde_json::Value;

use super::rule::Rule;

const ALL: &str = "*";
/// What the operations are in RBAC's words.
const OPERATIONS: [(&str, &[&str]); 4] = [
    ("CREATE", &["create"]),
    ("READ", &["get", "list", "watch"]),
    ("UPDATE", &["update", "patch"]),
    ("DELETE", &["delete", "deletecollection"]),
];
/// What may be seen of an object besides itself.
const VIEWS: [&str; 3] = ["status", "explain", "history"];
/// System permissions, and the resource of our own group that each lets one see.
const SYSTEM: [(&str, &str); 2] = [("view_webhooks", "admissionwebhooks"), ("view_plugins", "workers")];
const OWN_GROUP: &str = "concert.dev";

/// The kind that custom roles are kept in.
pub fn custom_role_kind() -> GroupKind {
    GroupKind::new(OWN_GROUP, "CustomRole")
}

/// Whether there is such an operation.
pub fn is_operation(text: &str) -> bool {
    OPERATIONS.iter().any(|(name, _)| *name == text)
}

/// Whether there is such a system permission.
pub fn is_system_permission(text: &str) -> bool {
    SYSTEM.iter().any(|(name, _)| *name == text)
}

/// A resource type, and where its objects are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Served {
    /// `DnsRecord`.
    pub name: String,
    /// `v1`.
    pub version: String,
    /// `no8s.concert.dev`.
    pub group: String,
    /// `dnsrecords`.
    pub plural: String,
}

/// What a `CustomRole` object allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomRole {
    system: Vec<String>,
    permissions: Vec<Permission>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Permission {
    name: String,
    version: String,
    operations: Vec<String>,
}

impl CustomRole {
    /// Reads it. What makes no sense allows nothing.
    pub fn read(object: &Object) -> Self {
        let spec = object.spec();
        let permissions = spec.get("permissions").and_then(Value::as_array).into_iter().flatten();
        Self {
            system: texts(spec.get("systemPermissions")),
            permissions: permissions.map(Permission::read).collect(),
        }
    }

    /// What plugin hosts need: to read and to change resources of all types.
    pub fn of_plugin_hosts() -> Self {
        let operations = ["READ", "UPDATE"].map(str::to_owned).to_vec();
        let all = Permission { name: ALL.into(), version: ALL.into(), operations };
        Self { system: Vec::new(), permissions: vec![all] }
    }

    /// What it allows while there are these types.
    pub fn rules(&self, types: &[Served]) -> Vec<Rule> {
        let permissions = self.permissions.iter().flat_map(|permission| permission.rules(types));
        permissions.chain(self.system_rules()).collect()
    }

    /// The most that it can allow, whatever types there will be: what its writer must have.
    pub fn ceiling(&self) -> Vec<Rule> {
        self.permissions.iter().flat_map(Permission::ceiling).chain(self.system_rules()).collect()
    }

    fn system_rules(&self) -> impl Iterator<Item = Rule> {
        let seen = SYSTEM.iter().filter(|(name, _)| self.system.iter().any(|it| it == name));
        seen.map(|(_, resource)| {
            rule(&["get", "list", "watch"], vec![OWN_GROUP.into()], vec![(*resource).into()])
        })
    }
}

impl Permission {
    fn read(value: &Value) -> Self {
        let text =
            |field: &str| value.get(field).map_or(Some(ALL), Value::as_str).unwrap_or_default().to_owned();
        Self {
            name: text("resourceType"),
            version: text("resourceVersion"),
            operations: texts(value.get("operations")),
        }
    }

    fn rules(&self, types: &[Served]) -> Vec<Rule> {
        let is_meant = |it: &&Served| {
            (self.name == ALL || self.name == it.name) && (self.version == ALL || self.version == it.version)
        };
        let mut by_group: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for served in types.iter().filter(is_meant) {
            by_group.entry(&served.group).or_default().push(served.plural.clone());
        }
        let groups = by_group.into_iter();
        groups.flat_map(|(group, plurals)| self.allow(&[group.to_owned()], &plurals)).collect()
    }

    fn ceiling(&self) -> Vec<Rule> {
        // Which group a version gets, and the plural of a kind, depend on what else there is.
        self.allow(&[ALL.to_owned()], &[ALL.to_owned()])
    }

    /// The operations, on these resources.
    fn allow(&self, groups: &[String], plurals: &[String]) -> Vec<Rule> {
        let known = OPERATIONS.iter().filter(|(name, _)| self.operations.iter().any(|it| it == name));
        let rules = known.map(|(name, verbs)| {
            let mut resources = plurals.to_vec();
            if *name == "READ" && plurals != [ALL] {
                resources.extend(plurals.iter().flat_map(|it| VIEWS.map(|view| format!("{it}/{view}"))));
            }
            rule(verbs, groups.to_vec(), resources)
        });
        rules.collect()
    }
}

fn rule(verbs: &[&str], api_groups: Vec<String>, resources: Vec<String>) -> Rule {
    let verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
    Rule { verbs, api_groups, resources, ..Rule::default() }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let all = value.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::auth::Access;

    fn role(spec: Value) -> CustomRole {
        let whole = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "CustomRole", "metadata": {"name": "r"}, "spec": spec});
        CustomRole::read(&Object::from_value(whole).unwrap())
    }

    fn types() -> Vec<Served> {
        let served = |name: &str, version: &str, group: &str| Served {
            name: name.into(),
            version: version.into(),
            group: group.into(),
            plural: format!("{}s", name.to_lowercase()),
        };
        vec![
            served("DnsRecord", "v1", "no8s.concert.dev"),
            served("DnsRecord", "v2", "v2.no8s.concert.dev"),
            served("Cluster", "v1", "no8s.concert.dev"),
        ]
    }

    fn may(role: &CustomRole, verb: &str, resource: &str, group: &str) -> bool {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let access = Access::Resource { verb, group, resource, subresource, namespace: "", name: "a" };
        role.rules(&types()).iter().any(|rule| rule.allows(&access))
    }

    #[test]
    fn a_type_in_one_version_is_just_that() {
        let role = role(json!({"permissions": [
            {"resourceType": "DnsRecord", "resourceVersion": "v1", "operations": ["READ", "CREATE"]}]}));
        let group = "no8s.concert.dev";
        for verb in ["get", "list", "watch", "create"] {
            assert!(may(&role, verb, "dnsrecords", group), "{verb}");
        }
        for verb in ["update", "patch", "delete", "deletecollection", "escalate"] {
            assert!(!may(&role, verb, "dnsrecords", group), "{verb}");
        }
        assert!(may(&role, "get", "dnsrecords/explain", group));
        assert!(!may(&role, "create", "dnsrecords/status", group));
        assert!(!may(&role, "get", "clusters", group));
        assert!(!may(&role, "get", "dnsrecords", "v2.no8s.concert.dev"));
    }

    #[test]
    fn a_star_is_every_type_and_nothing_else() {
        let role = role(json!({"permissions": [{"operations": ["DELETE"]}]}));
        assert!(may(&role, "delete", "clusters", "no8s.concert.dev"));
        assert!(may(&role, "delete", "dnsrecords", "v2.no8s.concert.dev"));
        assert!(!may(&role, "get", "clusters", "no8s.concert.dev"));
        assert!(!may(&role, "delete", "clusterroles", "rbac.authorization.k8s.io"));
        assert!(!may(&role, "delete", "users", "concert.dev"));
        let one = super::tests::role(json!({"permissions": [
            {"resourceType": "*", "resourceVersion": "v1", "operations": ["READ"]}]}));
        assert!(may(&one, "get", "clusters", "no8s.concert.dev"));
        assert!(!may(&one, "get", "dnsrecords", "v2.no8s.concert.dev"));
    }

    #[test]
    fn a_type_that_is_not_there_yet_allows_nothing() {
        let role = role(json!({"permissions": [{"resourceType": "Bucket", "operations": ["READ"]}]}));
        assert_eq!(role.rules(&types()), []);
        assert_eq!(role.ceiling().len(), 1);
    }

    #[test]
    fn system_permissions_let_one_look() {
        let role = role(json!({"systemPermissions": ["view_webhooks", "root"]}));
        assert!(may(&role, "list", "admissionwebhooks", "concert.dev"));
        assert!(!may(&role, "update", "admissionwebhooks", "concert.dev"));
        assert!(!may(&role, "list", "workers", "concert.dev"));
    }

    #[test]
    fn what_cannot_be_read_allows_nothing() {
        let role = role(json!({"permissions": [{"resourceType": 7, "operations": ["READ"]}, 5,
            {"operations": ["ALL"]}, {"operations": "READ"}]}));
        assert_eq!(role.rules(&types()), []);
    }
}
