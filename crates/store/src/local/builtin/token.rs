//! Tokens: who is let in with what. Only a digest is kept.

use concert_model::{FieldError, FieldPath, Object};
use serde_json::json;

use super::{Told, moment, plain, texts};
use crate::kind::Kind;

pub(super) const GROUP: &str = "concert.dev";
pub(super) const KIND: &str = "Token";

pub(super) fn told() -> Told {
    let kind = Kind { is_namespaced: false, ..plain(GROUP, "v1alpha1", KIND, "tokens") };
    let text = json!({"type": "string"});
    let account = json!({"type": "object", "required": ["namespace", "name"],
        "properties": {"namespace": text, "name": text, "uid": text}});
    let spec = json!({"type": "object", "required": ["sha256"], "properties": {
        "user": {"type": "string", "description": "Whose it is; not with serviceAccount."},
        "groups": texts(),
        "serviceAccount": account,
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "Digest of the token, in hex."},
        "expiresAt": moment(),
    }});
    Told {
        columns: &[
            ("User", "string", ".spec.user", 0),
            ("Account", "string", ".spec.serviceAccount.name", 0),
            ("Expires", "string", ".spec.expiresAt", 0),
            ("Age", "date", ".metadata.creationTimestamp", 0),
        ],
        ..Told::new(kind, json!({"spec": spec}))
    }
}

/// A token is somebody's, and of one.
pub(super) fn validate(object: &Object) -> Vec<FieldError> {
    let (spec, path) = (object.spec(), FieldPath::new("spec"));
    if spec.is_null() {
        return vec![FieldError::required(path, "")];
    }
    let has_user = spec["user"].as_str().is_some_and(|user| !user.is_empty());
    match (has_user, spec["serviceAccount"].is_null()) {
        (true, true) | (false, false) => Vec::new(),
        (true, false) => {
            let detail = "may not be specified together with user";
            vec![FieldError::forbidden(path.child("serviceAccount"), detail)]
        }
        (false, true) => vec![FieldError::required(path.child("user"), "user or serviceAccount is required")],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_token_is_of_one() {
        let errors = |spec: Value| {
            let whole = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Token", "spec": spec});
            validate(&Object::from_value(whole).unwrap()).len()
        };
        let account = json!({"namespace": "a", "name": "b"});
        assert_eq!(errors(json!({"user": "a"})), 0);
        assert_eq!(errors(json!({"serviceAccount": account})), 0);
        assert_eq!(errors(json!({"user": "a", "serviceAccount": account})), 1);
        assert_eq!(errors(json!({"groups": ["x"]})), 1);
        assert_eq!(errors(json!(null)), 1);
    }
}
