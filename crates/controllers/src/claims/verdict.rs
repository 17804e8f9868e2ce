//! How a pass over a claim can end: what is said of it, what is told, and when the next one is.

use std::time::Duration;

use concert_engine::{Outcome, Wait};
use concert_model::condition::{self, Condition, Status};
use concert_model::{Object, Timestamp};
use serde_json::{Value, json};

use super::vocabulary::{condition as kinds, reason};

/// Between looks at what nobody can be woken by.
pub const SHORT_WAIT: Duration = Duration::from_secs(30);
/// Between looks for a default class.
pub const CLASS_WAIT: Duration = Duration::from_secs(60);

/// What the condition `Ready` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It can be used.
    Available,
    /// It is being made.
    Creating,
    /// It is being taken down.
    Deleting,
    /// Its managed resource cannot be bound yet, or at all.
    Binding,
}

/// How a pass ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// What `Ready` is to say, with a sentence of ours.
    pub ready: Option<(Ready, String)>,
    /// What `Synced` is to say: that all is well, or what is not.
    pub synced: Option<Result<(), String>>,
    /// What `status.bindingPhase` is to be.
    pub phase: Option<&'static str>,
    /// An event.
    pub told: Option<Told>,
    /// When the next pass is.
    pub next: Next,
}

/// An event on a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Whether something is wrong.
    pub is_warning: bool,
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

impl Told {
    /// Something went well.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { is_warning: false, reason, message: message.into() }
    }

    /// Something did not.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self { is_warning: true, reason, message: message.into() }
    }
}

/// When the next pass is.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Next {
    /// When something changes that is watched anyway.
    #[default]
    OnChange,
    /// When one of these changes.
    WaitFor(Vec<Wait>),
    /// After so long, if nothing changes before.
    After(Duration),
    /// With back-off: nobody knows when it will work.
    Retry,
}

impl Verdict {
    /// Nothing to say.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Whoever looks at the claim reads that it failed, and why.
    pub fn failed(why: impl Into<String>, next: Next) -> Self {
        Self { synced: Some(Err(why.into())), next, ..Self::default() }
    }

    /// The same, with this condition `Ready`.
    pub fn with_ready(mut self, ready: Ready, message: impl Into<String>) -> Self {
        self.ready = Some((ready, message.into()));
        self
    }

    /// The same, and this is told.
    pub fn telling(mut self, told: Told) -> Self {
        self.told = Some(told);
        self
    }

    /// `status` as it is to be.
    pub fn restate(&self, claim: &Object, now: Timestamp) -> Value {
        let mut status = claim.status().clone();
        let mut set = |condition: Condition| {
            condition::set(&mut status, condition.observed(claim.generation()), now);
        };
        if let Some((ready, message)) = &self.ready {
            let (holds, reason) = match ready {
                Ready::Available => (Status::True, reason::AVAILABLE),
                Ready::Creating => (Status::False, reason::CREATING),
                Ready::Deleting => (Status::False, reason::DELETING),
                Ready::Binding => (Status::False, reason::BINDING),
            };
            set(Condition::new(kinds::READY, holds, reason, message.as_str()));
        }
        match &self.synced {
            Some(Ok(())) => set(Condition::new(kinds::SYNCED, Status::True, reason::SUCCESS, "")),
            Some(Err(why)) => set(Condition::new(kinds::SYNCED, Status::False, reason::ERROR, why.as_str())),
            None => {}
        }
        if let Some(phase) = self.phase {
            if !status.is_object() {
                status = json!({});
            }
            status["bindingPhase"] = json!(phase);
        }
        status
    }

    /// What the engine is told.
    pub fn outcome(&self) -> Outcome {
        let why = || match (&self.synced, &self.ready) {
            (Some(Err(why)), _) => why.as_str().into(),
            (_, Some((_, message))) => message.as_str().into(),
            _ => "not there yet".into(),
        };
        match &self.next {
            Next::OnChange => Outcome::Done,
            Next::WaitFor(waits) => Outcome::WaitFor(waits.clone()),
            Next::After(wait) => Outcome::Requeue(why(), Some(*wait)),
            Next::Retry => Outcome::Requeue(why(), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Object {
        Object::from_value(json!({"apiVersion": "a.dev/v1", "kind": "Redis", "metadata": {"generation": 3},
            "status": {"other": 1}}))
        .unwrap()
    }

    #[test]
    fn conditions_have_whole_sentences_for_reasons() {
        for (ready, holds, sentence) in [
            (Ready::Available, "True", "Resource is available for use"),
            (Ready::Creating, "False", "Resource is being created"),
            (Ready::Deleting, "False", "Resource is being deleted"),
            (Ready::Binding, "False", "Managed claim is waiting for managed resource to become bindable"),
        ] {
            let verdict = Verdict { synced: Some(Ok(())), ..Verdict::nothing() }.with_ready(ready, "because");
            let status = verdict.restate(&claim(), Timestamp::UNIX_EPOCH);
            let conditions = &status["conditions"];
            assert_eq!((&conditions[0]["type"], &conditions[0]["status"]), (&json!("Ready"), &json!(holds)));
            assert_eq!(
                (&conditions[0]["reason"], &conditions[0]["message"]),
                (&json!(sentence), &json!("because"))
            );
            assert_eq!(conditions[0]["observedGeneration"], 3);
            assert_eq!(conditions[1]["reason"], "Successfully reconciled resource");
            assert_eq!(status["other"], 1);
        }
        let failed = Verdict::failed("no", Next::OnChange).restate(&claim(), Timestamp::UNIX_EPOCH);
        let synced = &failed["conditions"][0];
        assert_eq!(synced["reason"], "Encountered an error during resource reconciliation");
        assert_eq!((&synced["status"], &synced["message"]), (&json!("False"), &json!("no")));
    }

    #[test]
    fn what_is_said_already_changes_nothing() {
        let verdict = Verdict { phase: Some("Bound"), ..Verdict::failed("no", Next::OnChange) };
        let mut claim = claim();
        claim.set("status", verdict.restate(&claim, Timestamp::UNIX_EPOCH));
        let later = Timestamp::from_second(99).unwrap();
        assert_eq!(verdict.restate(&claim, later), *claim.status());
    }
}
