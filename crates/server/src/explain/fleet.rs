//! What waits for what on an entry of the inventory.

use std::time::Duration;

use concert_controllers::mothership::vocabulary::CONTROLLER;

use super::diagnose::Finding;
use super::explanation::Link;
use super::facts::{Facts, Item};
use super::words::{because, enumerate, quote, span, within};

/// One reconciler on an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Component {
    /// Which.
    pub name: String,
    /// Where it stands, in the words of items.
    pub state: String,
    /// What it said last.
    pub message: String,
    /// Failures in a row.
    pub attempt: u64,
    /// What it waits for.
    pub waits_for: Vec<Dependency>,
    /// The host that has it, and for how long.
    pub running: Option<(String, Duration)>,
    /// When it runs again, from now on.
    pub next_run: Option<Duration>,
    /// Whether it is due and waits for a host.
    pub is_waiting: bool,
    /// Whether it can be asked at all.
    pub is_registered: bool,
}

/// Something that a reconciler waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependency {
    /// Such as `section network /vnet_name`.
    pub what: String,
    /// The reconciler that writes it, if one may.
    pub writer: Option<String>,
}

/// Whether an item of the engine is told of as a reconciler.
pub(super) fn is_told(facts: &Facts, item: &Item) -> bool {
    !facts.components.is_empty() && item.controller.starts_with(CONTROLLER)
}

pub(super) fn being_deleted(facts: &Facts) -> Option<Finding> {
    let since = facts.object.deleted_at().filter(|_| !facts.components.is_empty())?;
    let age = facts.now.duration_since(since).unsigned_abs();
    let open: Vec<String> = facts.components.iter().map(|it| sentence(facts, it)).collect();
    let text = format!(
        "is being deleted (asked {} ago) and waits for those who worked on it: {}",
        span(age),
        enumerate(&open)
    );
    Some(Finding { text, is_ready: false })
}

/// The worst of all that is open, and what it hangs on.
pub(super) fn not_settled(facts: &Facts) -> Option<Finding> {
    let open: Vec<&Component> = facts.components.iter().filter(|it| it.state != "ready").collect();
    let worst = open.iter().min_by_key(|it| match it.state.as_str() {
        "failed" => 0,
        "stopped" => 1,
        "not_ready" => 2,
        _ => 3,
    })?;
    let others = match open.len() - 1 {
        0 => String::new(),
        1 => "; one more reconciler is not ready".to_owned(),
        count => format!("; {count} more reconcilers are not ready"),
    };
    Some(Finding::not_ready(format!("{}{others}", sentence(facts, worst))))
}

fn sentence(facts: &Facts, component: &Component) -> String {
    let text = standing(component);
    let [dependency] = &component.waits_for[..] else { return text };
    let writer = dependency.writer.as_ref().and_then(|it| facts.components.iter().find(|c| c.name == *it));
    match writer.filter(|it| it.name != component.name && component.state == "not_ready") {
        // One step is enough: the chain has the rest.
        Some(writer) if writer.state != "ready" => format!("{text}, and {}", standing(writer)),
        Some(writer) => format!("{text}, although {} is ready", writer.name),
        None => text,
    }
}

/// How one reconciler stands, in words.
fn standing(it: &Component) -> String {
    let Component { name, message, .. } = it;
    if !it.is_registered {
        return format!("{name} has worked on it and is not registered any more");
    }
    if let Some((host, time)) = &it.running {
        return format!("{name} has been at it on host {host} for {}", span(*time));
    }
    let attempt = if it.attempt > 1 { format!("attempt {}, ", it.attempt) } else { String::new() };
    let next = it.next_run.map(|time| format!(" ({attempt}next try {})", within(time))).unwrap_or_default();
    let said = if message.is_empty() { String::new() } else { format!(": {}", quote(message)) };
    match it.state.as_str() {
        "failed" => format!("{name} failed{said}{next}"),
        "stopped" => format!("{name} was stopped; run it again to go on"),
        "paused" => format!("{name} is paused"),
        "not_ready" => format!("{name} waits for {}{}", waits(it), because(message)),
        "ready" => format!("{name} is ready"),
        _ if it.is_waiting => format!("{name} is next in line for a host"),
        "running" => format!("{name} is not done yet{said}{next}"),
        _ => format!("{name} has not begun"),
    }
}

fn waits(it: &Component) -> String {
    let one = |it: &Dependency| match &it.writer {
        Some(writer) => format!("{}, which {writer} writes", it.what),
        None => it.what.clone(),
    };
    match &it.waits_for[..] {
        [] => "something that it has not named".to_owned(),
        all => enumerate(&all.iter().map(one).collect::<Vec<_>>()),
    }
}

/// One reconciler as a line of the chain.
pub(super) fn link(it: &Component) -> Link {
    let state = match (&it.running, it.is_waiting) {
        (Some((host, time)), _) => format!("running on {host} for {}", span(*time)),
        (None, true) => format!("{}, in line", it.state.replace('_', " ")),
        (None, false) => it.state.replace('_', " "),
    };
    let mut parts = vec![state];
    if !it.waits_for.is_empty() {
        parts.push(format!("waits for {}", waits(it)));
    }
    if it.attempt > 0 {
        parts.push(format!("attempt {}", it.attempt));
    }
    if let Some(next) = it.next_run {
        parts.push(format!("next run {}", within(next)));
    }
    if !it.is_registered {
        parts.push("not registered".to_owned());
    }
    Link {
        relation: "reconciler".into(),
        name: it.name.clone(),
        state: parts.join(", "),
        detail: quote(&it.message),
    }
}
