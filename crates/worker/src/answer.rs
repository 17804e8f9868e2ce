//! What a component reconciler answers.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use concert_model::Condition;
use concert_model::condition::Status;
use serde_json::{Map, Value, json};

use crate::error::Error;

/// How long somebody is left alone who has too much to do and does not say for how long.
const BUSY: Duration = Duration::from_secs(10);
/// Longest message and longest reason that the server takes, in bytes.
const MESSAGE_MAX: usize = 32 * 1024;
const REASON_MAX: usize = 1024;
const ELLIPSIS: &str = "…";

/// What [`crate::Component::reconcile`] ends with.
pub type Outcome = Result<Answer, Failed>;

/// An end that is no failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    kind: Kind,
    message: String,
    conditions: Vec<Condition>,
    retry_after: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Ready,
    Requeue,
    NotReady(Vec<Waits>),
}

impl Answer {
    /// All is as it should be. The next run is for a change, an event or the resync.
    pub fn ready(message: impl Into<String>) -> Self {
        Self::of(Kind::Ready, message)
    }

    /// It goes well and is not finished: come back after a while.
    pub fn requeue(after: Duration, message: impl Into<String>) -> Self {
        Self { retry_after: Some(after), ..Self::of(Kind::Requeue, message) }
    }

    /// Something that others make is not there yet. Costs no retry; a write of what is waited for wakes
    /// the item at once.
    pub fn not_ready(message: impl Into<String>, waits_for: impl IntoIterator<Item = Waits>) -> Self {
        Self::of(Kind::NotReady(waits_for.into_iter().collect()), message)
    }

    fn of(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), conditions: Vec::new(), retry_after: None }
    }

    /// The same, and look again after this time in any case.
    #[must_use]
    pub fn again_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }

    /// The same, with a condition of the component's own.
    #[must_use]
    pub fn with_condition(
        mut self,
        kind: &str,
        status: Status,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        self.conditions.push(Condition::new(kind, status, reason, message));
        self
    }

    /// Whether everything is as it should be.
    pub fn is_ready(&self) -> bool {
        self.kind == Kind::Ready
    }

    /// What is waited for, if this is an answer that waits.
    pub fn waits_for(&self) -> &[Waits] {
        match &self.kind {
            Kind::NotReady(waits) => waits,
            Kind::Ready | Kind::Requeue => &[],
        }
    }

    /// A sentence for people.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// What an item waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    what: What,
    entry: Option<String>,
    version: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Section { name: String, path: Option<String> },
    Condition(String),
}

impl Waits {
    /// Any write of a section.
    pub fn section(section: &str) -> Self {
        Self { what: What::Section { name: section.to_owned(), path: None }, entry: None, version: None }
    }

    /// A condition of the entry that is to become `True`, such as one that another reconciler observes.
    pub fn condition(kind: &str) -> Self {
        Self { what: What::Condition(kind.to_owned()), entry: None, version: None }
    }

    /// The same, but only if what this JSON pointer leads to in the section has changed. A condition has
    /// no parts.
    #[must_use]
    pub fn path(self, to: &str) -> Self {
        match self.what {
            What::Section { name, .. } => {
                Self { what: What::Section { name, path: Some(to.to_owned()) }, ..self }
            }
            What::Condition(_) => self,
        }
    }

    /// The same, of a section at this version: if it is at another one by now, there is nothing to wait for.
    /// A condition has none.
    #[must_use]
    pub fn at_version(self, version: u64) -> Self {
        Self { version: Some(version), ..self }
    }

    /// The same, of another entry. Of its sections it counts what was read of them: [`Waits::at_version`], or
    /// that they were not there.
    #[must_use]
    pub fn of_entry(self, entry: &str) -> Self {
        Self { entry: Some(entry.to_owned()), ..self }
    }

    fn to_json(&self) -> Value {
        let mut whole = match &self.what {
            What::Section { name, path: None } => json!({ "section": name }),
            What::Section { name, path: Some(path) } => json!({ "section": name, "path": path }),
            What::Condition(kind) => json!({ "condition": kind }),
        };
        let is_section = matches!(self.what, What::Section { .. });
        if let Some(entry) = &self.entry {
            whole["entry"] = json!(entry);
        }
        if let Some(version) = self.version.or(self.entry.as_ref().map(|_| 0)).filter(|_| is_section) {
            whole["version"] = json!(version);
        }
        whole
    }
}

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It may go better next time: exponential back-off.
    Transient,
    /// The target cluster does not answer. After some of these in a row it is left alone for a while.
    Unreachable,
    /// Nothing but a change of what is wanted helps.
    Terminal,
    /// Somebody has too much to do. It is no failure, counts as none, and is tried again in a while.
    Busy,
}

/// An end that is a failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    class: Class,
    message: String,
    conditions: Vec<Condition>,
    retry_after: Option<Duration>,
}

impl Failed {
    /// It may go better next time.
    pub fn transient(message: impl Display) -> Self {
        Self::of(Class::Transient, message)
    }

    /// The target cluster does not answer.
    pub fn unreachable(message: impl Display) -> Self {
        Self::of(Class::Unreachable, message)
    }

    /// Only a change helps.
    pub fn terminal(message: impl Display) -> Self {
        Self::of(Class::Terminal, message)
    }

    /// Somebody has too much to do, as with HTTP's 429; [`Failed::again_after`] says for how long.
    pub fn busy(message: impl Display) -> Self {
        Self::of(Class::Busy, message).again_after(BUSY)
    }

    fn of(class: Class, message: impl Display) -> Self {
        Self { class, message: message.to_string(), conditions: Vec::new(), retry_after: None }
    }

    /// The same; whoever refused wishes to be left alone for so long.
    #[must_use]
    pub fn again_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }

    /// The same, with a condition of the component's own.
    #[must_use]
    pub fn with_condition(
        mut self,
        kind: &str,
        status: Status,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        self.conditions.push(Condition::new(kind, status, reason, message));
        self
    }

    /// Whether trying again can help.
    pub fn class(&self) -> Class {
        self.class
    }

    /// What happened.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl From<Error> for Failed {
    /// Whatever an inventory refuses may be permitted a moment later: grants change, sections move. That it
    /// has too much to do is nobody's failure.
    fn from(error: Error) -> Self {
        match error.is_busy() {
            true => Self::busy(error.chain()).again_after(error.retry_after().unwrap_or(BUSY)),
            false => Self::transient(error.chain()),
        }
    }
}

/// The result as the mothership wants it, without item and fence.
pub(crate) fn to_json(outcome: &Outcome, observed_revision: u64) -> Map<String, Value> {
    let (word, message, conditions, retry_after) = match outcome {
        Ok(it) => (word(&it.kind), &it.message, &it.conditions, it.retry_after),
        Err(it) if it.class == Class::Busy => ("requeue", &it.message, &it.conditions, it.retry_after),
        Err(it) => ("failed", &it.message, &it.conditions, it.retry_after),
    };
    let mut body = Map::new();
    body.insert("outcome".into(), json!(word));
    body.insert("observed_revision".into(), json!(observed_revision));
    body.insert("message".into(), json!(cut(message, MESSAGE_MAX)));
    if let Some(after) = retry_after {
        body.insert("retry_after".into(), json!(after.as_secs_f64()));
    }
    let class = outcome.as_ref().err().and_then(|it| match it.class {
        Class::Transient => Some("transient"),
        Class::Unreachable => Some("unreachable"),
        Class::Terminal => Some("terminal"),
        Class::Busy => None,
    });
    if let Some(class) = class {
        body.insert("error_class".into(), json!(class));
    }
    if let Ok(Answer { kind: Kind::NotReady(waits), .. }) = outcome {
        body.insert("waits_for".into(), waits.iter().map(Waits::to_json).collect());
    }
    if !conditions.is_empty() {
        let shown = |it: &Condition| {
            json!({"type": it.kind, "status": it.status, "reason": cut(&it.reason, REASON_MAX),
                "message": cut(&it.message, MESSAGE_MAX)})
        };
        body.insert("conditions".into(), conditions.iter().map(shown).collect());
    }
    body
}

/// As much of a text as the server takes: a result that says too much must not get lost for it.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most - ELLIPSIS.len());
    Cow::Owned(format!("{}{ELLIPSIS}", &text[..end]))
}

fn word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Ready => "ready",
        Kind::Requeue => "requeue",
        Kind::NotReady(_) => "not_ready",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_of_another_entry_is_waited_for_at_the_version_that_was_read() {
        let shown = |waits: Waits| waits.to_json();
        assert_eq!(shown(Waits::section("a").path("/b")), json!({"section": "a", "path": "/b"}));
        assert_eq!(
            shown(Waits::section("a").of_entry("hub")),
            json!({"section": "a", "entry": "hub", "version": 0})
        );
        assert_eq!(
            shown(Waits::section("a").of_entry("hub").at_version(3)),
            json!({"section": "a", "entry": "hub", "version": 3})
        );
        assert_eq!(
            shown(Waits::condition("A").of_entry("hub").at_version(3)),
            json!({"condition": "A", "entry": "hub"})
        );
    }

    #[test]
    fn r17_whoever_has_too_much_to_do_is_asked_again_and_nobody_has_failed() {
        let refused = |status, retry_after| {
            let detail = "later".to_owned();
            let failed: Failed = Error::Refused { status, detail, retry_after }.into();
            Value::Object(to_json(&Err(failed), 7))
        };
        let asked = Some(Duration::from_secs(7));
        for status in [429, 503] {
            assert_eq!(
                refused(status, asked),
                json!({"outcome": "requeue", "observed_revision": 7, "retry_after": 7.0,
                    "message": format!("later (HTTP {status})")})
            );
        }
        assert_eq!(refused(429, None)["outcome"], "requeue");
        assert_eq!(refused(429, None)["retry_after"], 10.0);
        assert_eq!(refused(503, None)["error_class"], "transient");
        assert_eq!(refused(403, asked)["error_class"], "transient");
    }

    #[test]
    fn every_end_has_its_own_word_on_the_wire() {
        let shown = |outcome: Outcome| Value::Object(to_json(&outcome, 7));
        assert_eq!(
            shown(Ok(Answer::ready("ok"))),
            json!({"outcome": "ready", "observed_revision": 7, "message": "ok"})
        );
        assert_eq!(
            shown(Ok(Answer::requeue(Duration::from_millis(1500), "growing"))),
            json!({"outcome": "requeue", "observed_revision": 7, "message": "growing", "retry_after": 1.5})
        );
        let waits = [Waits::section("network").path("/vnet_name"), Waits::section("a").of_entry("other")];
        assert_eq!(
            shown(Ok(Answer::not_ready("no network", waits))),
            json!({"outcome": "not_ready", "observed_revision": 7, "message": "no network",
                "waits_for": [{"section": "network", "path": "/vnet_name"}, {"section": "a", "entry": "other", "version": 0}]})
        );
        assert_eq!(
            shown(Err(Failed::terminal("never"))),
            json!({"outcome": "failed", "observed_revision": 7, "message": "never", "error_class": "terminal"})
        );
    }

    #[test]
    fn what_is_waited_for_may_be_a_condition() {
        let waits = [Waits::condition("Reachable"), Waits::condition("Ready").path("/a").of_entry("other")];
        let body = to_json(&Ok(Answer::not_ready("", waits)), 1);
        let wanted = json!([{"condition": "Reachable"}, {"condition": "Ready", "entry": "other"}]);
        assert_eq!(body["waits_for"], wanted);
    }

    #[test]
    fn a_text_that_is_too_long_for_the_server_is_cut() {
        let long = "ü".repeat(MESSAGE_MAX);
        let failed = Failed::transient(&long).with_condition("A", Status::False, &long, &long);
        let body = to_json(&Err(failed), 1);
        let length = |text: &Value| text.as_str().unwrap().len();
        for (text, most) in [
            (&body["message"], MESSAGE_MAX),
            (&body["conditions"][0]["message"], MESSAGE_MAX),
            (&body["conditions"][0]["reason"], REASON_MAX),
        ] {
            assert!(length(text) <= most && length(text) > most - 6, "{}", length(text));
        }
    }

    #[test]
    fn a_cluster_that_does_not_answer_is_a_class_of_its_own() {
        for (failed, class) in [
            (Failed::transient(""), "transient"),
            (Failed::unreachable(""), "unreachable"),
            (Failed::terminal(""), "terminal"),
        ] {
            assert_eq!(to_json(&Err(failed), 1)["error_class"], class);
        }
    }

    #[test]
    fn conditions_go_with_answers_and_with_failures() {
        let ready = Answer::ready("").with_condition("Reachable", Status::True, "Answered", "it answers");
        let failed = Failed::transient("x").with_condition("Reachable", Status::False, "NoAnswer", "silence");
        for (outcome, status) in [(Ok(ready), "True"), (Err(failed), "False")] {
            let body = to_json(&outcome, 1);
            assert_eq!(body["conditions"][0]["type"], "Reachable");
            assert_eq!(body["conditions"][0]["status"], status);
        }
    }
}
