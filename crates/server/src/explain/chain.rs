//! What the object hangs on, one line each: owners, references, configuration, provider, items, events.

use concert_engine::{ItemState, Phase};

use super::explanation::Link;
use super::facts::{Definition, Facts, Item, Related, Relation, Service, State, Told};
use super::fleet;
use super::words::{self, enumerate, quote, span, within};

/// Most events that are shown.
const EVENTS_MAX: usize = 3;

pub(super) fn chain(facts: &Facts) -> Vec<Link> {
    let mut links = Vec::new();
    links.extend(definition(facts));
    let relations =
        [Relation::Owner, Relation::Class, Relation::Managed, Relation::Reference, Relation::ProviderConfig];
    for relation in relations {
        links.extend(facts.related.iter().filter(|it| it.relation == relation).map(related));
    }
    links.extend(provider(&facts.service));
    links.extend(facts.components.iter().map(fleet::link));
    links.extend(facts.items.iter().filter(|it| !fleet::is_told(facts, it)).map(|it| item(facts, it)));
    links.extend(facts.events.iter().take(EVENTS_MAX).map(|it| event(facts, it)));
    links
}

fn link(relation: &str, name: impl Into<String>, state: impl Into<String>, detail: &str) -> Link {
    Link { relation: relation.into(), name: name.into(), state: state.into(), detail: quote(detail) }
}

fn definition(facts: &Facts) -> Option<Link> {
    let name = facts.object.gvk().map(|it| it.group_kind.to_string()).unwrap_or_default();
    match &facts.definition {
        Definition::Unknown | Definition::Served => None,
        Definition::NotEstablished(why) => Some(link("kind", name, "not established", why)),
        Definition::Missing => Some(link("kind", name, "not defined", "")),
    }
}

fn related(related: &Related) -> Link {
    let relation = match related.relation {
        Relation::Owner => "owner",
        Relation::Class => "class",
        Relation::Managed => "managed",
        Relation::Reference => "reference",
        Relation::ProviderConfig => "config",
    };
    let (state, detail) = match &related.state {
        State::Unknown => ("unknown", ""),
        State::Missing => ("missing", ""),
        State::Present => ("present", ""),
        State::Ready => ("ready", ""),
        State::NotReady(why) => ("not ready", why.as_str()),
        State::Deleting => ("being deleted", ""),
    };
    link(relation, words::key(&related.key), state, detail)
}

fn provider(service: &Service) -> Option<Link> {
    match service {
        Service::Unknown | Service::NotNeeded => None,
        Service::Nobody { silent } => Some(link("provider", "none", "serves the kind", &enumerate(silent))),
        Service::Up { provider } => Some(link("provider", provider, "up", "")),
        Service::Down { provider, why } => Some(link("provider", provider, "unreachable", why)),
    }
}

fn item(facts: &Facts, item: &Item) -> Link {
    let state = &item.state;
    let mut parts = vec![phase(facts, state)];
    if state.attempt > 0 {
        parts.push(format!("attempt {}", state.attempt));
    }
    if let Some(due) = state.next_due {
        parts.push(format!("next run {}", within(facts.until(due))));
    }
    link("item", &item.controller, parts.join(", "), state.last_error.as_deref().unwrap_or_default())
}

fn phase(facts: &Facts, state: &ItemState) -> String {
    match &state.phase {
        Phase::Idle => "idle".to_owned(),
        Phase::Waiting => "in line".to_owned(),
        Phase::DueAt(_) => "scheduled".to_owned(),
        Phase::RunningSince(since) => format!("running for {}", span(facts.elapsed.saturating_sub(*since))),
        Phase::ParkedOn(waits) => {
            format!("waits for {}", enumerate(&waits.iter().map(ToString::to_string).collect::<Vec<_>>()))
        }
        Phase::BackingOff { .. } => "backing off".to_owned(),
        Phase::Paused => "held back".to_owned(),
        Phase::Terminal => "given up until a change".to_owned(),
    }
}

fn event(facts: &Facts, told: &Told) -> Link {
    let ago = format!("{} ago", span(facts.now.duration_since(told.at).unsigned_abs()));
    let often = if told.count > 1 { format!(", {} times", told.count) } else { String::new() };
    let kind = if told.is_warning { "warning" } else { "event" };
    link(kind, &told.reason, format!("{ago}{often}"), &told.message)
}
