//! What a report means for an item: its status, and when it runs again. A plain function.

use std::collections::BTreeMap;
use std::time::Duration;

use concert_engine::Backoff;
use concert_engine::workers::Report;
use concert_model::condition::{self, Status};
use concert_model::inventory::State;
use concert_model::{Condition, Timestamp, time};
use serde_json::{Map, Value, json};

use super::vocabulary::{LEASE_EXPIRED, condition as kind, reason};

/// The one policy for failures: bounds from a second to five minutes, doubling, with full jitter.
pub const BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(300) };
/// When an item looks again that waits for something, unless its reconciler says.
pub const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// At the latest.
pub const LOOK_AGAIN_MAX: Duration = Duration::from_secs(600);
/// When an item goes on whose reconciler has not said when.
pub const GO_ON: Duration = Duration::from_secs(5);

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All is as it should be.
    Ready,
    /// It goes on later; nothing is wrong.
    Requeue,
    /// Something that it needs is not there.
    NotReady,
    /// It failed and may work later.
    Transient,
    /// The same, and it is the target that does not answer.
    Unreachable,
    /// It failed and will fail again until something changes.
    Terminal,
    /// The host was not heard of in time.
    Expired,
}

/// What a host said, or its silence.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// How the run ended.
    pub ended: Ended,
    /// For people.
    pub message: String,
    /// The revision of the entry that it read, if it said.
    pub revision: Option<u64>,
    /// When it wants to look again.
    pub after: Option<Duration>,
    /// What it waits for.
    pub waits_for: Vec<Value>,
    /// What else it has observed.
    pub conditions: Vec<Condition>,
}

impl Said {
    /// Reads a report.
    pub fn of(report: &Report) -> Self {
        let details = &report.details;
        let word = |field: &str| details.get(field).and_then(Value::as_str).unwrap_or_default();
        let ended = match (word("outcome"), word("error_class")) {
            ("ready", _) => Ended::Ready,
            ("requeue", _) => Ended::Requeue,
            ("not_ready", _) => Ended::NotReady,
            (_, "terminal") => Ended::Terminal,
            (_, "unreachable") => Ended::Unreachable,
            _ => Ended::Transient,
        };
        let list = |field: &str| details.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
        let conditions = list("conditions").into_iter();
        Self {
            ended,
            message: report.message.clone(),
            revision: details.get("observed_revision").and_then(Value::as_u64),
            after: report.requeue_after,
            waits_for: list("waits_for"),
            conditions: conditions.filter_map(|it| serde_json::from_value(it).ok()).collect(),
        }
    }

    /// What it comes to when a lease runs out.
    pub fn silence() -> Self {
        Self {
            ended: Ended::Expired,
            message: LEASE_EXPIRED.into(),
            revision: None,
            after: None,
            waits_for: Vec::new(),
            conditions: Vec::new(),
        }
    }
}

/// What a verdict rests on beside the report.
#[derive(Clone, Debug)]
pub struct Moment<'a> {
    /// The time of day.
    pub now: Timestamp,
    /// The status of the item so far.
    pub before: &'a Value,
    /// Failures in a row before this run.
    pub attempt: u64,
    /// The generation of the entry that the host was given.
    pub generation: i64,
    /// The revision of the entry when the host was given it.
    pub revision: u64,
    /// The versions of the sections that wake it, then.
    pub observed: &'a BTreeMap<String, u64>,
    /// How often what is ready is looked at.
    pub resync: Duration,
    /// Whether the entry is to go.
    pub is_deleting: bool,
    /// Chance, from 0 to 1.
    pub draw: f64,
}

/// When an item runs again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// At its next look, or when something changes.
    Rest(Duration),
    /// After this time, since there is more to do.
    GoOn(Duration),
    /// When what it waits for changes, or after this time.
    Park(Duration),
    /// After this time, since it failed.
    Retry(Duration),
    /// When something changes.
    GiveUp,
    /// Never: all is done for an entry that goes.
    Gone,
}

/// The status that an item has now, and when it runs again.
pub fn verdict(said: &Said, moment: &Moment<'_>) -> (Value, Next) {
    let next = next(said, moment);
    let (state, word) = state(said.ended);
    let failures = match said.ended {
        Ended::Ready => 0,
        // Nobody has failed, but what failed before has not worked since.
        Ended::Requeue | Ended::NotReady => moment.attempt,
        Ended::Transient | Ended::Unreachable | Ended::Terminal | Ended::Expired => moment.attempt + 1,
    };
    let mut status = Map::new();
    status.insert("state".into(), json!(state.as_str()));
    status.insert("reason".into(), json!(word));
    status.insert("message".into(), json!(said.message));
    status.insert("attempt".into(), json!(failures));
    status.insert("observedGeneration".into(), json!(moment.generation));
    status.insert("observedRevision".into(), json!(said.revision.unwrap_or(moment.revision)));
    status.insert("observedSections".into(), json!(moment.observed));
    status.insert("lastRun".into(), json!(time::seconds(moment.now)));
    if let Next::Retry(wait) | Next::GoOn(wait) = next {
        status.insert("nextTry".into(), json!(time::seconds(later(moment.now, wait))));
    }
    if said.ended == Ended::NotReady {
        status.insert("waitsFor".into(), json!(said.waits_for));
    }
    if let Some(conditions) = moment.before.get("conditions") {
        status.insert("conditions".into(), conditions.clone());
    }
    let mut status = Value::Object(status);
    for condition in conditions(said, state, word, moment.generation) {
        condition::set(&mut status, condition, moment.now);
    }
    (status, next)
}

fn next(said: &Said, moment: &Moment<'_>) -> Next {
    match said.ended {
        Ended::Ready if moment.is_deleting => Next::Gone,
        Ended::Ready => match said.after {
            Some(after) if after < moment.resync => Next::GoOn(after),
            // Looks are spread, lest all that became ready together be looked at together.
            _ => Next::Rest(moment.resync.mul_f64(0.9 + 0.2 * moment.draw)),
        },
        Ended::Requeue => Next::GoOn(said.after.unwrap_or(GO_ON)),
        Ended::NotReady => Next::Park(said.after.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN_MAX)),
        Ended::Terminal => Next::GiveUp,
        Ended::Transient | Ended::Unreachable | Ended::Expired => {
            let failures = u32::try_from(moment.attempt).unwrap_or(u32::MAX).saturating_add(1);
            Next::Retry(said.after.unwrap_or_else(|| BACKOFF.bound(failures).mul_f64(moment.draw)))
        }
    }
}

fn state(ended: Ended) -> (State, &'static str) {
    match ended {
        Ended::Ready => (State::Ready, reason::RECONCILED),
        Ended::Requeue => (State::Running, reason::IN_PROGRESS),
        Ended::NotReady => (State::NotReady, reason::DEPENDENCIES_MISSING),
        Ended::Transient => (State::Failed, reason::RECONCILE_ERROR),
        Ended::Unreachable => (State::Failed, reason::UNREACHABLE),
        Ended::Terminal => (State::Failed, reason::TERMINAL_ERROR),
        Ended::Expired => (State::Failed, reason::LEASE_EXPIRED),
    }
}

fn conditions(said: &Said, state: State, word: &str, generation: i64) -> Vec<Condition> {
    let truth = |is_so: bool| if is_so { Status::True } else { Status::False };
    let ready = truth(state == State::Ready);
    let mut all = vec![Condition::new(kind::READY, ready, word, said.message.clone())];
    let dependencies = match state {
        State::NotReady => Some((Status::False, word, said.message.clone())),
        // A failure says nothing of them.
        State::Failed => None,
        _ => Some((Status::True, reason::RECONCILED, String::new())),
    };
    all.extend(dependencies.map(|(it, word, text)| Condition::new(kind::DEPENDENCIES_READY, it, word, text)));
    let is_ours = |it: &&Condition| it.kind != kind::READY && it.kind != kind::DEPENDENCIES_READY;
    all.extend(said.conditions.iter().filter(is_ours).cloned());
    all.into_iter().map(|it| it.observed(generation)).collect()
}

/// Whether two statuses say the same: when that was said does not count, so that looks at what is as it
/// should be write nothing.
pub fn is_same(one: &Value, other: &Value) -> bool {
    let without_times = |status: &Value| {
        let mut status = status.clone();
        if let Some(fields) = status.as_object_mut() {
            fields.remove("lastRun");
            fields.remove("nextTry");
        }
        status
    };
    without_times(one) == without_times(other)
}

/// The status of an item that nobody is to work on.
pub fn held(before: &Value, state: State, word: &str, message: &str, now: Timestamp) -> Value {
    let mut status = before.clone();
    if !status.is_object() {
        status = json!({});
    }
    if let Some(fields) = status.as_object_mut() {
        fields.remove("nextTry");
        fields.remove("waitsFor");
    }
    status["state"] = json!(state.as_str());
    status["reason"] = json!(word);
    status["message"] = json!(message);
    condition::set(&mut status, Condition::new(kind::READY, Status::False, word, message), now);
    status
}

fn later(now: Timestamp, wait: Duration) -> Timestamp {
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESYNC: Duration = Duration::from_secs(300);

    fn said(ended: Ended) -> Said {
        Said { ended, message: "said".into(), ..Said::silence() }
    }

    fn judged(said: &Said, attempt: u64, before: &Value) -> (Value, Next) {
        let now = Timestamp::from_second(1_000).unwrap();
        let observed = BTreeMap::from([("network".to_owned(), 3)]);
        verdict(
            said,
            &Moment {
                now,
                before,
                attempt,
                generation: 2,
                revision: 57,
                observed: &observed,
                resync: RESYNC,
                is_deleting: false,
                draw: 0.5,
            },
        )
    }

    #[test]
    fn each_end_has_its_state_and_its_next_time() {
        let after = |seconds| Duration::from_secs(seconds);
        for (ended, state, next, attempt) in [
            (Ended::Ready, "ready", Next::Rest(RESYNC), 0),
            (Ended::Requeue, "running", Next::GoOn(GO_ON), 2),
            (Ended::NotReady, "not_ready", Next::Park(LOOK_AGAIN), 2),
            (Ended::Transient, "failed", Next::Retry(after(2)), 3),
            (Ended::Unreachable, "failed", Next::Retry(after(2)), 3),
            (Ended::Expired, "failed", Next::Retry(after(2)), 3),
            (Ended::Terminal, "failed", Next::GiveUp, 3),
        ] {
            let (status, came) = judged(&said(ended), 2, &Value::Null);
            assert_eq!((&status["state"], &came), (&json!(state), &next), "{ended:?}");
            assert_eq!(status["attempt"], attempt, "{ended:?}");
            assert_eq!(status["observedSections"], json!({"network": 3}));
        }
    }

    #[test]
    fn r10_not_ready_costs_no_retry_and_says_what_it_waits_for() {
        let waits = json!({"section": "network", "path": "/vnet_name"});
        let said = Said { waits_for: vec![waits.clone()], ..said(Ended::NotReady) };
        let (status, next) = judged(&said, 0, &Value::Null);
        assert_eq!((&status["attempt"], &status["waitsFor"]), (&json!(0), &json!([waits])));
        let dependencies = condition::find(&status, kind::DEPENDENCIES_READY).unwrap();
        assert_eq!((dependencies.status, next), (Status::False, Next::Park(LOOK_AGAIN)));
        let long = Said { after: Some(Duration::from_secs(86_400)), ..said };
        assert_eq!(judged(&long, 0, &Value::Null).1, Next::Park(LOOK_AGAIN_MAX));
    }

    #[test]
    fn r8_looks_come_by_time_with_jitter_and_earlier_if_asked_for() {
        let early = Said { after: Some(Duration::from_secs(7)), ..said(Ended::Ready) };
        assert_eq!(judged(&early, 0, &Value::Null).1, Next::GoOn(Duration::from_secs(7)));
        let late = Said { after: Some(RESYNC * 2), ..said(Ended::Ready) };
        assert_eq!(judged(&late, 0, &Value::Null).1, Next::Rest(RESYNC));
    }

    #[test]
    fn r16_failures_back_off_up_to_a_bound_and_a_success_ends_that() {
        let waits =
            [0, 1, 5, 60].map(|attempt| match judged(&said(Ended::Transient), attempt, &Value::Null).1 {
                Next::Retry(wait) => wait.as_secs_f64(),
                other => panic!("{other:?}"),
            });
        assert_eq!(waits, [0.5, 1.0, 16.0, 150.0]);
        assert_eq!(judged(&said(Ended::Ready), 60, &Value::Null).0["attempt"], 0);
    }

    #[test]
    fn r15_the_same_said_again_is_no_news() {
        let (first, _) = judged(&said(Ended::Ready), 0, &Value::Null);
        let (again, _) = judged(&said(Ended::Ready), 0, &first);
        assert!(is_same(&first, &again));
        let (failed, _) = judged(&said(Ended::Transient), 0, &first);
        assert!(!is_same(&first, &failed));
    }

    #[test]
    fn what_a_reconciler_observed_is_kept_beside_our_own_conditions() {
        let own = Condition::new("Reachable", Status::True, "Answers", "");
        let fake = Condition::new("Ready", Status::True, "Fake", "");
        let said = Said { conditions: vec![own, fake], ..said(Ended::Transient) };
        let (status, _) = judged(&said, 0, &Value::Null);
        assert!(condition::find(&status, "Reachable").is_some());
        assert_eq!(condition::find(&status, "Ready").unwrap().status, Status::False);
    }

    #[test]
    fn an_entry_that_goes_is_done_with_when_its_reconciler_says_so() {
        let now = Timestamp::from_second(1_000).unwrap();
        let observed = BTreeMap::new();
        let moment = Moment {
            now,
            before: &Value::Null,
            attempt: 0,
            generation: 2,
            revision: 1,
            observed: &observed,
            resync: RESYNC,
            is_deleting: true,
            draw: 0.5,
        };
        assert_eq!(verdict(&said(Ended::Ready), &moment).1, Next::Gone);
        assert!(matches!(verdict(&said(Ended::Transient), &moment).1, Next::Retry(_)));
    }
}
