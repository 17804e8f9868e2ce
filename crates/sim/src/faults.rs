//! Bad weather: a backend that dies after the n-th write, and a store seen through a bad connection.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Patch, ResourceVersion, Revision, Timestamp};
use concert_store::backend::{
    Attempt, Backend, Bounds, Change, Failure, Memory, Past, Payload, Range, Row, Scan, Shelf, Txn, Verdict,
};
use concert_store::{
    By, Chance, Clock, Delete, Deleted, Error, Event, Events, Fence, ItemKey, Kind, Local, Page, PageRequest,
    Part, Query, Result, Store, Work, WorkRow,
};
use futures_util::stream;

use crate::executor::Executor;

/// What can go wrong between a process and its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A request, or an event, comes late.
    Late,
    /// A request does not arrive.
    LostRequest,
    /// An answer does not arrive.
    LostAnswer,
    /// A write is refused as if somebody had been faster.
    Conflict,
    /// A read shows what was there before.
    Stale,
    /// An event is never told.
    LostEvent,
    /// An event is told twice.
    RepeatedEvent,
    /// A watch ends.
    Cut,
}

/// Whether faults happen at all, and of which sort. Shared by everything that can fail.
#[derive(Clone)]
pub struct Weather {
    is_bad: Arc<AtomicBool>,
    is_lossy: bool,
    hits: Arc<Mutex<BTreeMap<Fault, u64>>>,
}

impl Weather {
    /// Fine weather. A lossy one, once it is bad, breaks what a store promises: reads are stale and
    /// watches lose events without a word.
    pub fn new(is_lossy: bool) -> Self {
        Self { is_bad: Arc::default(), is_lossy, hits: Arc::default() }
    }

    /// True if bad weather breaks what a store promises.
    pub fn is_lossy(&self) -> bool {
        self.is_lossy
    }

    /// Whether `fault` happens now, which it does with this probability while the weather is bad.
    pub fn strikes(&self, fault: Fault, probability: f64, chance: &Chance) -> bool {
        let is_hit = self.is_bad() && chance.is_hit(probability);
        if is_hit {
            *self.hits.lock().unwrap_or_else(PoisonError::into_inner).entry(fault).or_default() += 1;
        }
        is_hit
    }

    /// How often what went wrong.
    pub fn hits(&self) -> BTreeMap<Fault, u64> {
        self.hits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts or ends the bad weather.
    pub fn set_bad(&self, is_bad: bool) {
        self.is_bad.store(is_bad, Ordering::Relaxed);
    }

    /// True while faults happen.
    pub fn is_bad(&self) -> bool {
        self.is_bad.load(Ordering::Relaxed)
    }
}

/// A disk that survives crashes, under a process that does not.
#[derive(Clone, Default)]
pub struct Disk {
    memory: Arc<Memory>,
    /// Commits left before the process dies; 0 for never.
    fuse: Arc<AtomicU64>,
    is_dead: Arc<AtomicBool>,
}

impl Disk {
    /// Lets the process die at its n-th commit from now.
    pub fn light_fuse(&self, commits: u64) {
        self.fuse.store(commits, Ordering::Relaxed);
    }

    /// True once the process is dead: nothing works until [`Disk::revive`].
    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    /// A new process opens the disk.
    pub fn revive(&self) {
        self.fuse.store(0, Ordering::Relaxed);
        self.is_dead.store(false, Ordering::Relaxed);
    }

    /// The last revision on the disk.
    pub fn newest(&self) -> Revision {
        self.memory.bounds().map_or(Revision(0), |bounds| bounds.newest)
    }

    fn alive(&self) -> Result<&Memory, Failure> {
        if self.is_dead() { Err(Failure::broken("the process has died")) } else { Ok(&self.memory) }
    }
}

impl Backend for Disk {
    fn bounds(&self) -> Result<Bounds, Failure> {
        self.alive()?.bounds()
    }
    fn get(&self, key: &ObjectKey) -> Result<Option<Row>, Failure> {
        self.alive()?.get(key)
    }
    fn range(&self, scan: &Scan<'_>) -> Result<Range, Failure> {
        self.alive()?.range(scan)
    }
    fn count(&self, kind: &GroupKind, namespace: Option<&str>, after: &ObjectKey) -> Result<usize, Failure> {
        self.alive()?.count(kind, namespace, after)
    }
    fn tail(&self, after: Revision, limit: usize) -> Result<Vec<Change>, Failure> {
        self.alive()?.tail(after, limit)
    }
    fn history(&self, key: &ObjectKey, before: Option<Revision>, limit: usize) -> Result<Vec<Past>, Failure> {
        self.alive()?.history(key, before, limit)
    }
    fn work(&self, item: &ItemKey) -> Result<Option<WorkRow>, Failure> {
        self.alive()?.work(item)
    }
    fn work_of(&self, controller: &str) -> Result<Vec<WorkRow>, Failure> {
        self.alive()?.work_of(controller)
    }
    fn attempts(&self, item: &ItemKey, limit: usize) -> Result<Vec<Attempt>, Failure> {
        self.alive()?.attempts(item, limit)
    }
    fn compact(&self, floor: Revision, limit: usize) -> Result<Revision, Failure> {
        self.alive()?.compact(floor, limit)
    }
    fn forget(&self, before: Timestamp, limit: usize) -> Result<usize, Failure> {
        self.alive()?.forget(before, limit)
    }
    fn payloads(&self, shelf: Shelf, after: u64, limit: usize) -> Result<Vec<Payload>, Failure> {
        self.alive()?.payloads(shelf, after, limit)
    }
    fn is_local(&self) -> bool {
        true
    }

    fn commit(&self, batch: &[Txn]) -> Result<Vec<Verdict>, Failure> {
        let memory = self.alive()?;
        match self.fuse.load(Ordering::Relaxed) {
            0 => memory.commit(batch),
            // The last write reaches the disk, its answer nobody.
            1 => {
                memory.commit(batch)?;
                self.is_dead.store(true, Ordering::Relaxed);
                Err(Failure::broken("the process has died"))
            }
            left => {
                self.fuse.store(left - 1, Ordering::Relaxed);
                memory.commit(batch)
            }
        }
    }
}

/// Somebody who sees what really happens in the store, when it happens: whoever asks later may find that
/// what a write relied on is gone.
pub trait Witness: Send + Sync {
    /// This was read, and was so.
    fn read(&self, found: &Encoded);

    /// This was written, just now, in place of that.
    fn written(&self, store: &Local, before: Option<&Encoded>, after: &Encoded);
}

/// How far back a stale read may go.
const STALE_STATES: usize = 5;

/// A store at the other end of a bad connection.
pub struct Remote {
    store: Local,
    executor: Executor,
    chance: Chance,
    weather: Weather,
    /// What was read before, the latest last, to be read again when reads are stale.
    seen: Mutex<BTreeMap<ObjectKey, Vec<Encoded>>>,
    line: Line,
    witness: Option<Arc<dyn Witness>>,
}

/// The line between one process and its store, which can be cut for a while.
#[derive(Clone, Default)]
pub struct Line(Arc<Mutex<Duration>>);

impl Line {
    /// Cuts it until then, by the executor's time.
    pub fn cut(&self, until: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Completes when it is whole; says whether it was.
    async fn whole(&self, executor: &Executor) -> bool {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_sub(executor.elapsed());
        if left.is_zero() {
            return true;
        }
        executor.sleep(left).await;
        false
    }
}

impl Remote {
    /// `store`, seen through `weather`.
    pub fn new(store: Local, executor: Executor, chance: Chance, weather: Weather) -> Self {
        Self {
            store,
            executor,
            chance,
            weather,
            seen: Mutex::default(),
            line: Line::default(),
            witness: None,
        }
    }

    /// Seen by somebody, if there is somebody.
    pub fn seen_by(self, witness: Option<Arc<dyn Witness>>) -> Self {
        Self { witness, ..self }
    }

    /// What is there before a write, if anybody wants to know.
    async fn before(&self, key: Option<ObjectKey>) -> Option<Encoded> {
        self.witness.as_ref()?;
        self.store.get(&key?).await.ok()
    }

    fn written(&self, before: Option<&Encoded>, result: &Result<Encoded>) {
        if let (Some(witness), Ok(after)) = (&self.witness, result) {
            witness.written(&self.store, before, after);
        }
    }

    /// What it is seen through.
    pub fn line(&self) -> Line {
        self.line.clone()
    }

    /// The store itself, for what stands right beside it.
    pub fn store(&self) -> &Local {
        &self.store
    }

    /// Any other call that goes the same way. One that is lost on the way there is never made.
    ///
    /// # Errors
    /// Those of the call, and [`Error::Unavailable`] if it or its answer was lost.
    pub async fn carry<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.travel().await?;
        let result = call.await;
        self.answer(result).await
    }

    fn strikes(&self, fault: Fault, probability: f64) -> bool {
        self.weather.strikes(fault, probability, &self.chance)
    }

    /// The way there.
    async fn travel(&self) -> Result<()> {
        let bound = if self.strikes(Fault::Late, 0.03) { 3_000 } else { 5 };
        self.executor.sleep(Duration::from_millis(self.chance.below(bound))).await;
        let is_cut = !self.line.whole(&self.executor).await;
        let is_lost = is_cut || self.strikes(Fault::LostRequest, 0.03);
        if is_lost { Err(Error::unavailable("the request was lost")) } else { Ok(()) }
    }

    /// The way back.
    async fn answer<T>(&self, result: Result<T>) -> Result<T> {
        self.executor.sleep(Duration::from_millis(self.chance.below(5))).await;
        let is_cut = !self.line.whole(&self.executor).await;
        let is_lost = is_cut || self.strikes(Fault::LostAnswer, 0.03);
        if is_lost { Err(Error::unavailable("the answer was lost")) } else { result }
    }

    /// Something that was read some time ago.
    fn stale(&self, key: &ObjectKey) -> Option<Encoded> {
        if !self.weather.is_lossy() || !self.strikes(Fault::Stale, 0.1) {
            return None;
        }
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let states = seen.get(key)?;
        states.get(self.chance.below(states.len() as u64) as usize).cloned()
    }

    fn maybe_conflict(&self, key: impl FnOnce() -> Option<ObjectKey>) -> Result<()> {
        match key().filter(|_| self.strikes(Fault::Conflict, 0.05)) {
            Some(key) => Err(Error::Conflict { key }),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Store for Remote {
    async fn get(&self, key: &ObjectKey) -> Result<Encoded> {
        self.travel().await?;
        if let Some(stale) = self.stale(key) {
            return self.answer(Ok(stale)).await;
        }
        let result = self.store.get(key).await;
        if let Ok(object) = &result {
            if let Some(witness) = &self.witness {
                witness.read(object);
            }
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let states = seen.entry(key.clone()).or_default();
            if states.last() != Some(object) {
                states.push(object.clone());
            }
            let surplus = states.len().saturating_sub(STALE_STATES);
            states.drain(..surplus);
        }
        self.answer(result).await
    }

    async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page> {
        self.travel().await?;
        let result = self.store.list(query, page).await;
        self.answer(result).await
    }

    async fn watch(&self, query: &Query, from: Option<&ResourceVersion>) -> Result<Events> {
        self.travel().await?;
        let events = self.store.watch(query, from).await?;
        let connection = Connection {
            events,
            executor: self.executor.clone(),
            chance: self.chance.fork(),
            weather: self.weather.clone(),
            line: self.line.clone(),
            again: None,
            has_ended: false,
        };
        Ok(Events::new(stream::unfold(connection, Connection::next)))
    }

    async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        self.travel().await?;
        let result = self.store.create(object, by).await;
        self.written(None, &result);
        self.answer(result).await
    }

    async fn update(&self, object: Object, by: &By) -> Result<Encoded> {
        self.travel().await?;
        self.maybe_conflict(|| object.key().ok())?;
        let before = self.before(object.key().ok()).await;
        let result = self.store.update(object, by).await;
        self.written(before.as_ref(), &result);
        self.answer(result).await
    }

    async fn update_status(&self, object: Object, by: &By) -> Result<Encoded> {
        self.travel().await?;
        self.maybe_conflict(|| object.key().ok())?;
        let result = self.store.update_status(object, by).await;
        self.answer(result).await
    }

    async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        self.travel().await?;
        let before = self.before(Some(key.clone())).await;
        let result = self.store.patch(key, part, patch, by).await;
        self.written(before.as_ref(), &result);
        self.answer(result).await
    }

    async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        self.travel().await?;
        let result = self.store.delete(key, options, by).await;
        self.answer(result).await
    }

    async fn kind(&self, kind: &GroupKind) -> Result<Arc<Kind>> {
        self.store.kind(kind).await
    }
}

/// Work state travels the same way.
#[async_trait]
impl Work for Remote {
    async fn read(&self, item: &ItemKey) -> Result<Option<WorkRow>> {
        self.travel().await?;
        let result = self.store.read(item).await;
        self.answer(result).await
    }

    async fn scan(&self, controller: &str) -> Result<Vec<WorkRow>> {
        self.travel().await?;
        let result = self.store.scan(controller).await;
        self.answer(result).await
    }

    async fn claim(&self, item: &ItemKey, seen: u64, body: Bytes) -> Result<Fence> {
        self.travel().await?;
        let result = self.store.claim(item, seen, body).await;
        self.answer(result).await
    }

    async fn save(&self, fence: &Fence, body: Bytes) -> Result<()> {
        self.travel().await?;
        let result = self.store.save(fence, body).await;
        self.answer(result).await
    }

    async fn forget(&self, fence: &Fence) -> Result<()> {
        self.travel().await?;
        let result = self.store.forget(fence).await;
        self.answer(result).await
    }
}

/// One watch through bad weather: events are late, lost, repeated, or the watch ends.
struct Connection {
    events: Events,
    executor: Executor,
    chance: Chance,
    weather: Weather,
    line: Line,
    again: Option<Event>,
    has_ended: bool,
}

impl Connection {
    async fn next(mut self) -> Option<(Result<Event>, Self)> {
        let strikes = |it: &Self, fault, probability| it.weather.strikes(fault, probability, &it.chance);
        loop {
            if self.has_ended {
                return None;
            }
            if let Some(event) = self.again.take() {
                return Some((Ok(event), self));
            }
            let event = self.events.next().await?;
            self.line.whole(&self.executor).await;
            let bound = if strikes(&self, Fault::Late, 0.05) { 5_000 } else { 3 };
            self.executor.sleep(Duration::from_millis(self.chance.below(bound))).await;
            if strikes(&self, Fault::Cut, 0.03) {
                self.has_ended = true;
                let is_expired = self.chance.is_hit(0.5);
                return is_expired.then(|| (Err(Error::Expired), self));
            }
            let is_change = event.as_ref().is_ok_and(|event| event.object().is_some());
            if is_change && self.weather.is_lossy() && strikes(&self, Fault::LostEvent, 0.03) {
                continue;
            }
            if is_change && strikes(&self, Fault::RepeatedEvent, 0.05) {
                self.again = event.as_ref().ok().cloned();
            }
            return Some((event, self));
        }
    }
}
