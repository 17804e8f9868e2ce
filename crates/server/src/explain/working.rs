//! What is being worked on, or was and failed.

use concert_controllers::managed::vocabulary::{condition, reason};
use concert_engine::Phase;
use concert_model::condition::{self as conditions, Status};
use concert_model::no8s::Resource;

use super::diagnose::Finding;
use super::facts::{Facts, Item};
use super::words::{because, circumstances, quote, span, within};

/// Why `Ready` of a resource is unknown while a worker is at it.
const STARTED: &str = "ReconcileStarted";

pub(super) fn failed_for_good(facts: &Facts) -> Option<Finding> {
    let item = facts.items.iter().find(|it| it.state.phase == Phase::Terminal)?;
    let what = item.state.last_error.as_deref().unwrap_or("it failed");
    let what = format!("{}{}; nothing more is tried until it is changed", quote(what), circumstances(facts));
    Some(Finding::as_it_is(facts, what))
}

/// The last try failed; there will be another.
pub(super) fn failing(facts: &Facts) -> Option<Finding> {
    let failure = facts
        .condition(condition::SYNCED)
        .filter(|it| it.status == Status::False && it.reason != reason::RECONCILE_PAUSED)
        .map(|it| if it.message.is_empty() { it.reason } else { it.message });
    let backing_off = facts.items.iter().find(|it| matches!(it.state.phase, Phase::BackingOff { .. }));
    let told = backing_off.and_then(|it| it.state.last_error.as_deref().map(str::to_owned));
    let is_failure = backing_off.is_some_and(|it| it.state.attempt > 0);
    let what = failure.or(told.filter(|_| is_failure))?;
    Some(Finding::as_it_is(facts, format!("{}{}", quote(&what), circumstances(facts))))
}

/// A host elsewhere has it, and has not said yet how that ended. It may as well be stuck.
pub(super) fn held(facts: &Facts) -> Option<Finding> {
    let holder = facts.holder.as_ref()?;
    if facts.is_ready() && !Resource(&facts.object).is_changed() {
        return None;
    }
    let time = span(facts.now.duration_since(holder.since).unsigned_abs());
    let said = because(Resource(&facts.object).message().unwrap_or_default());
    Some(Finding::not_ready(format!(
        "host {} of worker {} has been working on it for {time}, since {}{said}",
        quote(&holder.host),
        quote(&holder.worker),
        concert_model::time::seconds(holder.since)
    )))
}

/// Something was changed that nobody has seen yet.
pub(super) fn not_looked_at(facts: &Facts) -> Option<Finding> {
    let generation = facts.object.generation();
    let all = conditions::all(facts.object.status());
    let of_status = facts.object.status()["observedGeneration"].as_i64();
    let seen = of_status.or(all.iter().filter_map(|it| it.observed_generation).max())?;
    if seen >= generation {
        return None;
    }
    let what =
        format!("its change to generation {generation} has not been looked at yet, only that to {seen}");
    Some(Finding::not_ready(format!("{what}{}", stage(facts))))
}

fn stage(facts: &Facts) -> String {
    match facts.item() {
        Some(Item { state, .. }) => match state.phase {
            Phase::RunningSince(_) => "; a worker is at it".to_owned(),
            Phase::Waiting => "; it is next in line for a worker".to_owned(),
            _ => state
                .next_due
                .map(|due| format!("; that is to happen {}", within(facts.until(due))))
                .unwrap_or_default(),
        },
        None => String::new(),
    }
}

/// Nobody has finished with it even once.
pub(super) fn running(facts: &Facts) -> Option<Finding> {
    // Who began has not finished: all that its condition says is that it began.
    if facts.readiness().is_some_and(|it| it.reason != STARTED) {
        return None;
    }
    let item = facts.item()?;
    let what = match item.state.phase {
        Phase::RunningSince(since) => {
            let time = span(facts.elapsed.saturating_sub(since));
            format!("controller {} has been working on it for {time}", item.controller)
        }
        Phase::Waiting => format!("it is next in line for a worker of controller {}", item.controller),
        Phase::DueAt(due) if item.state.last_outcome.is_none() => {
            format!(
                "controller {} looks at it for the first time {}",
                item.controller,
                within(facts.until(due))
            )
        }
        Phase::BackingOff { .. } => {
            let why = item.state.last_error.as_deref().unwrap_or("it is not there yet");
            format!("{}{}", quote(why), circumstances(facts))
        }
        _ => return None,
    };
    Some(Finding::not_ready(what))
}

/// The external thing is on its way.
pub(super) fn in_progress(facts: &Facts) -> Option<Finding> {
    let ready = facts.readiness().filter(|it| it.status != Status::True)?;
    let what = match ready.reason.as_str() {
        reason::CREATING => "its external resource is being created",
        "Unavailable" => "its external resource is there but not available",
        _ => return None,
    };
    Some(Finding::not_ready(format!("{what}{}{}", because(&ready.message), circumstances(facts))))
}
