//! A Bucket, and what may be known about it.

use std::time::Duration;

use concert_engine::{ItemState, Lane, OutcomeKind, Phase, Reasons};
use concert_model::{GroupKind, Object, ObjectKey, Timestamp};
use serde_json::{Value, json};

use crate::explain::{Facts, Item, Related, Relation, Service, State, explain};

/// When the engine's clock stood at 100 s.
pub const NOW: &str = "2026-11-15T12:00:00Z";
pub const ELAPSED: Duration = Duration::from_secs(100);

pub fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A Bucket of provider `example`, with some conditions.
pub fn bucket(conditions: &[Value]) -> Facts {
    object(json!({"apiVersion": "cloud.concert.dev/v1alpha1", "kind": "Bucket",
        "metadata": {"name": "a", "namespace": "default", "generation": 2},
        "spec": {"forProvider": {"size": 1}}, "status": {"conditions": conditions}}))
    .served()
}

/// Anything else.
pub fn object(value: Value) -> Facts {
    Facts { elapsed: ELAPSED, ..Facts::new(Object::from_value(value).unwrap(), time(NOW)) }
}

pub fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 2})
}

pub fn ready() -> Value {
    condition("Ready", "True", "Available", "")
}

pub fn synced() -> Value {
    condition("Synced", "True", "ReconcileSuccess", "")
}

pub fn not_synced(message: &str) -> Value {
    condition("Synced", "False", "ReconcileError", message)
}

pub fn up_to_date() -> Value {
    condition("UpToDate", "True", "ObserveMatched", "")
}

pub fn network() -> ObjectKey {
    ObjectKey::namespaced(GroupKind::new("cloud.concert.dev", "Network"), "default", "n")
}

/// What can be added to a scene.
pub trait Scene: Sized {
    fn served(self) -> Self;
    fn with_service(self, service: Service) -> Self;
    fn with_metadata(self, field: &str, value: Value) -> Self;
    fn with_item(self, phase: Phase) -> Self;
    fn failing(self, attempt: u32, error: &str) -> Self;
    fn with_related(self, relation: Relation, key: ObjectKey, state: State) -> Self;
    fn says(&self) -> String;
}

impl Scene for Facts {
    fn served(self) -> Self {
        self.with_service(Service::Up { provider: "example".into() })
    }

    fn with_service(mut self, service: Service) -> Self {
        self.service = service;
        self
    }

    fn with_metadata(mut self, field: &str, value: Value) -> Self {
        self.object.set_metadata(field, value);
        self
    }

    fn with_item(mut self, phase: Phase) -> Self {
        let next_due = match phase {
            Phase::DueAt(due) | Phase::BackingOff { until: due } => Some(due),
            _ => None,
        };
        let state = ItemState {
            key: self.object.key().unwrap(),
            lane: next_due.map(|_| Lane::Retry),
            attempt: 0,
            reasons: Reasons::default(),
            last_outcome: matches!(phase, Phase::Idle).then_some(OutcomeKind::Done),
            last_error: None,
            next_due,
            phase,
        };
        self.items.push(Item { controller: "managed/buckets".into(), state });
        self
    }

    /// The last item has failed this often in a row.
    fn failing(mut self, attempt: u32, error: &str) -> Self {
        let state = &mut self.items.last_mut().unwrap().state;
        (state.attempt, state.last_error) = (attempt, Some(error.into()));
        self
    }

    fn with_related(mut self, relation: Relation, key: ObjectKey, state: State) -> Self {
        self.related.push(Related { relation, key, state });
        self
    }

    fn says(&self) -> String {
        let explanation = explain(self);
        let verdict = if explanation.is_ready { "ready" } else { "not ready" };
        format!("[{verdict}] {}", explanation.sentence)
    }
}

/// So many seconds from now, by the engine's clock.
pub fn after(seconds: u64) -> Duration {
    ELAPSED + Duration::from_secs(seconds)
}
