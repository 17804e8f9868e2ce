//! `POST …/serviceaccounts/NAME/token`: a token for a service account.

use std::time::Duration;

use concert_model::{FieldError, FieldPath, GroupKind, time};
use concert_store::By;
use serde_json::{Value, json};

use super::answer::{Answer, text};
use super::api::Call;
use super::content;
use crate::auth::{TokenError, issue};
use crate::error::{Error, Naming};

const LIFETIME_DEFAULT: u64 = 60 * 60;
/// Kubernetes' own bounds.
const LIFETIME_MIN: u64 = 10 * 60;
const LIFETIME_MAX: u64 = 1 << 32;

pub(super) async fn request(call: &Call<'_>, body: &[u8]) -> Result<Answer, Error> {
    call.params.check(&["dryRun", "fieldManager", "fieldValidation"])?;
    let request = content::read_sent(call.headers, body)?.value;
    if !matches!(request["kind"].as_str(), None | Some("TokenRequest")) || !request.is_object() {
        return Err(Error::bad_request("the body of the request must be a TokenRequest"));
    }
    let spec = &request["spec"];
    let seconds = check(spec)?;
    if call.params.text("dryRun").is_some() {
        return Err(Error::bad_request("a token cannot be made without being made: dryRun is not supported"));
    }
    let by = By::actor(call.user.name.clone()).because("token");
    let (api, account) = (call.api, call.key());
    let issued =
        issue(&api.store, &*api.clock, &api.chance, &account, Duration::from_secs(seconds), &by).await;
    let issued = issued.map_err(|error| match error {
        TokenError::Lifetime => Error::bad_request(error.to_string()),
        TokenError::Store(error) => Error::of_store(error, &call.naming()),
    })?;
    let expires = issued.expires_at.map(time::seconds);
    let answer = json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": call.name, "namespace": call.namespace, "creationTimestamp": time::seconds(api.clock.now())},
        "spec": {"audiences": [], "expirationSeconds": seconds, "boundObjectRef": null},
        "status": {"token": issued.token, "expirationTimestamp": expires},
    });
    Ok(Answer::created(text(&answer)))
}

/// What cannot be promised is refused; says how long the token lives.
fn check(spec: &Value) -> Result<u64, Error> {
    let mut errors = Vec::new();
    let path = FieldPath::new("spec");
    if spec["audiences"].as_array().is_some_and(|audiences| !audiences.is_empty()) {
        let detail = "tokens are for this server only";
        errors.push(FieldError::forbidden(path.child("audiences"), detail));
    }
    if !spec["boundObjectRef"].is_null() {
        let detail = "tokens are bound to their account only";
        errors.push(FieldError::forbidden(path.child("boundObjectRef"), detail));
    }
    let seconds = match &spec["expirationSeconds"] {
        Value::Null => LIFETIME_DEFAULT,
        other => other.as_u64().unwrap_or_default(),
    };
    if !(LIFETIME_MIN..=LIFETIME_MAX).contains(&seconds) {
        let detail = "may not specify a duration less than 10 minutes or more than 2^32 seconds";
        errors.push(FieldError::invalid(path.child("expirationSeconds"), &spec["expirationSeconds"], detail));
    }
    if errors.is_empty() {
        return Ok(seconds);
    }
    let kind = GroupKind::new("authentication.k8s.io", "TokenRequest");
    Err(Error::invalid(&Naming { kind: &kind, plural: "serviceaccounts", name: "" }, &errors))
}
