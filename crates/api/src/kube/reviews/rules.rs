//! What may I do in this namespace?

use serde_json::{Value, json};

use crate::auth::User;
use crate::error::Error;
use crate::kube::api::Inner;

/// The status of a SelfSubjectRulesReview.
pub(super) async fn status(api: &Inner, user: &User, spec: &Value) -> Result<Value, Error> {
    let Some(namespace) = spec["namespace"].as_str().filter(|namespace| !namespace.is_empty()) else {
        return Err(Error::bad_request("no namespace on request"));
    };
    let rules = api.gate.rules(user, namespace).await.map_err(|refusal| Error::refused(refusal, None))?;
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in rules {
        if !rule.resources.is_empty() {
            let mut one =
                json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
            if !rule.resource_names.is_empty() {
                one["resourceNames"] = json!(rule.resource_names);
            }
            resources.push(one);
        }
        if !rule.non_resource_urls.is_empty() {
            paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}));
        }
    }
    Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
}
