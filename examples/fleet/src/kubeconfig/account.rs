//! The account that components work with in a cluster, and all it may do.

use serde_json::{Value, json};

use crate::cluster::{
    CLUSTER_ROLE, CLUSTER_ROLE_BINDING, Kind, Place, ROLE, ROLE_BINDING, SERVICE_ACCOUNT, SERVICE_INSTANCE,
};

/// Where components are installed, and nowhere else.
pub const NAMESPACE: &str = "fleet";
pub const ACCOUNT: &str = "fleet-components";

/// Everything, in the order in which it can be made.
pub fn objects() -> Vec<Value> {
    let all = json!(["get", "list", "watch", "create", "update", "patch", "delete"]);
    let own = json!([
        {"apiGroups": [""], "resources": ["configmaps", "services"], "verbs": all},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": all},
    ]);
    let instances = json!([
        {"apiGroups": [SERVICE_INSTANCE.group], "resources": ["serviceinstances"], "verbs": ["get", "list", "watch"]},
    ]);
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        object(SERVICE_ACCOUNT, Some(NAMESPACE), json!({})),
        object(ROLE, Some(NAMESPACE), json!({ "rules": own })),
        object(ROLE_BINDING, Some(NAMESPACE), binding(ROLE)),
        object(CLUSTER_ROLE, None, json!({ "rules": instances })),
        object(CLUSTER_ROLE_BINDING, None, binding(CLUSTER_ROLE)),
    ]
}

/// Where all of it is, in the order in which it can go: first what the account may do. Without the namespace,
/// which may have been there before and hold what others made.
pub fn places() -> Vec<Place> {
    let is_own = |it: &Value| it["metadata"]["name"] == ACCOUNT;
    objects().iter().rev().filter(|it| is_own(it)).filter_map(Place::of).collect()
}

fn object(kind: Kind, namespace: Option<&str>, mut rest: Value) -> Value {
    rest["apiVersion"] = json!(kind.api_version());
    rest["kind"] = json!(kind.kind);
    rest["metadata"] = json!({ "name": ACCOUNT });
    if let Some(namespace) = namespace {
        rest["metadata"]["namespace"] = json!(namespace);
    }
    rest
}

fn binding(role: Kind) -> Value {
    json!({"roleRef": {"apiGroup": role.group, "kind": role.kind, "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": ACCOUNT}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_has_its_place_and_none_gives_away_secrets() {
        for object in objects() {
            assert!(Place::of(&object).is_some(), "{object}");
            let text = object.to_string();
            assert!(!text.contains("secrets") && !text.contains("\"*\""), "{text}");
        }
    }

    #[test]
    fn what_goes_is_all_but_the_namespace_and_rights_go_before_the_account() {
        let kinds: Vec<&str> = places().iter().map(|it| it.kind.kind).collect();
        let expected = ["ClusterRoleBinding", "ClusterRole", "RoleBinding", "Role", "ServiceAccount"];
        assert_eq!(kinds, expected);
    }
}
