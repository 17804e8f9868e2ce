//! Does what `decide.rs` says about namespaces.

use std::sync::Arc;

use async_trait::async_trait;
use concert_engine::{Controller, Failure, Objects, Outcome, Reconciler, Request, source};
use concert_model::{GroupKind, ObjectKey};
use concert_store::{By, Clock, Error, Kind, Query, Store};

use super::super::contents::{Pace, Remains, sweep};
use super::super::vocabulary::controller::NAMESPACES;
use super::super::{Kinds, Parts};
use super::decide::{Step, decide, finish, is_terminating};

/// Steps of one pass: a report and the end, with one to spare.
const STEPS_MAX: usize = 3;

struct Namespaces {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    kinds: Kinds,
    pace: Pace,
}

/// The controller of namespaces that are being deleted.
pub fn controller(parts: &Parts) -> Controller {
    let namespaces = Objects::new(Query::all(GroupKind::new("", "Namespace")));
    let reconciler = Namespaces {
        store: parts.store.clone(),
        clock: parts.clock.clone(),
        kinds: parts.kinds.clone(),
        pace: Pace::new(parts.clock.clone()),
    };
    Controller::builder(NAMESPACES, Arc::new(reconciler))
        .objects(namespaces.changed(source::except_status))
        .concurrency(4)
        .fence(parts.fence.clone())
        .build()
}

impl Namespaces {
    async fn pass(&self, key: &ObjectKey, by: &By) -> Result<Outcome, Error> {
        let stored = self.store.get(key).await?;
        if stored.head().deleted_at.is_none() {
            return Ok(Outcome::Done);
        }
        let mut namespace = stored.decode();
        if !is_terminating(&namespace) {
            self.pace.forget(key);
            return Ok(Outcome::Done);
        }
        if let Some(rest) = self.pace.rest(key) {
            return Ok(Outcome::After(rest));
        }
        let remains = self.sweep(key, by).await;
        for _ in 0..STEPS_MAX {
            match decide(&namespace, &remains, self.clock.now()) {
                Step::Rest => break,
                Step::Report(status) => {
                    namespace.set("status", status);
                    namespace = self.store.update_status(namespace, by).await?.decode();
                }
                Step::Finish => {
                    finish(&mut namespace);
                    self.store.update(namespace, by).await?;
                    self.pace.forget(key);
                    return Ok(Outcome::Done);
                }
            }
        }
        Ok(remains.outcome())
    }

    /// Asks everything in the namespace to go. Nothing new can come: the store refuses it from the
    /// moment the deletion was asked for.
    async fn sweep(&self, key: &ObjectKey, by: &By) -> Remains {
        let mut remains = Remains::default();
        for kind in (self.kinds)().iter().filter(|it| it.is_namespaced) {
            let query = Query::all(kind.group_kind.clone()).in_namespace(key.name.clone());
            sweep(&*self.store, &query, &in_words(kind), by, &mut remains).await;
        }
        remains
    }
}

/// `widgets.example.com`, `configmaps`.
fn in_words(kind: &Kind) -> String {
    let group = &kind.group_kind.group;
    if group.is_empty() { kind.plural.to_string() } else { format!("{}.{group}", kind.plural) }
}

#[async_trait]
impl Reconciler for Namespaces {
    async fn reconcile(&self, request: Request) -> Outcome {
        let by = By { fence: request.fence, ..By::actor(NAMESPACES) }.because("the namespace is deleted");
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
