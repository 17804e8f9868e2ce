//! What somebody wants to do.

use super::User;

/// One thing to be allowed or not, as the RBAC kinds speak of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access<'a> {
    /// Something with objects of a kind.
    Resource {
        /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, and further
        /// ones such as `escalate`, `bind` and `impersonate`.
        verb: &'a str,
        /// The API group; empty for the core.
        group: &'a str,
        /// The plural.
        resource: &'a str,
        /// `status`; empty for the object itself.
        subresource: &'a str,
        /// Empty for cluster-scoped objects and for all namespaces.
        namespace: &'a str,
        /// Empty where no single object is meant.
        name: &'a str,
    },
    /// Something with a path that is no object, such as `/version`.
    Path {
        /// The HTTP method, in lower case.
        verb: &'a str,
        /// Without the query.
        path: &'a str,
    },
}

impl Access<'_> {
    /// The namespace whose bindings count; empty if only those of the cluster do.
    pub(super) fn namespace(&self) -> &str {
        match self {
            Access::Resource { namespace, .. } => namespace,
            Access::Path { .. } => "",
        }
    }

    /// The sentence that Kubernetes answers with when `user` may not.
    pub fn refusal(&self, user: &User) -> String {
        let user = &*user.name;
        let text = match self {
            Access::Path { verb, path } => format!("forbidden: User {user:?} cannot {verb} path {path:?}"),
            Access::Resource { verb, group, resource, subresource, namespace, name } => {
                let part = if subresource.is_empty() { "" } else { "/" };
                let place = match *namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                let whole = format!("{resource}{part}{subresource}");
                let what = subject(group, resource, name);
                format!(
                    "{what} is forbidden: User {user:?} cannot {verb} resource {whole:?} in API group {group:?} {place}"
                )
            }
        };
        // Some clients show this to people as HTML.
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    }
}

/// `buckets.cloud.concert.dev "a"`.
pub(super) fn subject(group: &str, resource: &str, name: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    match name {
        "" => format!("{resource}{dot}{group}"),
        name => format!("{resource}{dot}{group} {name:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusals_of_kubernetes() {
        let user = User::known("x", []);
        let get = Access::Resource {
            verb: "get",
            group: "cloud.concert.dev",
            resource: "buckets",
            subresource: "",
            namespace: "default",
            name: "a",
        };
        assert_eq!(
            get.refusal(&user),
            r#"buckets.cloud.concert.dev "a" is forbidden: User "x" cannot get resource "buckets" in API group "cloud.concert.dev" in the namespace "default""#
        );
        let list = Access::Resource {
            verb: "list",
            group: "",
            resource: "secrets",
            subresource: "status",
            namespace: "",
            name: "",
        };
        assert_eq!(
            list.refusal(&user),
            r#"secrets is forbidden: User "x" cannot list resource "secrets/status" in API group "" at the cluster scope"#
        );
        let path = Access::Path { verb: "get", path: "/metrics" };
        assert_eq!(path.refusal(&user), r#"forbidden: User "x" cannot get path "/metrics""#);
        let odd = User::known("<b>\n&", []);
        assert_eq!(path.refusal(&odd), r#"forbidden: User "&lt;b&gt;\n&amp;" cannot get path "/metrics""#);
    }
}
