//! What is at rest.

use concert_controllers::managed::vocabulary::{condition, reason};
use concert_engine::Phase;
use concert_model::condition::Status;

use super::diagnose::Finding;
use super::facts::{Facts, Service};
use super::words::{because, circumstances, quote, within};

/// Ready or not, it differs from what is declared.
pub(super) fn drifted(facts: &Facts) -> Option<Finding> {
    let differs = facts.condition(condition::UP_TO_DATE).filter(|it| it.status == Status::False)?;
    let fields = quote(&differs.message);
    let what = match differs.reason.as_str() {
        reason::UPDATE_RESTRICTED => format!(
            "it differs from what is declared and is left so, because spec.managementPolicies does not allow Update: {fields}"
        ),
        reason::UPDATE_REQUESTED => {
            format!("it is being changed to what is declared: {fields}{}", circumstances(facts))
        }
        _ => format!("it differs from what is declared: {fields}{}", circumstances(facts)),
    };
    Some(Finding::as_it_is(facts, what.trim_end_matches(": ")))
}

pub(super) fn ready(facts: &Facts) -> Option<Finding> {
    if !facts.is_ready() {
        return None;
    }
    let is_declared = facts.condition(condition::UP_TO_DATE).is_some_and(|it| it.status == Status::True);
    let mut text = if is_declared { "is ready and as declared" } else { "is ready" }.to_owned();
    let looks = facts.items.iter().filter(|it| matches!(it.state.phase, Phase::DueAt(_)));
    if let Some(due) = looks.filter_map(|it| it.state.next_due).min() {
        text += &format!("; the next look is {}", within(facts.until(due)));
    }
    Some(Finding { text, is_ready: true })
}

/// Kinds that have nothing to become.
pub(super) fn without_conditions(facts: &Facts) -> Option<Finding> {
    if facts.readiness().is_some() {
        return None;
    }
    let has_conditions = facts.object.status()["conditions"].as_array().is_some_and(|it| !it.is_empty());
    if has_conditions {
        return None;
    }
    let phase = facts.object.status()["phase"].as_str().filter(|it| *it != "Active");
    if let Some(phase) = phase {
        return Some(Finding::not_ready(format!("its phase is {}", quote(phase))));
    }
    match (&facts.service, &facts.items[..]) {
        (Service::Up { provider }, []) => {
            Some(Finding::not_ready(format!("provider {provider} has not been asked about it yet")))
        }
        (Service::NotNeeded, _) => {
            Some(Finding { text: "exists, and its kind has nothing to wait for".into(), is_ready: true })
        }
        (_, []) => {
            Some(Finding { text: "exists; nothing is known that works on it".into(), is_ready: false })
        }
        _ => None,
    }
}

/// What its condition says, for want of anything better.
pub(super) fn not_ready(facts: &Facts) -> Finding {
    match facts.readiness() {
        Some(it) => {
            let word =
                if it.reason.is_empty() { format!("{} is {:?}", it.kind, it.status) } else { it.reason };
            Finding::not_ready(format!("{word}{}{}", because(&it.message), circumstances(facts)))
        }
        None => Finding::not_ready(format!("nothing has been reported about it{}", circumstances(facts))),
    }
}
