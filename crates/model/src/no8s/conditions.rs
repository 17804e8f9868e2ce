//! The three conditions that every resource has, and their order.

use serde_json::{Map, Value};

use crate::condition::{self, Condition, Status};
use crate::time::Timestamp;

/// Whether it is as declared.
pub const READY: &str = "Ready";
/// Whether a worker is at it.
pub const RECONCILING: &str = "Reconciling";
/// Whether the last try failed.
pub const DEGRADED: &str = "Degraded";

/// The standard conditions, in the order they are shown.
pub const STANDARD: [&str; 3] = [READY, RECONCILING, DEGRADED];

/// A status that a condition cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("condition status must be \"True\", \"False\" or \"Unknown\", not \"{0}\"")]
pub struct BadStatus(pub String);

/// A point in the life of a resource that changes its standard conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row<'a> {
    Start,
    Success,
    Failure(&'a str),
    Deleting,
}

/// Reads the status of a condition.
pub(super) fn parse_status(text: &str) -> Result<Status, BadStatus> {
    match text {
        "True" => Ok(Status::True),
        "False" => Ok(Status::False),
        "Unknown" => Ok(Status::Unknown),
        other => Err(BadStatus(other.to_owned())),
    }
}

/// Sets the standard conditions as `row` says, for the generation that was claimed.
pub(super) fn set_row(status: &mut Map<String, Value>, row: Row<'_>, claimed: i64, now: Timestamp) {
    use Status::{False, True, Unknown};
    const GOING: &str = "Resource is being deleted";
    let conditions: &[(&str, Status, &str, &str)] = match row {
        Row::Start => &[
            (READY, Unknown, "ReconcileStarted", "Reconciliation in progress"),
            (RECONCILING, True, "ReconcileStarted", "Reconciliation has started"),
        ],
        Row::Success => &[
            (READY, True, "ReconcileSuccess", "Resource reconciled successfully"),
            (RECONCILING, False, "ReconcileComplete", "Reconciliation completed"),
            (DEGRADED, False, "NoErrors", ""),
        ],
        Row::Failure(why) => &[
            (READY, False, "ReconcileFailed", why),
            (RECONCILING, False, "ReconcileFailed", ""),
            (DEGRADED, True, "ReconcileFailed", why),
        ],
        Row::Deleting => &[(READY, Unknown, "Deleting", GOING), (RECONCILING, False, "Deleting", GOING)],
    };
    for (kind, is, reason, message) in conditions {
        set(status, Condition::new(kind, *is, reason, *message).observed(claimed), now);
    }
}

/// Sets one condition: standard ones come first, others in the order they were first set.
pub(super) fn set(status: &mut Map<String, Value>, condition: Condition, now: Timestamp) {
    let mut whole = Value::Object(std::mem::take(status));
    condition::set(&mut whole, condition, now);
    if let Some(list) = whole["conditions"].as_array_mut() {
        let rank =
            |kind: Option<&str>| STANDARD.iter().position(|it| Some(*it) == kind).unwrap_or(STANDARD.len());
        list.sort_by_key(|it| rank(it["type"].as_str()));
    }
    if let Value::Object(fields) = whole {
        *status = fields;
    }
}
