//! Webhooks: `AdmissionWebhook` objects, and which requests each is asked about.

use std::time::Duration;

use concert_model::no8s::names::ID;
use concert_model::{GroupKind, Object};
use serde_json::Value;

/// The kind that webhooks are kept in.
pub fn webhook_kind() -> GroupKind {
    GroupKind::new("concert.dev", "AdmissionWebhook")
}

pub(crate) const TYPES: [&str; 2] = ["mutating", "validating"];
pub(crate) const OPERATIONS: [&str; 3] = ["CREATE", "UPDATE", "DELETE"];
pub(crate) const POLICIES: [&str; 2] = ["Fail", "Ignore"];
/// Seconds that a webhook may take if it does not say, and at most.
pub(crate) const TIMEOUT_DEFAULT: i64 = 10;
pub(crate) const TIMEOUT_MAX: i64 = 60;

/// What an `AdmissionWebhook` object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    pub id: u64,
    pub name: String,
    /// None for every type.
    pub resource_type: Option<String>,
    /// None for every version.
    pub version: Option<String>,
    pub url: String,
    pub is_mutating: bool,
    pub operations: Vec<String>,
    pub timeout: Duration,
    /// Whether a request is let through if there is no answer.
    pub is_optional: bool,
    pub ordering: i64,
}

impl Webhook {
    /// Reads it.
    pub fn read(object: &Object) -> Self {
        let spec = object.spec();
        let text = |field: &str| {
            let text = spec.get(field).and_then(Value::as_str).filter(|it| !it.is_empty());
            text.map(str::to_owned)
        };
        let number = |field: &str| spec.get(field).and_then(Value::as_i64);
        let operations = spec.get("operations").and_then(Value::as_array).into_iter().flatten();
        let seconds = number("timeoutSeconds").unwrap_or(TIMEOUT_DEFAULT).clamp(1, TIMEOUT_MAX);
        Self {
            id: object.labels().get(ID).and_then(|id| id.parse().ok()).unwrap_or(0),
            name: text("name").unwrap_or_else(|| object.name().to_owned()),
            resource_type: text("resourceType"),
            version: text("resourceVersion"),
            url: text("url").unwrap_or_default(),
            is_mutating: text("type").as_deref() == Some("mutating"),
            operations: operations.filter_map(|it| it.as_str().map(str::to_owned)).collect(),
            timeout: Duration::from_secs(seconds.unsigned_abs()),
            is_optional: text("failurePolicy").as_deref() == Some("Ignore"),
            ordering: number("ordering").unwrap_or(0),
        }
    }

    /// Whether it is asked about this.
    pub fn concerns(&self, operation: &str, resource_type: &str, version: &str) -> bool {
        let is = |wanted: &Option<String>, held: &str| wanted.as_ref().is_none_or(|wanted| wanted == held);
        is(&self.resource_type, resource_type)
            && is(&self.version, version)
            && self.operations.iter().any(|it| it == operation)
    }

    /// First all that change something, then all that only look; each by its number, then by its age.
    pub fn rank(&self) -> (bool, i64, u64) {
        (!self.is_mutating, self.ordering, self.id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn webhook(spec: Value) -> Webhook {
        let whole = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "AdmissionWebhook",
            "metadata": {"name": "w", "labels": {ID: "7"}}, "spec": spec});
        Webhook::read(&Object::from_value(whole).unwrap())
    }

    #[test]
    fn what_is_null_matches_everything() {
        let all = webhook(json!({"operations": ["CREATE"]}));
        assert!(all.concerns("CREATE", "DnsRecord", "v1"));
        assert!(!all.concerns("DELETE", "DnsRecord", "v1"));
        let one =
            webhook(json!({"operations": ["CREATE"], "resourceType": "DnsRecord", "resourceVersion": "v1"}));
        assert!(one.concerns("CREATE", "DnsRecord", "v1"));
        assert!(!one.concerns("CREATE", "DnsRecord", "v2"));
        assert!(!one.concerns("CREATE", "Cluster", "v1"));
    }

    #[test]
    fn those_that_change_come_first() {
        let rank = |kind: &str, ordering: i64| webhook(json!({"type": kind, "ordering": ordering})).rank();
        let mut ranks =
            [rank("validating", -5), rank("mutating", 2), rank("mutating", 1), rank("validating", 0)];
        ranks.sort_unstable();
        assert_eq!(
            ranks,
            [rank("mutating", 1), rank("mutating", 2), rank("validating", -5), rank("validating", 0)]
        );
    }
}
