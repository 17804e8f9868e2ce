//! All routes of this door, in one table: what the description is made of, and what answers a method
//! that a path does not have.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Who may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Everybody.
    Public,
    /// Everybody who is known.
    Known,
    /// Administrators.
    Admin,
    /// Those whose role says so.
    Permitted(&'static str),
}

/// One route.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) who: Who,
    pub(crate) summary: &'static str,
    /// The schema of the body; empty for none.
    pub(crate) body: &'static str,
    /// The code of success, and the schema of its answer; `[X]` is a list of X.
    pub(crate) answer: (u16, &'static str),
    /// Codes of refusals, besides 401 and 422.
    pub(crate) refusals: &'static [u16],
    /// Parameters of the query.
    pub(crate) query: &'static [&'static str],
}

#[expect(clippy::too_many_arguments, reason = "a row of a table")]
const fn route(
    method: &'static str,
    path: &'static str,
    who: Who,
    summary: &'static str,
    body: &'static str,
    answer: (u16, &'static str),
    refusals: &'static [u16],
    query: &'static [&'static str],
) -> Route {
    Route { method, path, who, summary, body, answer, refusals, query }
}

use Who::{Admin, Known, Permitted, Public};

const READ: Who = Permitted("READ");
const UPDATE: Who = Permitted("UPDATE");

/// The table.
#[rustfmt::skip]
pub(crate) const ROUTES: &[Route] = &[
    route("POST", "/api/v1/auth/login", Public, "Log in", "Login", (200, "Token"), &[503], &[]),
    route("GET", "/api/v1/auth/me", Known, "Who I am", "", (200, "User"), &[404], &[]),
    route("PUT", "/api/v1/auth/password", Known, "Change my password", "Password", (204, ""), &[], &[]),
    route("POST", "/api/v1/users", Admin, "Create a user", "UserCreate", (201, "User"), &[403, 409], &[]),
    route("GET", "/api/v1/users", Admin, "List users", "", (200, "[User]"), &[403], &["source", "is_admin", "status", "limit", "offset"]),
    route("GET", "/api/v1/users/{user_id}", Admin, "Read a user", "", (200, "User"), &[403, 404], &[]),
    route("PUT", "/api/v1/users/{user_id}", Admin, "Change a user", "UserUpdate", (200, "User"), &[403, 404, 409, 412], &[]),
    route("PUT", "/api/v1/users/{user_id}/password", Admin, "Set a user's password", "Password", (204, ""), &[403, 404], &[]),
    route("DELETE", "/api/v1/users/{user_id}", Admin, "Suspend a user", "", (204, ""), &[403, 404, 409, 412], &[]),
    route("POST", "/api/v1/users/ldap-sync", Admin, "Take users over from LDAP", "", (200, "Any"), &[403, 503], &[]),
    route("POST", "/api/v1/custom-roles", Admin, "Create a role", "RoleCreate", (201, "Role"), &[403, 409], &[]),
    route("GET", "/api/v1/custom-roles", Admin, "List roles", "", (200, "[Role]"), &[403], &["limit", "offset"]),
    route("GET", "/api/v1/custom-roles/{role_id}", Admin, "Read a role", "", (200, "Role"), &[403, 404], &[]),
    route("PUT", "/api/v1/custom-roles/{role_id}", Admin, "Change a role", "RoleUpdate", (200, "Role"), &[403, 404, 409, 412], &[]),
    route("DELETE", "/api/v1/custom-roles/{role_id}", Admin, "Delete a role", "", (204, ""), &[403, 404, 409, 412], &[]),
    route("POST", "/api/v1/custom-roles/{role_id}/permissions", Admin, "Add a permission", "Permission", (201, "Permission"), &[403, 404, 409], &[]),
    route("PUT", "/api/v1/custom-roles/{role_id}/permissions/{permission_id}", Admin, "Change a permission", "Permission", (200, "Permission"), &[403, 404], &[]),
    route("DELETE", "/api/v1/custom-roles/{role_id}/permissions/{permission_id}", Admin, "Remove a permission", "", (204, ""), &[403, 404], &[]),
    route("POST", "/api/v1/resource-types", Admin, "Create a resource type", "ResourceTypeCreate", (201, "ResourceType"), &[403, 409], &[]),
    route("GET", "/api/v1/resource-types", Known, "List resource types", "", (200, "[ResourceType]"), &[], &["name", "status", "limit", "offset"]),
    route("GET", "/api/v1/resource-types/{resource_type_id}", Known, "Read a resource type", "", (200, "ResourceType"), &[404], &[]),
    route("GET", "/api/v1/resource-types/{name}/{version}", Known, "Read a resource type by name and version", "", (200, "ResourceType"), &[404], &[]),
    route("PUT", "/api/v1/resource-types/{resource_type_id}", Admin, "Change a resource type", "ResourceTypeUpdate", (200, "ResourceType"), &[403, 404, 409, 412], &[]),
    route("DELETE", "/api/v1/resource-types/{resource_type_id}", Admin, "Delete a resource type", "", (204, ""), &[403, 404, 409, 412], &[]),
    route("POST", "/api/v1/resources", Permitted("CREATE"), "Create a resource", "ResourceCreate", (201, "Resource"), &[400, 403, 409], &[]),
    route("GET", "/api/v1/resources", READ, "List resources, newest first", "", (200, "[Resource]"), &[], &["status", "action_plugin", "resource_type_name", "resource_type_version", "label", "limit", "offset", "continue"]),
    route("GET", "/api/v1/resources/{resource_id}", READ, "Read a resource", "", (200, "Resource"), &[403, 404], &[]),
    route("GET", "/api/v1/resources/by-name/{resource_type_name}/{resource_type_version}/{name}", READ, "Read a resource by name", "", (200, "Resource"), &[403, 404], &[]),
    route("PUT", "/api/v1/resources/{resource_id}", UPDATE, "Change a resource", "ResourceUpdate", (200, "Resource"), &[400, 403, 404, 409, 412], &[]),
    route("DELETE", "/api/v1/resources/{resource_id}", Permitted("DELETE"), "Ask for a resource to go", "", (202, "Accepted"), &[403, 404, 412], &[]),
    route("PUT", "/api/v1/resources/{resource_id}/finalizers", UPDATE, "Add and remove finalizers", "Finalizers", (200, "Resource"), &[403, 404, 409, 412], &[]),
    route("POST", "/api/v1/resources/{resource_id}/reconcile", UPDATE, "Ask for a run now or after a while", "Delay", (202, "Accepted"), &[403, 404, 409, 412], &[]),
    route("GET", "/api/v1/resources/{resource_id}/history", READ, "What was tried, also of resources that are gone", "", (200, "[Attempt]"), &[403, 404], &["limit"]),
    route("GET", "/api/v1/resources/{resource_id}/outputs", READ, "What reconciling brought forth", "", (200, "Outputs"), &[403, 404], &[]),
    route("PUT", "/api/v1/resources/{resource_id}/outputs", UPDATE, "Set the outputs", "OutputsWrite", (200, "Resource"), &[403, 404, 409, 412], &[]),
    route("PUT", "/api/v1/resources/{resource_id}/status", UPDATE, "Set the status", "StatusWrite", (200, "Resource"), &[403, 404, 409, 412], &[]),
    route("PUT", "/api/v1/resources/{resource_id}/conditions/{condition_type}", UPDATE, "Set a condition", "ConditionWrite", (200, "Resource"), &[403, 404, 409, 412], &[]),
    route("GET", "/api/v1/resources/{resource_id}/events", READ, "Changes of one resource, as they happen", "", (200, "Stream"), &[403, 404, 410], &[]),
    route("GET", "/api/v1/events", READ, "Changes of all resources, as they happen", "", (200, "Stream"), &[410], &["resource_type"]),
    route("GET", "/api/v1/plugins/actions", Permitted("view_plugins"), "Action plugins", "", (200, "[Plugin]"), &[403], &[]),
    route("GET", "/api/v1/plugins/inputs", Permitted("view_plugins"), "Input plugins", "", (200, "[Plugin]"), &[403], &[]),
    route("GET", "/api/v1/plugins/reconcilers", Permitted("view_plugins"), "Reconciler plugins", "", (200, "[Reconciler]"), &[403], &[]),
    route("POST", "/api/v1/admission-webhooks", Admin, "Create a webhook", "WebhookCreate", (201, "Webhook"), &[403, 409], &[]),
    route("GET", "/api/v1/admission-webhooks", Permitted("view_webhooks"), "List webhooks", "", (200, "[Webhook]"), &[403], &["resource_type_name", "resource_type_version", "webhook_type", "limit", "offset"]),
    route("GET", "/api/v1/admission-webhooks/{webhook_id}", Permitted("view_webhooks"), "Read a webhook", "", (200, "Webhook"), &[403, 404], &[]),
    route("PUT", "/api/v1/admission-webhooks/{webhook_id}", Admin, "Change a webhook", "WebhookUpdate", (200, "Webhook"), &[403, 404, 409, 412], &[]),
    route("DELETE", "/api/v1/admission-webhooks/{webhook_id}", Admin, "Delete a webhook", "", (204, ""), &[403, 404, 409, 412], &[]),
    route("POST", "/api/v1/workers", Permitted("workers"), "Register a worker", "WorkerCreate", (201, "Worker"), &[403, 409], &[]),
    route("GET", "/api/v1/workers", Permitted("view_plugins"), "List workers", "", (200, "[Worker]"), &[403], &[]),
    route("GET", "/api/v1/workers/{name}", Permitted("view_plugins"), "Read a worker", "", (200, "Worker"), &[403, 404], &[]),
    route("POST", "/api/v1/workers/{name}/claim", Permitted("workers"), "Wait for items and claim them", "WorkerClaim", (200, "WorkerItems"), &[403, 404], &[]),
    route("POST", "/api/v1/workers/{name}/heartbeat", Permitted("workers"), "Keep leases", "WorkerHeartbeat", (200, "WorkerLeases"), &[403, 404], &[]),
    route("POST", "/api/v1/workers/{name}/writes", Permitted("workers"), "Write under leases", "WorkerWrites", (200, "WorkerAnswers"), &[403, 404], &[]),
    route("POST", "/api/v1/workers/{name}/results", Permitted("workers"), "Report results", "WorkerResults", (200, "WorkerAnswers"), &[403, 404], &[]),
    route("DELETE", "/api/v1/workers/{name}", Permitted("workers"), "Give its types free", "", (204, ""), &[403, 404], &[]),
    route("GET", "/api/v1/cluster/health", Public, "Whether the store answers", "", (200, "Health"), &[503], &[]),
    route("GET", "/api/v1/cluster/nodes", Admin, "The processes of this server", "", (200, "Nodes"), &[403], &[]),
    route("GET", "/health", Public, "Whether the store answers", "", (200, "Health"), &[503], &[]),
];

/// The methods of a path, as `Allow` has them; none for a path that no route has.
pub(crate) fn methods(path: &[&str]) -> Option<&'static str> {
    static ALLOWED: OnceLock<BTreeMap<&'static str, String>> = OnceLock::new();
    let allowed = ALLOWED.get_or_init(|| {
        let mut allowed: BTreeMap<&'static str, Vec<&'static str>> = BTreeMap::new();
        for route in ROUTES {
            allowed.entry(route.path).or_default().push(route.method);
        }
        allowed.into_iter().map(|(path, methods)| (path, methods.join(", "))).collect()
    });
    let found = allowed.iter().find(|(template, _)| is_path(template, path));
    found.map(|(_, methods)| methods.as_str())
}

fn is_path(template: &str, path: &[&str]) -> bool {
    let Some(template) = template.strip_prefix("/api/v1/") else { return false };
    template.split('/').count() == path.len()
        && template.split('/').zip(path).all(|(part, given)| part.starts_with('{') || part == *given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_can_be_done_there() {
        assert_eq!(methods(&["resources"]), Some("POST, GET"));
        assert_eq!(methods(&["resources", "7"]), Some("GET, PUT, DELETE"));
        assert_eq!(methods(&["resources", "7", "outputs"]), Some("GET, PUT"));
        assert_eq!(methods(&["resources", "7", "none"]), None);
        assert_eq!(methods(&["plugins"]), None);
    }

    #[test]
    fn no_route_is_there_twice() {
        let mut all: Vec<_> = ROUTES.iter().map(|route| (route.method, route.path)).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
