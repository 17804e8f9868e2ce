//! The external world: things that cost money, and a truth log that counts them.
//!
//! Calls take time both ways, answers get lost, and a call that was sent lands even if its sender dies.
//! Like a good provider the world refuses callers with an older fence than it has seen for the same
//! thing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_store::{Chance, Clock};
use tokio::sync::oneshot;

use crate::executor::{Executor, Group};
use crate::faults::Weather;

/// The group that calls in flight belong to: nobody kills it.
const EARTH: Group = Group(u32::MAX);

/// A call to the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// What is there under this name.
    Observe,
    /// Make it.
    Create(i64),
    /// Change it.
    Update(i64),
    /// Remove it.
    Delete,
}

/// Why a call brought nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// A newer owner has called before.
    Fenced,
    /// Nobody knows what became of it.
    Lost,
    /// It was there already, or not there.
    Refused,
}

/// Things by name.
#[derive(Clone)]
pub struct World {
    executor: Executor,
    chance: Chance,
    weather: Weather,
    truth: Arc<Mutex<Truth>>,
}

/// What really happened.
#[derive(Debug, Default)]
pub struct Truth {
    /// What is there.
    pub things: BTreeMap<String, i64>,
    /// How often each was made.
    pub creates: BTreeMap<String, u32>,
    /// How often each was removed.
    pub deletes: BTreeMap<String, u32>,
    /// All effects.
    pub mutations: u64,
    /// Calls turned away because a newer owner had called.
    pub fenced: u64,
    /// Runs of reconcilers.
    pub runs: u64,
    /// Broken promises, in words.
    pub violations: Vec<String>,
    /// Of each thing: owners of different things have claims of their own.
    newest_fences: BTreeMap<String, u64>,
}

impl World {
    /// An empty world.
    pub fn new(executor: Executor, chance: Chance, weather: Weather) -> Self {
        Self { executor, chance, weather, truth: Arc::default() }
    }

    /// What really happened so far.
    pub fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the world as the owner with this fence.
    pub async fn call(&self, name: &str, fence: u64, call: Call) -> Result<Option<i64>, CallError> {
        // The call travels by itself: once sent it lands, whatever becomes of the caller.
        let (sender, answer) = oneshot::channel();
        let (world, name) = (self.clone(), name.to_owned());
        let (there, back) = (self.travel(), self.travel());
        let is_lost = self.weather.is_bad() && self.chance.is_hit(0.05);
        let flight = async move {
            world.executor.sleep(there).await;
            let result = world.truth().land(&name, fence, &call);
            world.executor.sleep(back).await;
            if !is_lost {
                // Fails if the caller has died.
                let _ = sender.send(result);
            }
        };
        self.executor.spawn(EARTH, Box::pin(flight));
        answer.await.unwrap_or(Err(CallError::Lost))
    }

    fn travel(&self) -> Duration {
        // Some calls are on their way for longer than a lease: they land when somebody else has taken over.
        let is_slow = self.weather.is_bad() && self.chance.is_hit(0.1);
        Duration::from_millis(self.chance.below(if is_slow { 60_000 } else { 20 }))
    }
}

impl Truth {
    fn land(&mut self, name: &str, fence: u64, call: &Call) -> Result<Option<i64>, CallError> {
        let newest = self.newest_fences.entry(name.to_owned()).or_default();
        if fence < *newest {
            self.fenced += 1;
            return Err(CallError::Fenced);
        }
        *newest = fence;
        let there = self.things.get(name).copied();
        match (call, there) {
            (Call::Observe, there) => return Ok(there),
            (Call::Create(_), Some(_)) | (Call::Update(_) | Call::Delete, None) => {
                return Err(CallError::Refused);
            }
            (Call::Create(value), None) => {
                self.things.insert(name.to_owned(), *value);
                let count = self.creates.entry(name.to_owned()).or_default();
                *count += 1;
                if *count > 1 {
                    self.violations.push(format!("{name} was made {count} times"));
                }
            }
            (Call::Update(value), Some(_)) => drop(self.things.insert(name.to_owned(), *value)),
            (Call::Delete, Some(_)) => {
                self.things.remove(name);
                *self.deletes.entry(name.to_owned()).or_default() += 1;
            }
        }
        self.mutations += 1;
        Ok(self.things.get(name).copied())
    }
}
