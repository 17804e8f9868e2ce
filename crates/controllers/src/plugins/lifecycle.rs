//! What reports and silence mean for a resource.

use std::sync::Arc;

use async_trait::async_trait;
use concert_engine::workers::{Leased, Meaning, Offer, Prepared, Report};
use concert_engine::{Failure, Lane, Outcome, Request};
use concert_model::no8s::resolve::LEFT_AT;
use concert_model::no8s::{self, Lease, Moment, Next, Phase, Resource, Rules, Verdict, due_in, names};
use concert_model::{Object, ObjectKey, Uid};
use concert_store::{By, Chance, Clock, Error, Fence, ItemKey, Store};
use serde_json::Value;
use tracing::warn;

use super::history::{History, attempt, item_of};

/// The rows in which claims are counted. By object and not by worker: whoever owned it before is fenced
/// off as well.
pub const LEASES: &str = "no8s/leases";

/// What a report says of its failure among its details, and what of one that stays.
const ERROR_CLASS: &str = "error_class";
const TERMINAL: &str = "terminal";

/// Tries to write over what others write: they do so seldom.
const WRITES_MAX: usize = 8;

/// Gives reports and silence their meaning, by the life cycle of `model::no8s`.
pub struct Lifecycle {
    /// Where the resources are.
    pub store: Arc<dyn Store>,
    /// Where attempts are written down.
    pub history: Arc<dyn History>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes jitter.
    pub chance: Chance,
    /// How long waits are.
    pub rules: Rules,
    /// Who is in charge.
    pub worker: Arc<str>,
}

impl Lifecycle {
    async fn offer(&self, key: &ObjectKey) -> Result<Prepared, Error> {
        let object = self.store.get(key).await?.decode();
        if Resource(&object).is_given_up() {
            let failure = Failure::new(Resource(&object).message().unwrap_or_default()).elsewhere();
            return Ok(Prepared::Settled(Outcome::Terminal(failure)));
        }
        if let Some(wait) = due_in(&object, self.clock.now()) {
            let lane = lane(Resource(&object).shown_phase());
            return Ok(Prepared::Settled(Outcome::AfterIn(lane, wait)));
        }
        let Some(id) = Resource(&object).id() else {
            let failure = Failure::new("it has no label no8s.concert.dev/id with a number").elsewhere();
            return Ok(Prepared::Settled(Outcome::Terminal(failure)));
        };
        let row = ItemKey { controller: LEASES.into(), item: key.to_string().into() };
        let (item, attempt) = (id.to_string().into(), Resource(&object).retry_count());
        Ok(Prepared::Offer(Box::new(Offer {
            item,
            row,
            key: key.clone(),
            object: Arc::new(object),
            attempt,
            context: Arc::default(),
        })))
    }

    /// Writes down that it was tried, and what the end of a lease makes of the resource.
    async fn end(&self, leased: &Leased, fence: Fence, report: Report) -> Outcome {
        let by = By::actor(format!("plugins/{}", self.worker)).because("reported").fenced(fence);
        // First what was tried, then what came of it: whoever sees the outcome finds the attempt.
        let record = attempt(leased, &report, self.clock.now());
        if let Err(error) = self.history.record(&item_of(&leased.item), &record).await {
            warn!(item = %leased.item, %error, "cannot write down what was tried");
        }
        match self.resolve(leased, &report, &by).await {
            Ok(Next::Retry(why, _)) if is_terminal(leased, &report) => {
                Outcome::Terminal(Failure::new(why).elsewhere())
            }
            Ok(next) => outcome(next, &report),
            // Gone, and so nothing is left to do; what was tried is written down all the same.
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => Outcome::Done,
            Err(error) => Outcome::Transient(Failure::from_error(&error).elsewhere()),
        }
    }

    async fn resolve(&self, leased: &Leased, report: &Report, by: &By) -> Result<Next, Error> {
        let lease = Lease {
            reported: leased.said.as_deref().and_then(|it| it.parse().ok()),
            ..Lease::of(&leased.object, owner(&self.worker, &leased.object))
        };
        let verdict = Verdict {
            success: report.success,
            message: report.message.clone(),
            requeue_after: report.requeue_after,
            left: report.details.get(LEFT_AT).and_then(Value::as_str).and_then(|it| it.parse().ok()),
        };
        let retries = Resource(&leased.object).retry_count();
        let (claimed, draw) = (leased.object.generation(), self.chance.fraction());
        for _ in 0..WRITES_MAX {
            let object = self.read(&leased.key, leased.object.uid().as_ref()).await?;
            let moment = Moment { now: self.clock.now(), claimed, retries, rules: self.rules, draw };
            let (mut status, next) = no8s::recorded(&object, &verdict, &lease, &moment);
            if let (true, Some(fields)) =
                (!report.waits.is_empty() || is_terminal(leased, report), status.as_object_mut())
            {
                // Due as soon as what it waits for has changed, or as it has itself.
                fields.remove("nextReconcileTime");
            }
            match self.write(object, status, &next, &lease.owner, by).await {
                Err(Error::Conflict { .. }) => {}
                result => return result.map(|()| next),
            }
        }
        Err(Error::Conflict { key: leased.key.clone() })
    }

    async fn write(
        &self,
        mut object: Object,
        status: Value,
        next: &Next,
        owner: &str,
        by: &By,
    ) -> Result<(), Error> {
        if *object.status() != status {
            object.set("status", status);
            object = self.store.update_status(object, by).await?.decode();
        }
        if *next == Next::Purge {
            warn!(name = %object.name(), owner, "it was reported as deleted with its finalizer in place, which is removed");
            object.remove_finalizer(owner);
            self.store.update(object, by).await?;
        }
        Ok(())
    }

    /// The incarnation that was lent, if it is still there.
    async fn read(&self, key: &ObjectKey, uid: Option<&Uid>) -> Result<Object, Error> {
        let object = self.store.get(key).await?.decode();
        if object.uid().as_ref() == uid { Ok(object) } else { Err(Error::NotFound { key: key.clone() }) }
    }
}

#[async_trait]
impl Meaning for Lifecycle {
    async fn prepare(&self, request: &Request) -> Prepared {
        match self.offer(&request.key).await {
            Ok(prepared) => prepared,
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => Prepared::Settled(Outcome::Done),
            Err(error) => Prepared::Settled(Outcome::Transient(Failure::from_error(&error).elsewhere())),
        }
    }

    async fn finished(&self, lease: &Leased, report: Report) -> Outcome {
        self.end(lease, lease.fence.clone(), report).await
    }

    async fn expired(&self, lease: &Leased, fence: Fence) -> Outcome {
        let message = no8s::resolve::LEASE_EXPIRED.to_owned();
        self.end(lease, fence, Report { success: Some(false), message, ..Report::default() }).await
    }
}

/// The finalizer that was added for whoever is in charge. If the type was another worker's when the object was
/// made it has the name of that one, as long as it is there.
pub(super) fn owner<'a>(worker: &'a str, object: &'a Object) -> &'a str {
    let is_there = |added: &&str| object.finalizers().iter().any(|it| it == *added);
    match Resource(object).action() {
        "" => object.annotation(names::FINALIZER).filter(is_there).unwrap_or(worker),
        action => action,
    }
}

/// In which order resources are lent that are due at the same time. What is to go comes before all.
pub(super) fn lane(phase: Phase) -> Lane {
    match phase {
        Phase::Deleting => Lane::User,
        Phase::Pending => Lane::Event,
        Phase::Failed => Lane::Retry,
        Phase::Ready | Phase::Reconciling => Lane::Poll,
    }
}

/// Whether it failed in a way that trying again does not mend. What is to go is tried again all the same:
/// nobody would change it any more.
fn is_terminal(leased: &Leased, report: &Report) -> bool {
    report.success == Some(false)
        && report.details.get(ERROR_CLASS).is_some_and(|it| it == TERMINAL)
        && leased.object.deleted_at().is_none()
}

fn outcome(next: Next, report: &Report) -> Outcome {
    if !report.waits.is_empty() && report.success != Some(false) {
        let waits = report.waits.clone();
        return match report.requeue_after {
            Some(most) => Outcome::WaitAtMost(waits, most),
            None => Outcome::WaitFor(waits),
        };
    }
    match next {
        // A look, behind whatever was changed and whatever failed.
        Next::Ready(wait) | Next::After(wait) => Outcome::AfterIn(Lane::Poll, wait),
        Next::Retry(why, wait) => Outcome::Transient(Failure::new(why).elsewhere().retried_after(wait)),
        Next::Purge | Next::Wait => Outcome::Done,
    }
}
