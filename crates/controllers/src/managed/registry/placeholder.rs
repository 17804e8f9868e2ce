//! The stand-in for a kind that nobody works on: says so on each object.

use std::sync::Arc;

use async_trait::async_trait;
use concert_engine::{Failure, Outcome, Reconciler, Request};
use concert_model::Object;
use concert_model::condition::{self, Condition, Status};
use concert_store::{By, Clock, Error, Store};
use serde_json::Value;

use super::super::vocabulary::{annotation, condition as kinds, reason};

/// Writes one sentence on each object, once.
pub struct Placeholder {
    /// The controller in whose place it stands.
    pub name: Arc<str>,
    /// The sentence.
    pub why: String,
    /// Where the objects are.
    pub store: Arc<dyn Store>,
    /// For the time of the change.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Reconciler for Placeholder {
    async fn reconcile(&self, request: Request) -> Outcome {
        let mut object = match self.store.get(&request.key).await {
            Ok(current) => current.decode(),
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => return Outcome::Done,
            Err(error) => return Outcome::Transient(Failure::from_error(&error)),
        };
        if says_paused(&object) {
            return Outcome::Done;
        }
        let text = format!("connect failed: {}", self.why);
        let synced = Condition::new(kinds::SYNCED, Status::False, reason::RECONCILE_ERROR, text);
        let generation = object.generation();
        if !condition::set(object.get_mut("status"), synced.observed(generation), self.clock.now()) {
            return Outcome::Done;
        }
        let by = By { fence: request.fence, manager: self.name.clone(), ..By::actor(self.name.clone()) };
        match self.store.update_status(object, &by).await {
            Ok(_) | Err(Error::NotFound { .. }) => Outcome::Done,
            Err(Error::Conflict { .. }) => Outcome::Requeue("the object changed meanwhile".into(), None),
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}

/// Whether an object is paused and says so: nobody would work on it anyway. Once it no longer is, its change
/// has it looked at again.
fn says_paused(object: &Object) -> bool {
    let is_annotated = object.annotation(annotation::PAUSED) == Some("true");
    let policies = object.spec().get("managementPolicies").and_then(Value::as_array);
    let is_said = condition::find(object.status(), kinds::SYNCED)
        .is_some_and(|it| it.reason == reason::RECONCILE_PAUSED);
    (is_annotated || policies.is_some_and(Vec::is_empty)) && is_said
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(paused: &str, policies: Value, reason: &str) -> Object {
        Object::from_value(json!({"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": "a", "annotations": {"crossplane.io/paused": paused}},
            "spec": {"managementPolicies": policies},
            "status": {"conditions": [{"type": "Synced", "status": "False", "reason": reason}]}}))
        .unwrap()
    }

    #[test]
    fn who_is_paused_and_says_so_is_left_alone() {
        assert!(says_paused(&object("true", json!(["*"]), "ReconcilePaused")));
        assert!(says_paused(&object("", json!([]), "ReconcilePaused")));
        // It was: what it says holds no longer.
        assert!(!says_paused(&object("false", json!(["*"]), "ReconcilePaused")));
        assert!(!says_paused(&object("true", json!(["*"]), "ReconcileError")));
    }
}
