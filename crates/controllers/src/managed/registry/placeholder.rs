//! The stand-in for a kind that nobody works on: says so on each object.

use std::sync::Arc;

use async_trait::async_trait;
use concert_engine::{Failure, Outcome, Reconciler, Request};
use concert_model::condition::{self, Condition, Status};
use concert_store::{By, Clock, Error, Store};

use super::super::vocabulary::{condition as kinds, reason};

/// Writes one sentence on each object, once.
pub struct Placeholder {
    /// The controller in whose place it stands.
    pub name: Arc<str>,
    /// The sentence.
    pub why: String,
    /// Where the objects are.
    pub store: Arc<dyn Store>,
    /// For the time of the change.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Reconciler for Placeholder {
    async fn reconcile(&self, request: Request) -> Outcome {
        let mut object = match self.store.get(&request.key).await {
            Ok(current) => current.decode(),
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => return Outcome::Done,
            Err(error) => return Outcome::Transient(Failure::from_error(&error)),
        };
        let text = format!("connect failed: {}", self.why);
        let synced = Condition::new(kinds::SYNCED, Status::False, reason::RECONCILE_ERROR, text);
        let generation = object.generation();
        if !condition::set(object.get_mut("status"), synced.observed(generation), self.clock.now()) {
            return Outcome::Done;
        }
        let by = By { fence: request.fence, manager: self.name.clone(), ..By::actor(self.name.clone()) };
        match self.store.update_status(object, &by).await {
            Ok(_) | Err(Error::NotFound { .. }) => Outcome::Done,
            Err(Error::Conflict { .. }) => Outcome::Requeue("the object changed meanwhile".into(), None),
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}
