//! What would be done, from what was seen.

use concert_model::Object;
use concert_provider::{Change, Class, Error, Observation, Plan, PlanAction};
use serde_json::Value;

use crate::Result;
use crate::fields::AT;

/// A field of `spec.forProvider` that is not as wanted.
pub(crate) fn change(field: &str, from: Value, to: Value) -> Change {
    let some = |value: Value| Some(value).filter(|it| !it.is_null());
    Change {
        path: format!("{AT}.{field}"),
        from: some(from),
        to: some(to),
        replaces: false,
        is_sensitive: false,
    }
}

/// Something else that is not as it should be.
pub(crate) fn drift(path: &str, from: impl Into<Value>, to: impl Into<Value>) -> Change {
    Change {
        path: path.to_owned(),
        from: Some(from.into()),
        to: Some(to.into()),
        replaces: false,
        is_sensitive: false,
    }
}

/// The same change, for which the thing must be made anew.
pub(crate) fn replacing(change: Change) -> Change {
    Change { replaces: true, ..change }
}

/// A password that is not the one we know.
pub(crate) fn password() -> Change {
    let path = "connection.password".to_owned();
    Change { path, from: None, to: None, replaces: false, is_sensitive: true }
}

/// The plan for an object of which this was seen; `fresh` are the fields of one that is to be made.
pub(crate) fn plan(object: &Object, seen: Observation, fresh: Vec<Change>) -> Plan {
    let (action, changes) = match (seen.exists, object.deleted_at().is_some()) {
        (false, true) => (PlanAction::None, Vec::new()),
        (false, false) => (PlanAction::Create, fresh),
        (true, true) => (PlanAction::Delete, Vec::new()),
        (true, false) => (verb(&seen.diff), seen.diff),
    };
    let replaced = changes.iter().find(|change| change.replaces);
    let reason = replaced.map(|it| format!("{} cannot change in place", it.path)).unwrap_or_default();
    Plan { action, changes, reason }
}

fn verb(changes: &[Change]) -> PlanAction {
    match changes {
        [] => PlanAction::None,
        _ if changes.iter().any(|change| change.replaces) => PlanAction::Replace,
        _ => PlanAction::Update,
    }
}

/// Refuses what cannot be changed in place.
pub(crate) fn check_in_place(changes: &[Change]) -> Result<()> {
    match changes.iter().find(|change| change.replaces) {
        Some(change) => Err(Error::new(Class::Terminal, format!("{}: cannot change in place", change.path))),
        None => Ok(()),
    }
}
