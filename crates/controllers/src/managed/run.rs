//! The hands of the managed reconciler: one pass over one object.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{Failure, Outcome, Reconciler, Request};
use concert_model::condition::{self, Status};
use concert_model::{Encoded, GroupVersionKind};
use concert_provider::Connector;
use concert_store::{By, Chance, Clock, Error, Store};
use serde_json::{Value, json};
use tracing::debug;

use super::binding;
use super::config::Configurations;
use super::connection::Publisher;
use super::decide::{Rules, Step, decide};
use super::event::{Event, Recorder};
use super::mentions::Mentions;
use super::metrics::KindMetrics;
use super::pass::Pass;
use super::poll::Poll;
use super::verdict::{Next, Told, Verdict};
use super::vocabulary::{annotation, condition as kinds, event, message, reason};

/// Steps in one pass: more than any honest path needs.
const STEPS_MAX: usize = 24;

/// A poll of what will not change by itself comes so many times later.
const SLOW: u32 = 10;

/// Everything a controller of one kind works with.
pub struct Managed {
    /// `managed/` and the kind in lower case.
    pub name: Arc<str>,
    /// What is known of the kind.
    pub rules: Rules,
    /// How often objects are looked at.
    pub poll: Poll,
    /// Where objects live.
    pub store: Arc<dyn Store>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes tokens and jitter.
    pub chance: Chance,
    /// The way to the provider.
    pub connector: Arc<dyn Connector>,
    /// Writes connection details.
    pub publisher: Arc<Publisher>,
    /// Reads accounts.
    pub configurations: Arc<Configurations>,
    /// Takes events.
    pub recorder: Arc<dyn Recorder>,
    /// Takes numbers.
    pub metrics: Arc<KindMetrics>,
    /// Who mentions whom, for kinds that are watched for their sake.
    pub mentions: Arc<Mentions>,
}

impl Managed {
    /// The name of the controller of a kind.
    pub fn name_of(kind: &GroupVersionKind) -> Arc<str> {
        format!("managed/{}", kind.group_kind.to_string().to_lowercase()).into()
    }

    /// Goes on until there is nothing more to do in this pass.
    async fn pass(&self, current: Encoded, request: &Request) -> Outcome {
        let by = By {
            fence: request.fence.clone(),
            manager: self.name.clone(),
            ..By::actor(self.name.clone()).because("reconcile")
        };
        let mut pass = Pass::begin(self, current, by);
        self.mentions.note(&request.key, pass.object.spec());
        self.count_first(&pass);
        let mut end = None;
        for _ in 0..STEPS_MAX {
            let step = decide(&pass.object, &pass.seen, &self.rules, self.clock.now());
            debug!(?step, "decided");
            let taken = match step {
                Step::Rest(verdict) => Err(verdict),
                step => pass.take(step).await,
            };
            if let Err(verdict) = taken {
                end = Some(verdict);
                break;
            }
        }
        pass.disconnect().await;
        let stuck = || Verdict::write_failed("more steps than any honest path needs", false);
        self.finish(pass, end.unwrap_or_else(stuck)).await
    }

    fn count_first(&self, pass: &Pass<'_>) {
        if condition::find(pass.object.status(), kinds::SYNCED).is_none()
            && let Some(created) = pass.object.created_at()
        {
            self.metrics.first_reconcile(since(created, self.clock.now()));
        }
    }

    /// Says how the pass ended, and when the next one is.
    async fn finish(&self, mut pass: Pass<'_>, verdict: Verdict) -> Outcome {
        if pass.is_gone {
            return Outcome::Done;
        }
        if let Some(told) = &verdict.event {
            self.tell(&pass, told);
        }
        self.restate(&mut pass, &verdict);
        self.count(&pass);
        if pass.status != pass.stored_status
            && let Err(error) = pass.write_status().await
        {
            return match error {
                Error::NotFound { .. } => Outcome::Done,
                Error::Conflict { .. } => Outcome::Requeue("the object changed meanwhile".into(), None),
                error => failed("cannot write the status", &error),
            };
        }
        self.outcome(&pass, verdict.next)
    }

    fn count(&self, pass: &Pass<'_>) {
        let Some(uid) = pass.object.uid() else { return };
        let holds =
            |status: &Value, kind| condition::find(status, kind).is_some_and(|it| it.status == Status::True);
        let (is_ready, is_synced) = (holds(&pass.status, kinds::READY), holds(&pass.status, kinds::SYNCED));
        self.metrics.state(&uid, is_ready, is_synced);
        if holds(&pass.status, kinds::UP_TO_DATE) {
            self.metrics.unchanged(&uid, self.clock.elapsed());
        }
        // What was never ready has no such condition yet, or is said to be in the making.
        let before = condition::find(&pass.stored_status, kinds::READY);
        if is_ready
            && before.is_none_or(|it| it.status != Status::True && it.reason == reason::CREATING)
            && let Some(created) = pass.object.created_at()
        {
            self.metrics.first_ready(since(created, self.clock.now()));
        }
    }

    /// Puts conditions, and the answer to a request to reconcile, into the status.
    fn restate(&self, pass: &mut Pass<'_>, verdict: &Verdict) {
        let now = self.clock.now();
        for condition in &verdict.conditions {
            let condition = condition.clone().observed(pass.object.generation());
            condition::set(&mut pass.status, condition, now);
        }
        if binding::is_bindable(&pass.object, &self.rules.served) {
            binding::offer(&pass.stored_status, &mut pass.status);
        }
        let asked = pass.object.annotation(annotation::RECONCILE_REQUESTED_AT);
        if let Some(token) = asked.filter(|it| verdict.is_answer && !it.is_empty())
            && pass.status.get("lastHandledReconcileAt").and_then(Value::as_str) != Some(token)
        {
            let token = token.to_owned();
            let message = format!("Handled the request to reconcile of {token}");
            self.tell(pass, &Told { is_warning: false, reason: event::REQUEST_HANDLED, message });
            if !pass.status.is_object() {
                pass.status = json!({});
            }
            pass.status["lastHandledReconcileAt"] = json!(token);
        }
    }

    fn outcome(&self, pass: &Pass<'_>, next: Next) -> Outcome {
        let poll = || self.poll.next(&pass.object, &self.chance);
        match next {
            Next::OnChange => Outcome::Poll(Duration::MAX),
            Next::Poll => Outcome::Poll(poll()),
            Next::SlowPoll => Outcome::Poll(poll().saturating_mul(SLOW)),
            Next::Requeue(why) => Outcome::Requeue(why.into(), None),
            Next::After(why, after) => Outcome::Requeue(why.into(), Some(after)),
            Next::WaitFor(_, waits) => Outcome::WaitFor(waits),
            Next::Retry(why) => Outcome::Transient(Failure::new(why)),
            Next::Conflict => Outcome::Requeue("the object changed meanwhile".into(), None),
        }
    }

    /// Records an event on the object.
    pub(super) fn tell(&self, pass: &Pass<'_>, told: &Told) {
        let (Ok(key), Some(uid)) = (pass.object.key(), pass.object.uid()) else { return };
        let name = pass.object.annotation(annotation::EXTERNAL_NAME).unwrap_or_default();
        self.recorder.record(
            &self.name,
            Event {
                object: key,
                api_version: pass.object.api_version().to_owned(),
                uid,
                resource_version: pass.object.resource_version(),
                is_warning: told.is_warning,
                reason: told.reason,
                message: told.message.clone(),
                annotations: [("external-name".to_owned(), name.to_owned())].into(),
            },
        );
    }

    /// Tells that something was done.
    pub(super) fn tell_done(&self, pass: &Pass<'_>, reason: &'static str) {
        let message = match reason {
            event::CREATED => message::CREATED,
            event::UPDATED => message::UPDATED,
            _ => message::DELETED,
        };
        self.tell(pass, &Told { is_warning: false, reason, message: message.into() });
    }
}

/// A failure of the store: the provider is not to blame.
fn failed(what: &str, error: &Error) -> Outcome {
    Outcome::Transient(Failure::new(format!("{what}: {}", Failure::from_error(error))).elsewhere())
}

/// Never negative: clocks of other machines may be ahead.
pub(super) fn since(then: concert_model::Timestamp, now: concert_model::Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}

#[async_trait]
impl Reconciler for Managed {
    async fn reconcile(&self, request: Request) -> Outcome {
        match self.store.get(&request.key).await {
            Ok(current) => self.pass(current, &request).await,
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => {
                self.mentions.forget(&request.key);
                Outcome::Done
            }
            Err(error) => failed("cannot get managed resource", &error),
        }
    }
}
