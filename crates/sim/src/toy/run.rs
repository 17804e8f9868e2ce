//! The hands of the toy.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{Failure, Outcome, Reconciler, Request, Wait};
use concert_model::condition::{self, Condition, Status};
use concert_model::{Encoded, Object, ObjectKey};
use concert_store::{By, Clock, Error, Store};
use serde_json::Value;

use super::decide::{Seen, Step, decide, is_ready};
use super::{FINALIZER, INTENT, key, thing_of};
use crate::executor::Executor;
use crate::world::{Call, CallError, World};

/// Steps in one run: more than any honest path needs.
const STEPS_MAX: usize = 12;

/// A mistake that somebody could make, to see whether the simulation notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Calls the world as nobody in particular.
    NoFence,
    /// Creates on the ground of whatever was read.
    NoIntent,
    /// Lets an object go before its thing.
    NoFinalizer,
    /// Writes although nothing has changed.
    WritesEveryTime,
    /// Says that it is done when it should wait.
    ForgetsToWait,
}

/// The toy, in one process.
pub struct Toy {
    bug: Option<Bug>,
    store: Arc<dyn Store>,
    world: World,
    clock: Executor,
    running: Mutex<BTreeSet<ObjectKey>>,
}

impl Toy {
    /// A toy that reads and writes `store` and acts on `world`.
    pub fn new(store: Arc<dyn Store>, world: World, clock: Executor, bug: Option<Bug>) -> Self {
        Self { bug, store, world, clock, running: Mutex::default() }
    }

    async fn work(&self, request: &Request) -> Result<Outcome, Trouble> {
        let mut seen = Seen::default();
        let mut wait = None;
        let mut current = match self.store.get(&request.key).await {
            Err(Error::NotFound { .. }) => return Ok(Outcome::Done),
            other => other?,
        };
        for _ in 0..STEPS_MAX {
            let object = current.decode();
            let by = By { fence: request.fence.clone(), ..By::actor("toy") };
            let fence = match self.bug {
                Some(Bug::NoFence) => u64::MAX,
                _ => request.fence.as_ref().map_or(0, |fence| fence.number),
            };
            let thing = thing_of(&object);
            let call = |call| self.world.call(&thing, fence, call);
            match decide(&object, &seen) {
                Step::Rest if self.bug == Some(Bug::WritesEveryTime) => {
                    let mut object = object.clone();
                    object.set_annotation(INTENT, &format!("{:?}", self.clock.elapsed()));
                    self.store.update(object, &by).await?;
                    return Ok(Outcome::Done);
                }
                Step::WaitForPredecessor if self.bug == Some(Bug::ForgetsToWait) => return Ok(Outcome::Done),
                Step::Delete if self.bug == Some(Bug::NoFinalizer) => seen.thing = Some(None),
                Step::Create(size) if self.bug == Some(Bug::NoIntent) => {
                    seen.thing = Some(call(Call::Create(size)).await?);
                }
                Step::Rest => return Ok(Outcome::Done),
                Step::LookAtPredecessor => {
                    let (is_there, for_it) = self.predecessor(&object).await?;
                    seen.is_predecessor_ready = Some(is_there);
                    wait = Some(for_it);
                }
                Step::WaitForPredecessor => return Ok(Outcome::WaitFor(wait.into_iter().collect())),
                Step::Observe => seen.thing = Some(call(Call::Observe).await?),
                Step::Create(size) => {
                    // A new word each time, so that the write is a real one and meets its precondition.
                    let mut object = object.clone();
                    object.set_annotation(INTENT, &format!("{thing} at {:?}", self.clock.elapsed()));
                    current = self.store.update(object, &by).await?;
                    seen.thing = Some(call(Call::Create(size)).await?);
                }
                Step::Update(size) => seen.thing = Some(call(Call::Update(size)).await?),
                Step::Delete => seen.thing = Some(call(Call::Delete).await?),
                Step::AddFinalizer => {
                    let mut object = object.clone();
                    object.add_finalizer(FINALIZER);
                    current = self.store.update(object, &by).await?;
                }
                Step::RemoveFinalizer => {
                    let mut object = object.clone();
                    object.remove_finalizer(FINALIZER);
                    self.store.update(object, &by).await?;
                    return Ok(Outcome::Done);
                }
                Step::WriteStatus => current = self.write_status(object.clone(), &by).await?,
            }
        }
        Err(Trouble::Transient("more steps than any honest path needs".into()))
    }

    async fn predecessor(&self, object: &Object) -> Result<(bool, Wait), Trouble> {
        let after = key(object.spec()["after"].as_str().unwrap_or_default());
        match self.store.get(&after).await {
            Ok(other) => Ok((is_ready(&other.decode()), Wait::change_of(&other))),
            Err(Error::NotFound { .. }) => Ok((false, Wait::existence_of(after))),
            Err(error) => Err(error.into()),
        }
    }

    async fn write_status(&self, mut object: Object, by: &By) -> Result<Encoded, Trouble> {
        let mut status = object.status().clone();
        if status.is_null() {
            status = Value::Object(serde_json::Map::new());
        }
        let ready = Condition::new("Ready", Status::True, "Available", "the thing is there");
        condition::set(&mut status, ready.observed(object.generation()), self.clock.now());
        object.set("status", status);
        Ok(self.store.update_status(object, by).await?)
    }

    fn running(&self) -> std::sync::MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a key out of the running ones, however the run ends.
struct Turn<'a>(&'a Toy, ObjectKey);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.running().remove(&self.1);
    }
}

#[async_trait]
impl Reconciler for Toy {
    async fn reconcile(&self, request: Request) -> Outcome {
        self.world.truth().runs += 1;
        if !self.running().insert(request.key.clone()) {
            self.world.truth().violations.push(format!("{} ran twice at once", request.key));
        }
        let _turn = Turn(self, request.key.clone());
        match self.work(&request).await {
            Ok(outcome) => outcome,
            Err(Trouble::Again) => Outcome::After(Duration::from_millis(100)),
            Err(Trouble::Transient(text)) => Outcome::Transient(Failure::new(text)),
        }
    }
}

/// Why a run ended early.
enum Trouble {
    /// Somebody else was faster: look again soon.
    Again,
    Transient(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::Conflict { .. } | Error::NotFound { .. } => Trouble::Again,
            other => Trouble::Transient(other.to_string()),
        }
    }
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Self {
        Trouble::Transient(format!("{error:?}"))
    }
}
