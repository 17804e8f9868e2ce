//! One pass over something that goes when its contents are gone: a namespace, a definition.

use std::sync::Arc;

use async_trait::async_trait;
use concert_engine::{Failure, Outcome, Reconciler, Request};
use concert_model::{Object, ObjectKey, Timestamp};
use concert_store::{By, Clock, Error, Store};
use serde_json::Value;

use super::contents::{Pace, Remains};

/// Steps of one pass: a report and the end, with one to spare.
const STEPS_MAX: usize = 3;

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing before something changes.
    Rest,
    /// Write this status.
    Report(Value),
    /// Nothing is left: let it go.
    Finish,
}

/// What differs from one sort of container to the next.
#[async_trait]
pub(super) trait Container: Send + Sync + 'static {
    /// The controller, which is who writes.
    const NAME: &'static str;
    /// Why it writes.
    const REASON: &'static str;

    /// Whether its contents are to go.
    fn is_terminating(&self, object: &Object) -> bool;

    /// Asks all contents to go.
    async fn sweep(&self, object: &Object, by: &By) -> Remains;

    /// What to do, given what is left.
    fn decide(&self, object: &Object, remains: &Remains, now: Timestamp) -> Step;

    /// Lets it go; or says when to try again.
    async fn finish(&self, object: Object, by: &By) -> Result<Outcome, Error>;
}

/// The reconciler of one sort of container.
pub(super) struct Leaving<C> {
    container: C,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    pace: Pace,
}

impl<C: Container> Leaving<C> {
    pub fn new(container: C, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { container, store, pace: Pace::new(clock.clone()), clock }
    }

    async fn pass(&self, key: &ObjectKey, by: &By) -> Result<Outcome, Error> {
        let stored = self.store.get(key).await?;
        if stored.head().deleted_at.is_none() {
            return Ok(Outcome::Done);
        }
        let mut object = stored.decode();
        if !self.container.is_terminating(&object) {
            self.pace.forget(key);
            return Ok(Outcome::Done);
        }
        if let Some(rest) = self.pace.rest(key) {
            return Ok(Outcome::After(rest));
        }
        let remains = self.container.sweep(&object, by).await;
        for _ in 0..STEPS_MAX {
            match self.container.decide(&object, &remains, self.clock.now()) {
                Step::Rest => break,
                Step::Report(status) => {
                    object.set("status", status);
                    object = self.store.update_status(object, by).await?.decode();
                }
                Step::Finish => {
                    let outcome = self.container.finish(object, by).await?;
                    self.pace.forget(key);
                    return Ok(outcome);
                }
            }
        }
        Ok(remains.outcome())
    }
}

#[async_trait]
impl<C: Container> Reconciler for Leaving<C> {
    async fn reconcile(&self, request: Request) -> Outcome {
        let by = By { fence: request.fence, ..By::actor(C::NAME) }.because(C::REASON);
        match self.pass(&request.key, &by).await {
            Ok(outcome) => outcome,
            Err(Error::NotFound { .. }) => {
                self.pace.forget(&request.key);
                Outcome::Done
            }
            Err(Error::Conflict { .. }) => Outcome::Requeue("it changed meanwhile".into(), None),
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}
