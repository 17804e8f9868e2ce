//! The cloud as its clients see it: with latency, side by side, and with news.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concert_model::Timestamp;
use concert_store::Clock;
use serde_json::{Map, Value};
use tokio::sync::broadcast;

use super::fault::Fault;
use super::settings::Settings;
use super::simulated::{Cloud, Create, Lookup};
use super::thing::{Account, Thing, ThingKey};

/// News a listener may be behind by. One that falls further behind is told that it missed some, and
/// that costs it a look at everything; so the bound is about a burst of changes made by hand.
const NEWS_MAX: usize = 1024;

/// What listeners are told.
#[derive(Clone, Debug)]
pub enum Change {
    /// This thing was changed or removed by somebody.
    Moved(Arc<Thing>),
    /// Something will become visible or ready.
    Scheduled,
}

/// One cloud, shared by all who call it.
pub struct Api {
    cloud: Mutex<Cloud>,
    clock: Arc<dyn Clock>,
    news: broadcast::Sender<Change>,
}

impl Api {
    /// Opens a cloud to clients.
    pub fn new(cloud: Cloud, clock: Arc<dyn Clock>) -> Self {
        Self { cloud: Mutex::new(cloud), clock, news: broadcast::Sender::new(NEWS_MAX) }
    }

    /// The cloud itself, for those who look behind the curtain. Never held across an await.
    pub fn cloud(&self) -> MutexGuard<'_, Cloud> {
        // Every change of the cloud is whole or not at all, so a panic elsewhere leaves it usable.
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time of the cloud.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The clock that the cloud goes by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// News from now on.
    pub fn listen(&self) -> broadcast::Receiver<Change> {
        self.news.subscribe()
    }

    /// As [`Cloud::create`].
    ///
    /// # Errors
    /// As there.
    pub async fn create(&self, create: Create) -> Result<Thing, Fault> {
        let made = self.call(|cloud, now| cloud.create(create, now)).await;
        if self.cloud().settles_next(self.now()).is_some() {
            self.tell(Change::Scheduled);
        }
        made
    }

    /// As [`Cloud::read`].
    ///
    /// # Errors
    /// As there.
    pub async fn read(&self, key: &ThingKey, account: &Account) -> Result<Option<Thing>, Fault> {
        self.call(|cloud, now| cloud.read(key, account, now)).await
    }

    /// As [`Cloud::list`].
    ///
    /// # Errors
    /// As there.
    pub async fn list(&self, kind: &str, prefix: &str, account: &Account) -> Result<Vec<Thing>, Fault> {
        self.call(|cloud, now| cloud.list(kind, prefix, account, now)).await
    }

    /// As [`Cloud::update`].
    ///
    /// # Errors
    /// As there.
    pub async fn update(
        &self,
        key: &ThingKey,
        properties: Map<String, Value>,
        account: &Account,
        fence: Option<u64>,
    ) -> Result<Thing, Fault> {
        self.call(|cloud, now| cloud.update(key, properties, account, fence, now)).await
    }

    /// As [`Cloud::delete`].
    ///
    /// # Errors
    /// As there.
    pub async fn delete(&self, key: &ThingKey, account: &Account, fence: Option<u64>) -> Result<(), Fault> {
        self.call(|cloud, now| cloud.delete(key, account, fence, now)).await
    }

    /// As [`Cloud::lookup`].
    ///
    /// # Errors
    /// As there.
    pub async fn lookup(&self, token: &str, account: &Account) -> Result<Lookup, Fault> {
        self.call(|cloud, now| cloud.lookup(token, account, now)).await
    }

    /// As [`Cloud::drift`]; those who listen are told.
    ///
    /// # Errors
    /// As there.
    pub fn drift(
        &self,
        key: &ThingKey,
        properties: Map<String, Value>,
        is_broken: Option<bool>,
    ) -> Result<Thing, Fault> {
        let now = self.now();
        let thing = self.cloud().drift(key, properties, is_broken, now)?;
        self.tell(Change::Moved(Arc::new(thing.clone())));
        Ok(thing)
    }

    /// As [`Cloud::vanish`]; those who listen are told.
    ///
    /// # Errors
    /// As there.
    pub fn vanish(&self, key: &ThingKey) -> Result<Thing, Fault> {
        let now = self.now();
        let thing = self.cloud().vanish(key, now)?;
        self.tell(Change::Moved(Arc::new(thing.clone())));
        Ok(thing)
    }

    /// How the cloud behaves.
    pub fn settings(&self) -> Settings {
        self.cloud().settings().clone()
    }

    async fn call<T>(&self, act: impl FnOnce(&mut Cloud, Timestamp) -> T) -> T {
        // A caller who gives up before the effect prevents it; one who gives up after it has lost the
        // answer. Both happen, so the wait is on both sides.
        let half = self.settings().latency / 2;
        self.wait(half).await;
        let answer = act(&mut self.cloud(), self.clock.now());
        self.wait(half).await;
        answer
    }

    async fn wait(&self, wait: std::time::Duration) {
        if !wait.is_zero() {
            self.clock.sleep(wait).await;
        }
    }

    fn tell(&self, change: Change) {
        // Nobody listens: nobody needs to know.
        let _ = self.news.send(change);
    }
}
