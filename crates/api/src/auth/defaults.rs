//! The roles and bindings that every store starts with, under the names Kubernetes gives them.

use serde_json::{Value, json};

use super::index::GROUP;
use super::rule::Rule;

/// The label of what was made by us and is kept up to date.
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
/// Set to `false`, it keeps us from touching an object again.
pub(super) const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

/// Rules that allow everything.
pub(super) fn everything() -> Vec<Rule> {
    let all = || vec!["*".to_owned()];
    let objects = Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() };
    let paths = Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() };
    vec![objects, paths]
}

/// Cluster roles, the one that shows that all was made last.
pub(super) fn cluster_roles() -> Vec<Value> {
    let health = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    let mut discovery = vec!["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"];
    discovery.extend(health);
    vec![
        role("system:public-info-viewer", &[], json!([paths(&health)])),
        role("system:discovery", &[], json!([paths(&discovery)])),
        role(
            "system:basic-user",
            &[],
            json!([
                objects(
                    "authorization.k8s.io",
                    &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                    &["create"]
                ),
                objects("authentication.k8s.io", &["selfsubjectreviews"], &["create"]),
                // Of each object in a plan it is asked whether they may read and write that.
                objects("concert.dev", &["plan"], &["create"]),
            ]),
        ),
        role("system:mothership", &[], mothership_rules()),
        role("system:aggregate-to-view", &["view"], view_rules()),
        role("system:aggregate-to-edit", &["edit"], edit_rules()),
        role("system:aggregate-to-admin", &["admin"], admin_rules()),
        aggregating("view", &["edit"]),
        aggregating("edit", &["admin"]),
        aggregating("admin", &[]),
        role("cluster-admin", &[], json!(everything())),
    ]
}

/// Bindings of cluster roles to groups.
pub(super) fn cluster_role_bindings() -> Vec<Value> {
    let known = "system:authenticated";
    vec![
        binding("system:public-info-viewer", &[known, "system:unauthenticated"]),
        binding("system:discovery", &[known]),
        binding("system:basic-user", &[known]),
        binding("cluster-admin", &["system:masters"]),
    ]
}

/// What a mothership needs of an inventory elsewhere. No contents of secret sections: those go to
/// reconcilers, under grants.
fn mothership_rules() -> Value {
    let group = "inventory.concert.dev";
    json!([
        objects(group, &["clusters"], &["get", "list", "watch", "patch", "update"]),
        objects(group, &["clusters/status"], &["get", "patch", "update"]),
        objects(group, &["sections"], &READ),
        objects(group, &["grants"], &["get", "list", "watch", "create", "patch", "update"]),
        objects(group, &["tokens"], &["create"]),
    ])
}

/// No secrets: who reads them can become whoever they are for.
fn view_rules() -> Value {
    json!([
        objects("", &["configmaps", "events", "namespaces", "serviceaccounts"], &READ),
        objects("coordination.k8s.io", &["leases"], &READ),
        objects("events.k8s.io", &["events"], &READ),
    ])
}

fn edit_rules() -> Value {
    let all = [&READ[..], &WRITE[..]].concat();
    json!([
        objects("", &["secrets"], &READ),
        objects("", &["configmaps", "events", "secrets", "serviceaccounts"], &WRITE),
        objects("", &["serviceaccounts"], &["impersonate"]),
        objects("", &["serviceaccounts/token"], &["create"]),
        objects("coordination.k8s.io", &["leases"], &all),
    ])
}

fn admin_rules() -> Value {
    let all = [&READ[..], &WRITE[..]].concat();
    json!([
        objects(GROUP, &["roles", "rolebindings"], &all),
        objects("authorization.k8s.io", &["localsubjectaccessreviews"], &["create"]),
    ])
}

fn objects(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn paths(urls: &[&str]) -> Value {
    json!({"nonResourceURLs": urls, "verbs": ["get"]})
}

fn aggregation(to: &str) -> String {
    format!("{GROUP}/aggregate-to-{to}")
}

fn named(kind: &str, name: &str, part_of: &[&str]) -> Value {
    let mut labels = json!({BOOTSTRAPPING: "rbac-defaults"});
    for to in part_of {
        labels[aggregation(to)] = "true".into();
    }
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": {"name": name, "labels": labels, "annotations": {AUTOUPDATE: "true"}},
    })
}

fn role(name: &str, part_of: &[&str], rules: Value) -> Value {
    let mut role = named("ClusterRole", name, part_of);
    role["rules"] = rules;
    role
}

/// A role whose rules are those of all roles with the label for it: kinds bring their own.
fn aggregating(name: &str, part_of: &[&str]) -> Value {
    let mut role = named("ClusterRole", name, part_of);
    role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {aggregation(name): "true"}}]});
    role["rules"] = json!([]);
    role
}

fn binding(role: &str, groups: &[&str]) -> Value {
    let mut binding = named("ClusterRoleBinding", role, &[]);
    binding["roleRef"] = json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": role});
    let subject = |group: &&str| json!({"apiGroup": GROUP, "kind": "Group", "name": group});
    binding["subjects"] = groups.iter().map(subject).collect();
    binding
}
