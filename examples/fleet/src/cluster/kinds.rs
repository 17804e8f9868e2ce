//! The kinds that are used here, and where their objects are.

use concert_model::Address;
use serde_json::Value;

/// A kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    plural: &'static str,
}

const fn kind(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { group, version, kind, plural }
}

pub const NAMESPACE: Kind = kind("", "v1", "Namespace", "namespaces");
pub const SECRET: Kind = kind("", "v1", "Secret", "secrets");
pub const CONFIG_MAP: Kind = kind("", "v1", "ConfigMap", "configmaps");
pub const SERVICE: Kind = kind("", "v1", "Service", "services");
pub const SERVICE_ACCOUNT: Kind = kind("", "v1", "ServiceAccount", "serviceaccounts");
pub const DEPLOYMENT: Kind = kind("apps", "v1", "Deployment", "deployments");
pub const ROLE: Kind = kind("rbac.authorization.k8s.io", "v1", "Role", "roles");
pub const ROLE_BINDING: Kind = kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings");
pub const CLUSTER_ROLE: Kind = kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles");
pub const CLUSTER_ROLE_BINDING: Kind =
    kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings");
pub const DEFINITION: Kind =
    kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
pub const SHOOT: Kind = kind("core.gardener.cloud", "v1beta1", "Shoot", "shoots");
pub const SERVICE_INSTANCE: Kind =
    kind("services.cloud.sap.com", "v1", "ServiceInstance", "serviceinstances");

const ALL: &[Kind] = &[
    NAMESPACE,
    SECRET,
    CONFIG_MAP,
    SERVICE,
    SERVICE_ACCOUNT,
    DEPLOYMENT,
    ROLE,
    ROLE_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    DEFINITION,
    SHOOT,
    SERVICE_INSTANCE,
];

impl Kind {
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The kind of an object, if it is one of these.
    pub fn of(object: &Value) -> Option<Self> {
        let is_it = |it: &&Self| object["kind"] == it.kind && object["apiVersion"] == it.api_version();
        ALL.iter().find(is_it).copied()
    }

    /// All objects of a namespace, or of the cluster.
    pub fn list(&self, namespace: Option<&str>) -> Address {
        let root = if self.group.is_empty() {
            Address::new("/api").step(self.version)
        } else {
            Address::new("/apis").step(self.group).step(self.version)
        };
        match namespace {
            Some(namespace) => root.step("namespaces").step(namespace).step(self.plural),
            None => root.step(self.plural),
        }
    }
}

/// Where one object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub kind: Kind,
    pub namespace: Option<String>,
    pub name: String,
}

impl Place {
    pub fn new(kind: Kind, namespace: Option<&str>, name: &str) -> Self {
        Self { kind, namespace: namespace.map(str::to_owned), name: name.to_owned() }
    }

    /// Where an object belongs that says so itself.
    pub fn of(object: &Value) -> Option<Self> {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str()?;
        Some(Self::new(Kind::of(object)?, metadata["namespace"].as_str(), name))
    }

    pub fn address(&self) -> Address {
        self.kind.list(self.namespace.as_deref()).step(&self.name)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_says_where_it_belongs() {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "a", "name": "b"}});
        let place = Place::of(&object).unwrap();
        assert_eq!(place.address().as_str(), "/apis/apps/v1/namespaces/a/deployments/b");
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
        assert_eq!(Place::of(&object).unwrap().address().as_str(), "/api/v1/namespaces/a");
        assert_eq!(Place::of(&json!({"apiVersion": "v2", "kind": "Namespace"})), None);
    }
}
