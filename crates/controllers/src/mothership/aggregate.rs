//! One status of many: what the reconcilers of an entry say, taken together. A plain function.

use std::collections::BTreeMap;
use std::sync::Arc;

use concert_model::condition::{self, Status};
use concert_model::inventory::{Entry, State};
use concert_model::{Condition, Object, Timestamp};
use serde_json::{Value, json};

use super::vocabulary::{condition as kind, reason};

/// Reconcilers that a message speaks of.
const SPOKEN_OF_MAX: usize = 5;
/// Longest message of one of them.
const WORDS_MAX: usize = 200;

/// What one reconciler says.
#[derive(Clone, Debug)]
pub struct Part {
    /// Which.
    pub reconciler: Arc<str>,
    /// Where it stands.
    pub state: State,
    /// What its item says.
    pub status: Value,
    /// Whether it is registered, and so can be asked.
    pub is_registered: bool,
}

/// The status of an entry.
pub fn aggregate(entry: &Object, parts: &[Part], now: Timestamp) -> Value {
    let is_deleting = Entry(entry).is_deleting();
    // Who is not registered counts only where it holds up the end.
    let parts: Vec<&Part> = parts.iter().filter(|it| it.is_registered || is_deleting).collect();
    let (phase, is_ready, word) = phase(Entry(entry), &parts);
    let message = message(&parts, is_deleting);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for part in &parts {
        *counts.entry(part.state.as_str()).or_default() += 1;
    }
    let mut status = entry.status().clone();
    if !status.is_object() {
        status = json!({});
    }
    status["phase"] = json!(phase);
    status["message"] = json!(message);
    status["items"] = json!(counts);
    let mut told = vec![Condition::new(kind::READY, is_ready, word, message)];
    told.extend(observed(&parts));
    let is_told = |it: &Value| told.iter().any(|condition| it["type"] == condition.kind.as_str());
    if let Some(list) = status["conditions"].as_array_mut() {
        list.retain(is_told);
    }
    for condition in told {
        let Condition { kind, status: is_so, reason, message, .. } = condition;
        condition::set(&mut status, Condition::new(&kind, is_so, &reason, message), now);
    }
    status
}

/// One condition of each type that reconcilers observe: the worst of what they say. Written one after the
/// other, those that disagree would be a transition each time that the entry is summed up.
fn observed(parts: &[&Part]) -> Vec<Condition> {
    let mut by_type: BTreeMap<String, Vec<(&str, Condition)>> = BTreeMap::new();
    for part in parts {
        for condition in condition::all(&part.status) {
            if condition.kind != kind::READY && condition.kind != kind::DEPENDENCIES_READY {
                by_type.entry(condition.kind.clone()).or_default().push((&*part.reconciler, condition));
            }
        }
    }
    by_type.into_values().filter_map(worst).collect()
}

/// What is said of one type, in one. Where several say something, the message tells who says this.
fn worst(said: Vec<(&str, Condition)>) -> Option<Condition> {
    let rank = |it: &Condition| match it.status {
        Status::False => 0,
        Status::Unknown => 1,
        Status::True => 2,
    };
    let is_shared = said.len() > 1;
    let least = said.iter().map(|(_, it)| rank(it)).min()?;
    let of_least: Vec<(&str, Condition)> = said.into_iter().filter(|(_, it)| rank(it) == least).collect();
    let message = |(who, it): &(&str, Condition)| format!("{who}: {}", words(&it.message));
    let texts: Vec<String> = of_least.iter().take(SPOKEN_OF_MAX).map(message).collect();
    let (_, first) = of_least.into_iter().next()?;
    Some(if is_shared { Condition { message: texts.join("; "), ..first } } else { first })
}

fn phase(entry: Entry<'_>, parts: &[&Part]) -> (&'static str, Status, &'static str) {
    let any = |state: State| parts.iter().any(|it| it.state == state);
    if entry.is_deleting() {
        return ("Deleting", Status::False, reason::DELETING);
    }
    if entry.is_paused() {
        return ("Paused", Status::Unknown, reason::PAUSED);
    }
    if parts.is_empty() {
        return ("Pending", Status::Unknown, reason::NO_RECONCILERS);
    }
    if any(State::Failed) {
        return ("Failed", Status::False, reason::RECONCILE_ERROR);
    }
    if any(State::Stopped) {
        return ("Stopped", Status::False, reason::STOPPED);
    }
    if any(State::NotReady) {
        return ("Reconciling", Status::False, reason::DEPENDENCIES_MISSING);
    }
    if parts.iter().all(|it| it.state == State::Ready) {
        return ("Ready", Status::True, reason::RECONCILED);
    }
    let is_begun = parts.iter().any(|it| it.state != State::Pending);
    let phase = if is_begun { "Reconciling" } else { "Pending" };
    (phase, Status::False, if is_begun { reason::IN_PROGRESS } else { reason::PENDING })
}

/// What is not as it should be, worst first.
fn message(parts: &[&Part], is_deleting: bool) -> String {
    let order = |it: &&&Part| match it.state {
        State::Failed => 0,
        State::Stopped => 1,
        State::NotReady => 2,
        _ => 3,
    };
    let mut open: Vec<&&Part> = parts.iter().filter(|it| is_deleting || it.state != State::Ready).collect();
    open.sort_by_key(order);
    let mut texts: Vec<String> = open.iter().take(SPOKEN_OF_MAX).map(|it| sentence(it)).collect();
    if open.len() > SPOKEN_OF_MAX {
        texts.push(format!("and {} more", open.len() - SPOKEN_OF_MAX));
    }
    texts.join("; ")
}

/// What is to be said of one reconciler.
pub fn sentence(part: &Part) -> String {
    let Part { reconciler, state, status, is_registered } = part;
    let said = words(status["message"].as_str().unwrap_or_default());
    let because = if said.is_empty() { String::new() } else { format!(": {said}") };
    if !is_registered {
        return format!("{reconciler} is not registered, and has worked on it");
    }
    match state {
        State::Failed => format!("{reconciler} failed{because}"),
        State::Stopped => format!("{reconciler} is stopped"),
        State::Paused => format!("{reconciler} is paused"),
        State::NotReady => format!("{reconciler} waits for {}{because}", waits(status)),
        State::Running => format!("{reconciler} is at it{because}"),
        State::Pending => format!("{reconciler} has not begun"),
        // Only of an entry that goes: it was, and has not said that it is done.
        State::Ready => format!("{reconciler} has not been asked yet"),
    }
}

/// What an item waits for, in words.
pub fn waits(status: &Value) -> String {
    let all: Vec<String> = status["waitsFor"].as_array().into_iter().flatten().map(words_for).collect();
    if all.is_empty() { "something".to_owned() } else { all.join(", ") }
}

/// One thing that is waited for, in words.
pub fn words_for(wait: &Value) -> String {
    let text = |field: &str| wait[field].as_str().filter(|it| !it.is_empty());
    let mut words = match (text("section"), text("condition")) {
        (Some(section), _) => format!("section {section}"),
        (None, Some(condition)) => format!("condition {condition}"),
        (None, None) => "something".to_owned(),
    };
    if let Some(path) = text("path") {
        words += &format!(" {path}");
    }
    if let Some(entry) = text("entry") {
        words += &format!(" of {entry}");
    }
    words
}

fn words(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim().trim_end_matches('.');
    match line.char_indices().nth(WORDS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(spec: Value) -> Object {
        Object::from_value(json!({"apiVersion": "inventory.concert.dev/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "rt-1"}, "spec": spec}))
        .unwrap()
    }

    fn part(reconciler: &str, state: State, status: Value) -> Part {
        Part { reconciler: reconciler.into(), state, status, is_registered: true }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn r15_an_entry_is_as_ready_as_the_least_ready_of_its_items() {
        let ready = || part("network", State::Ready, json!({}));
        for (others, phase, message) in [
            (vec![], "Ready", ""),
            (
                vec![part("shoot", State::Running, json!({"message": "creating"}))],
                "Reconciling",
                "shoot is at it: creating",
            ),
            (vec![part("shoot", State::Pending, json!({}))], "Reconciling", "shoot has not begun"),
            (
                vec![part(
                    "shoot",
                    State::NotReady,
                    json!({"waitsFor": [{"section": "network", "path": "/vnet_name"}]}),
                )],
                "Reconciling",
                "shoot waits for section network /vnet_name",
            ),
            (vec![part("shoot", State::Stopped, json!({}))], "Stopped", "shoot is stopped"),
            (
                vec![part("shoot", State::Failed, json!({"message": "no quota.\nat all"}))],
                "Failed",
                "shoot failed: no quota",
            ),
        ] {
            let parts: Vec<Part> = [ready()].into_iter().chain(others).collect();
            let status = aggregate(&entry(json!({"kind": "runtime"})), &parts, at(1));
            assert_eq!((&status["phase"], &status["message"]), (&json!(phase), &json!(message)));
            let ready = condition::find(&status, "Ready").unwrap();
            assert_eq!(ready.status == Status::True, phase == "Ready");
        }
    }

    #[test]
    fn what_reconcilers_observe_is_shown_of_the_entry_until_they_no_longer_do() {
        let mut object = entry(json!({"kind": "byoc"}));
        let observed = json!({"conditions": [{"type": "Reachable", "status": "True", "reason": "Answers"}]});
        let status = aggregate(&object, &[part("byoc", State::Ready, observed)], at(1));
        assert_eq!(condition::find(&status, "Reachable").unwrap().status, Status::True);
        object.set("status", status.clone());
        let again = aggregate(&object, &[part("byoc", State::Ready, json!({}))], at(2));
        assert!(condition::find(&again, "Reachable").is_none());
        assert_eq!(condition::find(&again, "Ready"), condition::find(&status, "Ready"), "not told anew");
    }

    #[test]
    fn r15_of_one_type_the_worst_is_shown_with_who_says_it_and_is_told_once() {
        let said = |reconciler: &str, status: &str| {
            let message = format!("{status} it is");
            let condition =
                json!({"type": "Available", "status": status, "reason": status, "message": message});
            part(reconciler, State::Ready, json!({"conditions": [condition]}))
        };
        for (all, worst, message) in [
            (vec![said("a", "True")], Status::True, "True it is"),
            (vec![said("a", "True"), said("b", "True")], Status::True, "a: True it is; b: True it is"),
            (vec![said("a", "False"), said("b", "True")], Status::False, "a: False it is"),
            (vec![said("a", "True"), said("b", "Unknown")], Status::Unknown, "b: Unknown it is"),
            (
                vec![said("a", "Unknown"), said("b", "False"), said("c", "True")],
                Status::False,
                "b: False it is",
            ),
        ] {
            let mut object = entry(json!({"kind": "runtime"}));
            let status = aggregate(&object, &all, at(1));
            let available = condition::find(&status, "Available").unwrap();
            assert_eq!((available.status, available.message.as_str()), (worst, message));
            object.set("status", status.clone());
            assert_eq!(aggregate(&object, &all, at(99)), status, "nothing has changed");
        }
    }

    #[test]
    fn who_is_not_registered_counts_only_where_it_holds_up_the_end() {
        let gone = Part { is_registered: false, ..part("old", State::Failed, json!({})) };
        let status = aggregate(&entry(json!({"kind": "runtime"})), std::slice::from_ref(&gone), at(1));
        assert_eq!(status["phase"], "Pending");
        let mut object = entry(json!({"kind": "runtime"}));
        object.set_metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
        let status = aggregate(&object, &[gone], at(1));
        assert_eq!(status["phase"], "Deleting");
        assert!(status["message"].as_str().unwrap().contains("old is not registered"));
    }

    #[test]
    fn a_paused_entry_is_neither_ready_nor_not() {
        let status = aggregate(&entry(json!({"kind": "runtime", "paused": true})), &[], at(1));
        assert_eq!(
            (&status["phase"], condition::find(&status, "Ready").unwrap().status),
            (&json!("Paused"), Status::Unknown)
        );
    }
}
