//! Answers: deltas, observations, plans and results.

use bytes::Bytes;
use serde_json::Value;

use super::{details_from, details_to, duration_from, duration_to, map_from, map_to, misbehaved, text_from};
use crate::answer::{Change, Created, Deleted, Delta, Observation, Plan, PlanAction};
use crate::error::Error;
use crate::text;
use crate::wire::v1;

pub(crate) fn delta_to(delta: &Delta) -> v1::Delta {
    v1::Delta {
        status: map_to(delta.status.as_ref()),
        annotations: delta.annotations.clone().into_iter().collect(),
        external_name: delta.external_name.clone().unwrap_or_default(),
        spec: map_to(delta.spec.as_ref()),
    }
}

pub(crate) fn delta_from(delta: Option<v1::Delta>) -> Result<Delta, Error> {
    let delta = delta.unwrap_or_default();
    Ok(Delta {
        status: map_from("status", &delta.status)?,
        annotations: delta.annotations.into_iter().collect(),
        external_name: text_from(delta.external_name),
        spec: map_from("spec", &delta.spec)?,
    })
}

pub(crate) fn change_to(change: &Change) -> v1::Change {
    v1::Change {
        path: change.path.clone(),
        from: value_to(change.from.as_ref()),
        to: value_to(change.to.as_ref()),
        replaces: change.replaces,
        sensitive: change.is_sensitive,
    }
}

pub(crate) fn change_from(change: v1::Change) -> Result<Change, Error> {
    Ok(Change {
        from: value_from(&change.path, &change.from)?,
        to: value_from(&change.path, &change.to)?,
        path: text::clean(&change.path),
        replaces: change.replaces,
        is_sensitive: change.sensitive,
    })
}

fn value_to(value: Option<&Value>) -> Bytes {
    value.map(|it| it.to_string().into()).unwrap_or_default()
}

fn value_from(path: &str, json: &[u8]) -> Result<Option<Value>, Error> {
    if json.is_empty() {
        return Ok(None);
    }
    // The text is not shown: the field may be a sensitive one.
    serde_json::from_slice(json).map(Some).map_err(|_| misbehaved(format!("a value of {path} is not JSON")))
}

pub(crate) fn observation_to(seen: &Observation) -> v1::Observation {
    v1::Observation {
        exists: seen.exists,
        up_to_date: seen.is_up_to_date,
        diff: seen.diff.iter().map(change_to).collect(),
        delta: Some(delta_to(&seen.delta)),
        connection_details: details_to(&seen.connection),
    }
}

pub(crate) fn observation_from(seen: v1::Observation) -> Result<Observation, Error> {
    Ok(Observation {
        exists: seen.exists,
        is_up_to_date: seen.up_to_date,
        diff: seen.diff.into_iter().map(change_from).collect::<Result<_, _>>()?,
        delta: delta_from(seen.delta)?,
        connection: details_from(seen.connection_details),
    })
}

pub(crate) fn created_to(made: &Created) -> v1::Result {
    v1::Result {
        delta: Some(delta_to(&made.delta)),
        connection_details: details_to(&made.connection),
        progress: made.progress.clone().unwrap_or_default(),
        again_after: made.again_after.map(duration_to),
        notes: made.notes.clone().into_iter().collect(),
    }
}

pub(crate) fn created_from(made: v1::Result) -> Result<Created, Error> {
    Ok(Created {
        delta: delta_from(made.delta)?,
        connection: details_from(made.connection_details),
        progress: text_from(text::clean(&made.progress)),
        again_after: duration_from(made.again_after),
        notes: made.notes.into_iter().collect(),
    })
}

pub(crate) fn deleted_to(gone: &Deleted) -> v1::Result {
    v1::Result {
        delta: Some(delta_to(&gone.delta)),
        progress: gone.progress.clone().unwrap_or_default(),
        again_after: gone.again_after.map(duration_to),
        notes: gone.notes.clone().into_iter().collect(),
        ..Default::default()
    }
}

pub(crate) fn deleted_from(gone: v1::Result) -> Result<Deleted, Error> {
    let Created { delta, progress, again_after, notes, .. } = created_from(gone)?;
    Ok(Deleted { delta, progress, again_after, notes })
}

pub(crate) fn plan_to(plan: &Plan) -> v1::Plan {
    let action = match plan.action {
        PlanAction::Create => v1::Action::Create,
        PlanAction::Update => v1::Action::Update,
        PlanAction::Replace => v1::Action::Replace,
        PlanAction::Delete => v1::Action::Delete,
        PlanAction::None => v1::Action::None,
        PlanAction::Unknown => v1::Action::Unknown,
    };
    v1::Plan {
        action: action.into(),
        changes: plan.changes.iter().map(change_to).collect(),
        reason: plan.reason.clone(),
    }
}

pub(crate) fn plan_from(plan: v1::Plan) -> Result<Plan, Error> {
    let action = match plan.action() {
        v1::Action::Create => PlanAction::Create,
        v1::Action::Update => PlanAction::Update,
        v1::Action::Replace => PlanAction::Replace,
        v1::Action::Delete => PlanAction::Delete,
        v1::Action::None => PlanAction::None,
        v1::Action::Unspecified | v1::Action::Unknown => PlanAction::Unknown,
    };
    let changes = plan.changes.into_iter().map(change_from).collect::<Result<_, _>>()?;
    Ok(Plan { action, changes, reason: text::clean(&plan.reason) })
}
