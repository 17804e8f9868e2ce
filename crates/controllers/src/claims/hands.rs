//! What all controllers of claims do with a claim: read it, write it, tell of it.

use std::sync::Arc;

use concert_engine::{Failure, Outcome, Request};
use concert_model::{Encoded, Object, ObjectKey};
use concert_store::{By, Chance, Clock, Error, PageRequest, Query, Store};

use super::verdict::{Told, Verdict};
use crate::managed::event::{Event, Recorder};

/// What the controllers of claims work with.
#[derive(Clone)]
pub struct Hands {
    /// The controller's name.
    pub name: Arc<str>,
    /// Where objects live.
    pub store: Arc<dyn Store>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes choices and jitter.
    pub chance: Chance,
    /// Takes events.
    pub recorder: Arc<dyn Recorder>,
}

impl Hands {
    /// Who writes.
    pub fn by(&self, request: &Request) -> By {
        By {
            fence: request.fence.clone(),
            manager: self.name.clone(),
            ..By::actor(self.name.clone()).because("reconcile")
        }
    }

    /// The object; none if there is none, or nothing of its kind.
    ///
    /// # Errors
    /// As the store's.
    pub async fn find(&self, key: &ObjectKey) -> Result<Option<Object>, Error> {
        match self.store.get(key).await {
            Ok(found) => Ok(Some(found.decode())),
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a query.
    ///
    /// # Errors
    /// As the store's.
    pub async fn list(&self, query: &Query) -> Result<Vec<Object>, Error> {
        let page = self.store.list(query, &PageRequest::whole()).await?;
        Ok(page.items.iter().map(Encoded::decode).collect())
    }

    /// Says on the claim what the verdict says, and tells its event.
    pub async fn conclude(&self, claim: &Object, verdict: &Verdict, by: &By) -> Outcome {
        if let Some(told) = &verdict.told {
            self.tell(claim, told);
        }
        let status = verdict.restate(claim, self.clock.now());
        if status == *claim.status() || (status.is_null() && claim.status().is_null()) {
            return verdict.outcome();
        }
        let mut claim = claim.clone();
        claim.set("status", status);
        match self.store.update_status(claim, by).await {
            Ok(_) => verdict.outcome(),
            Err(error) => missed(&error),
        }
    }

    /// Records an event on the claim.
    pub fn tell(&self, claim: &Object, told: &Told) {
        let (Ok(key), Some(uid)) = (claim.key(), claim.uid()) else { return };
        self.recorder.record(
            &self.name,
            Event {
                object: key,
                api_version: claim.api_version().to_owned(),
                uid,
                resource_version: claim.resource_version(),
                is_warning: told.is_warning,
                reason: told.reason,
                message: told.message.clone(),
                annotations: Default::default(),
            },
        );
    }
}

/// What a write or a read that failed means for the pass.
pub fn missed(error: &Error) -> Outcome {
    match error {
        Error::NotFound { .. } | Error::UnknownKind { .. } => Outcome::Done,
        Error::Conflict { .. } => Outcome::Requeue("the object changed meanwhile".into(), None),
        error => Outcome::Transient(Failure::from_error(error)),
    }
}

/// The error and its causes, for a condition.
pub fn words(error: &Error) -> String {
    Failure::from_error(error).to_string()
}
