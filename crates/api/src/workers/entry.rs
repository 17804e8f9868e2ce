//! What component reconcilers are lent, and what they report: items called `ENTRY/RECONCILER`.

use std::collections::BTreeSet;
use std::time::Duration;

use concert_engine::workers::{Claimed, Report};
use concert_model::inventory::{Entry, Grant, Lease, Right, names};
use concert_model::{Object, Uid, time};
use concert_store::Error as StoreError;
use serde_json::{Map, Value, json};

use super::claim::lent;
use super::component::is_path;
use super::door::Inner;
use super::register::called;
use crate::inventory::{Unminted, Wanted};
use crate::rest::{Error, Fields};

/// Things that one item waits for, and conditions that one run observes.
const LIST_MAX: usize = 100;
/// Longest message: what one line of a status can bear.
const MESSAGE_MAX: usize = 32 * 1024;
/// Longest reason: what a condition of Kubernetes may have.
const REASON_MAX: usize = 1024;
/// Longest wait that a result asks for: a year.
const AFTER_MAX: f64 = 31_536_000.0;
/// Shortest life of a token: a lease may be shorter than the way there.
const TOKEN_MIN: Duration = Duration::from_secs(60);
/// Longest one: what the inventory gives.
const TOKEN_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What the engine calls times that come.
const TIMERS: [&str; 5] = ["poll", "waited", "retry", "after", "restored"];

/// Whether an item is one of an entry: ids of resources are numbers.
pub(super) fn is_meant(item: &str) -> bool {
    item.contains('/')
}

impl Inner {
    /// Items of entries as their host is told of them, each with a token for its entry. What no token can
    /// be had for goes back.
    pub async fn lent_entries(&self, worker: &str, claimed: &[Claimed]) -> Result<Vec<Value>, Error> {
        if claimed.is_empty() {
            return Ok(Vec::new());
        }
        let minting = &self.parts.fleet.minting;
        let wanted = |it: &Claimed| {
            // Which incarnation of the item: fences of different ones cannot be compared.
            let item = it.context["item"].as_str().unwrap_or_default();
            let lease = Some(Lease { item: Uid(item.into()), fence: it.fence });
            Wanted { entry: it.key.name.to_string(), reconciler: worker.to_owned(), lease }
        };
        let wanted: Vec<Wanted> = claimed.iter().map(wanted).collect();
        let lifetime = self.parts.board.terms(worker).deadline.clamp(TOKEN_MIN, TOKEN_MAX);
        let tokens = match minting.mint(&wanted, lifetime).await {
            Ok(tokens) => tokens,
            Err(error) => {
                claimed.iter().for_each(|it| self.give_back(worker, it));
                return Err(match error {
                    Unminted::Refused(why) => {
                        Error::unavailable(format!("the inventory refuses tokens: {why}"))
                    }
                    Unminted::Unavailable(why) => {
                        Error::unavailable(format!("the inventory gives no tokens: {why}"))
                    }
                });
            }
        };
        let mut items = Vec::new();
        for (it, token) in claimed.iter().zip(tokens) {
            let Some(token) = token else {
                self.give_back(worker, it);
                continue;
            };
            let mut item = lent(it, shown(it));
            item["reasons"] = json!(reasons(it));
            item["inventory"] = json!({
                "url": minting.url(&it.key.name),
                "revision": it.context["revision"],
                "token": token.token,
                "expires_at": time::micros(token.expires_at),
            });
            items.push(item);
        }
        Ok(items)
    }

    /// Whether a reconciler may read sections, by the grant that it has.
    pub async fn permit_reading(&self, worker: &str, sections: &BTreeSet<&str>) -> Result<(), Error> {
        if sections.is_empty() {
            return Ok(());
        }
        let grant = match self.parts.fleet.inventory.get(&names::grant_key(worker)).await {
            Ok(grant) => Grant::of(&grant.decode()),
            Err(StoreError::NotFound { .. } | StoreError::UnknownKind { .. }) => Grant::default(),
            Err(error) => return Err(error.into()),
        };
        check_reading(worker, &grant, sections)
    }

    /// Whether a reconciler may wait for what a result says. Conditions of its own entry it may; those of
    /// others if it handles their kind, and so is lent them with all that they say.
    pub async fn permit_waiting(&self, worker: &Object, item: &str, report: &Report) -> Result<(), Error> {
        let name = called(worker);
        self.permit_reading(name, &awaited(report)).await?;
        let own = item.split_once('/').map_or(item, |(entry, _)| entry);
        let mut others = observed(report);
        others.remove(own);
        for id in others {
            let entry = match self.parts.fleet.inventory.get(&names::entry_key(id)).await {
                Ok(entry) => entry.decode(),
                // It says nothing yet, and what it comes to say is asked for again.
                Err(StoreError::NotFound { .. } | StoreError::UnknownKind { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let handles = worker.spec()["handles"].as_array();
            if !handles.into_iter().flatten().any(|it| it["entryKind"] == Entry(&entry).kind()) {
                let detail = format!("reconciler '{name}' does not handle entries such as '{id}'");
                return Err(Error::forbidden(detail));
            }
        }
        Ok(())
    }

    fn give_back(&self, worker: &str, item: &Claimed) {
        // A lease that has ended meanwhile is as good.
        self.parts.board.release(worker, &item.item, item.fence).ok();
    }
}

/// Why it runs. A time that had not come yet when something else did is no reason.
fn reasons(it: &Claimed) -> Vec<&'static str> {
    let all: Vec<&'static str> = it.reasons.iter().map(|(word, _)| word).collect();
    let news: Vec<&'static str> = all.iter().copied().filter(|it| !TIMERS.contains(it)).collect();
    if news.is_empty() { all } else { news }
}

fn shown(it: &Claimed) -> Value {
    let entry = Entry(&it.object);
    json!({
        "entry": entry.id(),
        "kind": entry.kind(),
        "tenant": entry.tenant(),
        "labels": it.object.labels(),
        "deleting": it.context["deleting"].as_bool().unwrap_or_default(),
    })
}

/// Refuses sections that a grant does not show: that somebody has written one is part of what is in it.
pub(super) fn check_reading(worker: &str, grant: &Grant, sections: &BTreeSet<&str>) -> Result<(), Error> {
    match sections.iter().find(|it| !grant.allows(Right::Read, it)) {
        None => Ok(()),
        Some(section) => {
            let detail = format!("reconciler '{worker}' has no grant to read section '{section}'");
            Err(Error::forbidden(detail))
        }
    }
}

/// The sections that a result waits for.
fn awaited(report: &Report) -> BTreeSet<&str> {
    let waits = report.details.get("waits_for").and_then(Value::as_array);
    waits.into_iter().flatten().filter_map(|it| it["section"].as_str()).collect()
}

/// The entries that a result names of which it waits for conditions.
fn observed(report: &Report) -> BTreeSet<&str> {
    let waits = report.details.get("waits_for").and_then(Value::as_array);
    let conditions = waits.into_iter().flatten().filter(|it| it["condition"].is_string());
    conditions.filter_map(|it| it["entry"].as_str()).collect()
}

/// Reads the result of a run. A `status` means nothing here and is passed over: an entry has no phase, and
/// what its item shows follows from the outcome.
pub(super) fn report(result: &Value) -> Result<Report, Error> {
    let mut fields = Fields::of(result)?;
    let outcome = fields.choice("outcome", &["ready", "requeue", "not_ready", "failed"]);
    if outcome.is_none() && !fields.is_noted("outcome") {
        fields.required_text("outcome");
    }
    let message = fields.text("message").unwrap_or_default().to_owned();
    if message.len() > MESSAGE_MAX {
        fields.refuse_unshown("message", "message is too long");
    }
    let class = fields.choice("error_class", &["transient", "terminal", "unreachable"]);
    let revision = fields.integer("observed_revision").and_then(|it| u64::try_from(it).ok());
    let after = fields.number("retry_after");
    if after.is_some_and(|it| !(0.0..=AFTER_MAX).contains(&it)) {
        fields.refuse("retry_after", "retry_after must be seconds, up to a year");
    }
    let rule = "each must have a section, with the version that was read if it is of another entry, or a \
                condition of an entry";
    let waits_for = list(&mut fields, "waits_for", wait, rule);
    let rule = "each must have a type and a status, and no longer texts than a message may be";
    let conditions = list(&mut fields, "conditions", condition, rule);
    fields.check()?;
    let mut details = Map::new();
    details.insert("outcome".into(), json!(outcome));
    details.insert("error_class".into(), json!(class));
    details.insert("observed_revision".into(), json!(revision));
    details.insert("waits_for".into(), json!(waits_for));
    details.insert("conditions".into(), json!(conditions));
    Ok(Report {
        success: Some(outcome != Some("failed")),
        message,
        requeue_after: after.and_then(|it| Duration::try_from_secs_f64(it).ok()),
        waits: Vec::new(),
        details,
    })
}

fn list(fields: &mut Fields<'_>, field: &str, read: fn(&Value) -> Option<Value>, rule: &str) -> Vec<Value> {
    let given = fields.list(field).unwrap_or_default();
    let read: Option<Vec<Value>> = given.iter().map(read).collect();
    match read {
        Some(read) if read.len() <= LIST_MAX => read,
        _ => {
            fields.refuse(field, rule);
            Vec::new()
        }
    }
}

fn wait(value: &Value) -> Option<Value> {
    let text = |field: &str| value[field].as_str().filter(|it| !it.is_empty());
    let mut wait = Map::new();
    match (text("section"), text("condition")) {
        (Some(section), None) if names::check_section(section).is_ok() => {
            wait.insert("section".into(), json!(section));
        }
        (None, Some(condition)) if condition.len() <= 316 => {
            wait.insert("condition".into(), json!(condition));
        }
        _ => return None,
    }
    match &value["path"] {
        Value::Null => {}
        Value::String(path) if wait.contains_key("section") && is_path(path) => {
            wait.insert("path".into(), json!(path));
        }
        _ => return None,
    }
    match &value["entry"] {
        Value::Null => {}
        Value::String(entry) if names::check_entry(entry).is_ok() => {
            wait.insert("entry".into(), json!(entry));
        }
        _ => return None,
    }
    // The revision that was observed is that of the entry itself: of others it must be said what was read.
    let is_of_other = wait.contains_key("entry") && wait.contains_key("section");
    match &value["version"] {
        Value::Null if !is_of_other => {}
        version if wait.contains_key("section") && version.is_u64() => {
            wait.insert("version".into(), version.clone());
        }
        _ => return None,
    }
    Some(Value::Object(wait))
}

fn condition(value: &Value) -> Option<Value> {
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    let kind = Some(text("type")).filter(|it| !it.is_empty() && it.len() <= 316)?;
    let status = Some(text("status")).filter(|it| ["True", "False", "Unknown"].contains(it))?;
    let reason = Some(text("reason")).filter(|it| it.len() <= REASON_MAX)?;
    let message = Some(text("message")).filter(|it| it.len() <= MESSAGE_MAX)?;
    Some(json!({"type": kind, "status": status, "reason": reason, "message": message}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_says_what_it_waits_for() {
        let said = json!({"outcome": "not_ready", "message": "no network", "observed_revision": 57,
            "waits_for": [{"section": "network", "path": "/vnet_name"}, {"condition": "Ready", "entry": "rt-2"},
                {"section": "network", "entry": "rt-2", "version": 0}]});
        let report = report(&said).unwrap();
        assert_eq!(report.details["waits_for"], said["waits_for"]);
        assert_eq!(
            (report.message.as_str(), &report.details["observed_revision"]),
            ("no network", &json!(57))
        );
    }

    #[test]
    fn a_status_is_passed_over() {
        for status in [json!("ready"), json!("shiny"), json!({})] {
            let said = json!({"outcome": "not_ready", "status": status});
            let report = report(&said).unwrap();
            let plain = super::report(&json!({"outcome": "not_ready"})).unwrap();
            assert_eq!((report.success, &report.details), (plain.success, &plain.details), "{said}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for said in [
            json!({}),
            json!({"outcome": "done"}),
            json!({"outcome": "failed", "error_class": "mine"}),
            json!({"outcome": "ready", "retry_after": -1}),
            json!({"outcome": "not_ready", "waits_for": [{}]}),
            json!({"outcome": "not_ready", "waits_for": [{"section": "A B"}]}),
            json!({"outcome": "not_ready", "waits_for": [{"section": "a", "path": "b"}]}),
            json!({"outcome": "not_ready", "waits_for": [{"section": "a", "condition": "b"}]}),
            json!({"outcome": "not_ready", "waits_for": [{"section": "a", "entry": "rt-2"}]}),
            json!({"outcome": "not_ready", "waits_for": [{"section": "a", "version": -1}]}),
            json!({"outcome": "not_ready", "waits_for": [{"condition": "a", "version": 1}]}),
            json!({"outcome": "ready", "conditions": [{"type": "A", "status": "yes"}]}),
            json!({"outcome": "ready", "message": "x".repeat(MESSAGE_MAX + 1)}),
            json!({"outcome": "ready", "conditions":
                [{"type": "A", "status": "True", "message": "x".repeat(MESSAGE_MAX + 1)}]}),
            json!({"outcome": "ready", "conditions":
                [{"type": "A", "status": "True", "reason": "x".repeat(REASON_MAX + 1)}]}),
        ] {
            assert!(report(&said).is_err(), "{said}");
        }
    }
}
