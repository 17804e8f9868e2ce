//! What nobody can do anything about before something else happens.

use concert_controllers::managed::vocabulary::{annotation, condition, message, reason};
use concert_engine::Phase;
use concert_model::condition::Status;
use concert_model::{ObjectKey, time};

use super::diagnose::Finding;
use super::facts::{Definition, Facts, Related, Relation, Service, State};
use super::words::{because, enumerate, waited_for};

pub(super) fn no_definition(facts: &Facts) -> Option<Finding> {
    let kind = kind(facts);
    match &facts.definition {
        Definition::Unknown | Definition::Served => None,
        Definition::Missing => Some(Finding::not_ready(format!("its kind {kind} is not defined any more"))),
        Definition::NotEstablished(why) => Some(Finding::not_ready(format!(
            "the definition of {kind} is not established{}, so nobody works on it",
            because(why)
        ))),
    }
}

/// By the annotation, by policy, or by an operator of the engine.
pub(super) fn paused(facts: &Facts) -> Option<Finding> {
    let by = if has_pause_annotation(facts) {
        format!("the annotation {}: \"true\"", annotation::PAUSED)
    } else if is_paused(facts) {
        "an empty list in spec.managementPolicies".to_owned()
    } else if facts.items.iter().any(|it| it.state.phase == Phase::Paused) {
        "an operator of this server".to_owned()
    } else {
        return None;
    };
    Some(Finding::as_it_is(facts, format!("it is paused by {by}, so nothing is done about it")))
}

pub(super) fn is_paused(facts: &Facts) -> bool {
    let synced = facts.condition(condition::SYNCED);
    has_pause_annotation(facts)
        || facts.object.spec()["managementPolicies"].as_array().is_some_and(Vec::is_empty)
            && synced.is_some_and(|it| it.reason == reason::RECONCILE_PAUSED)
}

fn has_pause_annotation(facts: &Facts) -> bool {
    facts.object.annotation(annotation::PAUSED) == Some("true")
}

pub(super) fn nobody_serves(facts: &Facts) -> Option<Finding> {
    let Service::Nobody { silent } = &facts.service else { return None };
    let maybe = match &silent[..] {
        [] => String::new(),
        [one] => format!("; provider {one} does not answer and may be the one"),
        many => format!("; providers {} do not answer, and one of them may", enumerate(many)),
    };
    Some(Finding::as_it_is(facts, format!("no provider serves {}{maybe}", kind(facts))))
}

pub(super) fn provider_unreachable(facts: &Facts) -> Option<Finding> {
    let Service::Down { provider, why } = &facts.service else { return None };
    let what = format!("provider {provider} cannot be reached{}; it goes on when that answers", because(why));
    Some(Finding::as_it_is(facts, what))
}

/// Only a person can tell what became of the last create.
pub(super) fn create_in_doubt(facts: &Facts) -> Option<Finding> {
    let synced = facts.condition(condition::SYNCED)?;
    if !synced.message.starts_with(message::CREATE_IN_DOUBT) {
        return None;
    }
    let since = facts.object.annotation(annotation::CREATE_PENDING).and_then(time::parse);
    let when = since.map(|it| format!(" of {}", time::seconds(it))).unwrap_or_default();
    Some(Finding::not_ready(format!(
        "nobody knows whether the create{when} made the external resource; look for it, set {} if it is there, and then remove {}",
        annotation::EXTERNAL_NAME,
        annotation::CREATE_PENDING
    )))
}

/// Its item waits, or one of its references is visibly not there.
pub(super) fn waiting_for_others(facts: &Facts) -> Option<Finding> {
    let waits = facts.items.iter().find_map(|it| match &it.state.phase {
        Phase::ParkedOn(waits) => Some(waits),
        _ => None,
    });
    let names: Vec<String> = match waits {
        Some(waits) => waits.iter().map(|it| name_of(facts, it)).collect(),
        // Without an item there is no telling whether a reference that is not ready is waited for: only
        // what has not been synced can wait.
        None if facts.items.is_empty() && !is_synced(facts) => {
            facts.related.iter().filter(|it| is_missing(it)).map(waited_for).collect()
        }
        None => Vec::new(),
    };
    if names.is_empty() {
        return None;
    }
    Some(Finding::as_it_is(facts, format!("it waits for {}", enumerate(&names))))
}

fn is_synced(facts: &Facts) -> bool {
    facts.condition(condition::SYNCED).is_some_and(|it| it.status == Status::True)
}

fn is_missing(related: &Related) -> bool {
    related.relation != Relation::Owner && matches!(related.state, State::Missing | State::NotReady(_))
}

fn name_of(facts: &Facts, wait: &concert_engine::Wait) -> String {
    use concert_engine::Wait;
    let known = |key: &ObjectKey| facts.related.iter().find(|it| it.key == *key);
    match wait {
        Wait::Object { key, condition, .. } => match (known(key), condition) {
            (Some(related), _)
                if !matches!(related.state, State::Unknown | State::Present | State::Ready) =>
            {
                waited_for(related)
            }
            (_, Some(condition)) => format!("{} to be {condition}", super::words::key(key)),
            (_, None) => format!("a change of {}", super::words::key(key)),
        },
        Wait::Label { label, .. } => label.to_string(),
    }
}

fn kind(facts: &Facts) -> String {
    match facts.object.gvk() {
        Ok(kind) => kind.group_kind.to_string(),
        Err(_) => facts.object.kind().to_owned(),
    }
}
