//! The hands of the managed reconciler: one pass over one object.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{Failure, Lane, Outcome, Reconciler, Request};
use concert_model::condition::{self, Status};
use concert_model::{Encoded, GroupVersionKind, ResourceVersion, Uid};
use concert_provider::{Call, Connector};
use concert_store::{By, Chance, Clock, Error, Fence, Store};
use serde_json::{Value, json};
use tracing::debug;

use super::binding;
use super::config::Configurations;
use super::connection::Publisher;
use super::decide::{Rules, Step, decide};
use super::event::{Event, Recorder};
use super::mentions::Mentions;
use super::metrics::KindMetrics;
use super::pass::{Glance, Pass};
use super::poll::Poll;
use super::predicate::{self, Standing};
use super::rest::AtRest;
use super::roll::Roll;
use super::unwritten::Unwritten;
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
    /// What needs but a glance.
    pub at_rest: AtRest,
    /// Who mentions whom, for kinds that are watched for their sake.
    pub mentions: Arc<Mentions>,
    /// Who there is.
    pub roll: Roll,
    /// The term of whoever leads, where its claim is none that the store knows of.
    pub term: Option<u64>,
    /// What no object says.
    pub unwritten: Unwritten,
}

impl Managed {
    /// The name of the controller of a kind.
    pub fn name_of(kind: &GroupVersionKind) -> Arc<str> {
        format!("managed/{}", kind.group_kind.to_string().to_lowercase()).into()
    }

    /// An object is among those that are listed when the controller starts, or again later; whether it can
    /// wait for its poll. It counts from now on: a pass over it may be an interval away.
    pub(super) fn meet(&self, object: &Encoded) -> bool {
        let Standing { is_ready, is_synced, is_settled } = predicate::standing(object);
        if self.roll.meet(object.key(), &object.head().uid) {
            self.metrics.state(&object.head().uid, is_ready, is_synced);
        }
        is_settled
    }

    /// Drops what is remembered of an object that is gone.
    pub(super) fn forget(&self, uid: &Uid) {
        self.metrics.forget(uid);
        self.publisher.forget(uid);
        self.configurations.forget(uid);
        self.at_rest.forget(uid);
        self.unwritten.forget(uid);
    }

    /// What a provider is told of the claim it is called under.
    pub(super) fn claim(&self, fence: Option<&Fence>) -> Option<u64> {
        fence.map(|it| it.number).or(self.term)
    }

    /// Looks whether anything has changed about an object at rest.
    async fn glance(&self, current: &Encoded, request: &Request) -> Sight {
        let rest = match request.lane {
            Lane::Poll => self.at_rest.of(current),
            // Somebody has a reason to believe that something has.
            Lane::User | Lane::Event | Lane::Retry => None,
        };
        let Some(rest) = rest else { return Sight::Unknown };
        let uid = &current.head().uid;
        if self.at_rest.is_due(uid) {
            // With a look at what was published, too.
            self.publisher.forget(uid);
            return Sight::Unknown;
        }
        let Some(account) = self.configurations.remembered(uid, rest.account.as_ref()) else {
            return Sight::Unknown;
        };
        let asked_at = self.clock.now();
        let call = Call { timeout: self.rules.timeout, fence: self.claim(request.fence.as_ref()) };
        let version = &self.rules.served.kind.version;
        let seen = self.connector.glance(current, version, account.as_ref(), &call).await;
        if seen.as_ref().is_ok_and(|it| self.at_rest.is_same(&rest, it)) {
            self.metrics.unchanged(uid, self.clock.elapsed());
            return Sight::Same(Outcome::Poll(self.poll.around(rest.interval, &self.chance)));
        }
        self.at_rest.forget(uid);
        Sight::New(Glance { asked_at, account: rest.account, seen })
    }

    /// Goes on until there is nothing more to do in this pass.
    async fn pass(&self, current: Encoded, request: &Request) -> Outcome {
        let started = self.clock.elapsed();
        let glance = match self.glance(&current, request).await {
            Sight::Same(outcome) => return outcome,
            Sight::New(glance) => Some(glance),
            Sight::Unknown => None,
        };
        let by = By {
            fence: request.fence.clone(),
            manager: self.name.clone(),
            ..By::actor(self.name.clone()).because("reconcile")
        };
        let mut pass = Pass::begin(self, &current, by, started);
        if let Some(glance) = glance {
            pass.glanced(glance);
        }
        self.mentions.note(&request.key, pass.object.spec());
        let uid = &current.head().uid;
        if let Some(before) = self.roll.note(&request.key, uid) {
            self.forget(&before);
        }
        pass.seen.unsent = self.unwritten.unsent(uid);
        pass.seen.is_deleted = self.unwritten.is_deleted(uid, pass.external_name());
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
        let verdict = end.unwrap_or_else(stuck);
        self.note_rest(&pass, &verdict, current.resource_version());
        self.finish(pass, verdict).await
    }

    /// Remembers an object about which there was nothing to do. Not where others have a say in what it is:
    /// references are looked up in every pass.
    fn note_rest(&self, pass: &Pass<'_>, verdict: &Verdict, begun_with: &ResourceVersion) {
        let Some(uid) = pass.object.uid() else { return };
        let is_resting = matches!(verdict.next, Next::Poll) && self.rules.served.references.is_empty();
        match pass.quiet(begun_with).filter(|_| is_resting) {
            Some(seen) => {
                let (account, interval) = (pass.account().cloned(), self.poll.interval(&pass.object));
                self.at_rest.note(uid, begun_with.clone(), account, interval, seen);
            }
            None => self.at_rest.forget(&uid),
        }
    }

    fn count_first(&self, pass: &Pass<'_>) {
        if condition::find(pass.object.status(), kinds::SYNCED).is_none()
            && let (Some(uid), Some(created)) = (pass.object.uid(), pass.object.created_at())
        {
            self.metrics.first_reconcile(&uid, since(created, self.clock.now()));
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
        let looks_new = before.is_none_or(|it| it.status != Status::True && it.reason == reason::CREATING);
        if let (true, Some(created)) = (is_ready, pass.object.created_at()) {
            self.metrics.ready(&uid, looks_new, since(created, self.clock.now()));
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
            Next::SlowPoll(why) => {
                Outcome::Terminal(Failure::new(why).retried_after(poll().saturating_mul(SLOW)))
            }
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
        let name = pass.external_name();
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

/// What a glance comes to.
enum Sight {
    /// All is as it was.
    Same(Outcome),
    /// Something is not.
    New(Glance),
    /// A whole pass is needed to know.
    Unknown,
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
                if let Some(uid) = self.roll.strike(&request.key) {
                    self.forget(&uid);
                }
                Outcome::Done
            }
            Err(error) => failed("cannot get managed resource", &error),
        }
    }
}
