//! Does what `decide.rs` says about definitions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{Controller, Failure, Objects, Outcome, Reconciler, Request, source};
use concert_model::{GroupKind, Object, ObjectKey};
use concert_store::local::{CLEANUP_FINALIZER, DEFINITION_GROUP, DEFINITION_KIND};
use concert_store::{By, Clock, Error, Query, Store};

use super::super::Parts;
use super::super::contents::{Pace, Remains, sweep};
use super::super::owners::Owners;
use super::super::vocabulary::controller::DEFINITIONS;
use super::decide::{Step, decide, is_terminating, kind};

/// Steps of one pass: a report and the end, with one to spare.
const STEPS_MAX: usize = 3;

/// Until another look, where not all owned objects have been seen: right after a start.
const UNSEEN_RETRY: Duration = Duration::from_millis(250);

struct Definitions {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    owners: Arc<Owners>,
    pace: Pace,
}

/// The controller of definitions that are being deleted.
pub fn controller(parts: &Parts, owners: Arc<Owners>) -> Controller {
    let definitions = Objects::new(Query::all(GroupKind::new(DEFINITION_GROUP, DEFINITION_KIND)));
    let (store, clock, pace) = (parts.store.clone(), parts.clock.clone(), Pace::new(parts.clock.clone()));
    Controller::builder(DEFINITIONS, Arc::new(Definitions { store, clock, owners, pace }))
        .objects(definitions.changed(source::except_status))
        .concurrency(4)
        .fence(parts.fence.clone())
        .build()
}

impl Definitions {
    async fn pass(&self, key: &ObjectKey, by: &By) -> Result<Outcome, Error> {
        let stored = self.store.get(key).await?;
        if stored.head().deleted_at.is_none() {
            return Ok(Outcome::Done);
        }
        let mut definition = stored.decode();
        if !is_terminating(&definition) {
            self.pace.forget(key);
            return Ok(Outcome::Done);
        }
        if let Some(rest) = self.pace.rest(key) {
            return Ok(Outcome::After(rest));
        }
        let mut remains = Remains::default();
        if let Some(kind) = kind(&definition) {
            // Nothing new can come: the store refuses it from the moment the deletion was asked for.
            sweep(&*self.store, &Query::all(kind), &key.name, by, &mut remains).await;
        }
        for _ in 0..STEPS_MAX {
            match decide(&definition, &remains, self.clock.now()) {
                Step::Rest => break,
                Step::Report(status) => {
                    definition.set("status", status);
                    definition = self.store.update_status(definition, by).await?.decode();
                }
                Step::Finish => return self.finish(key, definition, by).await,
            }
        }
        Ok(remains.outcome())
    }

    async fn finish(&self, key: &ObjectKey, mut definition: Object, by: &By) -> Result<Outcome, Error> {
        // What its objects owned is judged while they can still be read for: of a kind that is not
        // served nobody can say what is absent.
        if let Some(kind) = kind(&definition)
            && !self.owners.settle(&kind, by).await?
        {
            self.pace.forget(key);
            return Ok(Outcome::Requeue("not all owned objects have been seen".into(), Some(UNSEEN_RETRY)));
        }
        definition.remove_finalizer(CLEANUP_FINALIZER);
        self.store.update(definition, by).await?;
        self.pace.forget(key);
        Ok(Outcome::Done)
    }
}

#[async_trait]
impl Reconciler for Definitions {
    async fn reconcile(&self, request: Request) -> Outcome {
        let by = By { fence: request.fence, ..By::actor(DEFINITIONS) }.because("the definition is deleted");
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
