//! One valid object called `a` of each kind that is served.

use serde_json::{Value, json};

use crate::stage::widget;

/// What is sent to paths that nobody here knows.
pub fn sample_of(plural: &str) -> Value {
    let mut sample = match plural {
        "customresourcedefinitions" => definition(),
        "roles" | "clusterroles" => role(plural),
        "rolebindings" | "clusterrolebindings" => binding(plural),
        "secrets" => {
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"key": "dmFsdWU="},
            "stringData": {"other": "value"}})
        }
        "configmaps" => {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"}, "binaryData": {"b": "AA=="}})
        }
        "namespaces" => json!({"apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": []}}),
        "serviceaccounts" => json!({"apiVersion": "v1", "kind": "ServiceAccount", "secrets": []}),
        "events" => event(),
        "plan" => {
            let mut one = widget("a");
            one["metadata"]["namespace"] = json!("default");
            json!({"kind": "List", "items": [one]})
        }
        "token" => {
            json!({"kind": "TokenRequest", "spec": {"audiences": [], "expirationSeconds": 600}})
        }
        "tokens" => {
            json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Token", "metadata": {"name": "0".repeat(32)},
            "spec": {"user": "jo", "groups": [], "sha256": "0".repeat(64), "expiresAt": "2027-01-01T00:00:00Z"}})
        }
        "leases" => {
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "me",
            "leaseDurationSeconds": 15, "acquireTime": "2026-01-01T00:00:00.000000Z", "leaseTransitions": 1}})
        }
        "selfsubjectaccessreviews" => {
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "default"}}})
        }
        "selfsubjectrulesreviews" => {
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": "default"}})
        }
        "selfsubjectreviews" => {
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        }
        _ => widget("a"),
    };
    // Everything that could be broken is there.
    let name = sample["metadata"]["name"].as_str().unwrap_or("a").to_owned();
    sample["metadata"] = json!({"name": name, "labels": {}, "finalizers": [], "resourceVersion": "",
        "ownerReferences": [], "managedFields": []});
    sample["status"] = json!({});
    sample
}

fn definition() -> Value {
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer", "default": 1}},
        "x-kubernetes-validations": [{"rule": "self.size < 10 && !(self.size in [7, 8])", "message": "too large"}]});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced",
            "names": {"kind": "Gear", "plural": "gears", "singular": "gear", "listKind": "GearList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}}]}})
}

fn role(plural: &str) -> Value {
    let kind = if plural == "roles" { "Role" } else { "ClusterRole" };
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]}]})
}

fn binding(plural: &str) -> Value {
    let (kind, role) = match plural {
        "rolebindings" => ("RoleBinding", "Role"),
        _ => ("ClusterRoleBinding", "ClusterRole"),
    };
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": "a"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jo"}]})
}

fn event() -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "type": "Normal", "reason": "Made", "message": "it is there", "count": 1,
        "involvedObject": {"apiVersion": "example.com/v1", "kind": "Widget", "namespace": "default", "name": "a"},
        "source": {"component": "test"}, "lastTimestamp": "2026-01-01T00:00:00Z"})
}
