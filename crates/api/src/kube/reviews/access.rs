//! May I do this?

use concert_model::{FieldError, FieldPath, GroupKind};
use serde_json::{Value, json};

use crate::auth::{Access, Refusal, User};
use crate::error::{Error, Naming};
use crate::kube::api::Inner;

/// The status of a SelfSubjectAccessReview.
pub(super) async fn status(api: &Inner, user: &User, spec: &Value) -> Result<Value, Error> {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let access = match (resource.is_object(), path.is_object()) {
        (true, false) => Access::Resource {
            verb: text(resource, "verb"),
            group: text(resource, "group"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            namespace: text(resource, "namespace"),
            name: text(resource, "name"),
        },
        (false, true) => Access::Path { verb: text(path, "verb"), path: text(path, "path") },
        _ => {
            let field = FieldPath::new("spec.resourceAttributes");
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let kind = GroupKind::new("authorization.k8s.io", "SelfSubjectAccessReview");
            let naming = Naming { kind: &kind, plural: "selfsubjectaccessreviews", name: "" };
            return Err(Error::invalid(&naming, &[FieldError::invalid(field, resource, detail)]));
        }
    };
    match api.gate.authorise(user, &access).await {
        Ok(()) => Ok(json!({"allowed": true})),
        Err(Refusal::Forbidden(_) | Refusal::Unauthenticated(_)) => Ok(json!({"allowed": false})),
        Err(other @ Refusal::Unavailable(_)) => Err(Error::refused(other, None)),
    }
}

fn text<'a>(attributes: &'a Value, field: &str) -> &'a str {
    attributes[field].as_str().unwrap_or_default()
}
