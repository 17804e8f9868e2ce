//! Writes events as Kubernetes' own Event objects.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use concert_engine::{OnExit, Tasks};
use concert_model::name::SUBDOMAIN_BYTES_MAX;
use concert_model::{GroupKind, Object, ObjectKey, Patch, time};
use concert_store::{By, Chance, Clock, Error, Part, Store};
use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::mpsc;
use tracing::debug;

use super::correlate::{Correlator, Verdict};
use super::{Event, MESSAGE_BYTES_MAX, Recorder};

/// Events that wait to be written: with messages at their bound about two megabytes, and more than all
/// workers of a process tell in one pass. Beyond that the store is in trouble, and events do not help it.
const QUEUE_EVENTS_MAX: usize = 1024;

/// Events that are written side by side, each about another object: a server that is busy with what the events
/// tell of answers slowly, and one after the other they would soon find the queue full.
const WRITES_MAX: usize = 16;

/// Where events about cluster-scoped objects go: Kubernetes' habit.
const CLUSTER_NAMESPACE: &str = "default";

/// Writes events to a store: each once, repetitions at most every five minutes, few per object.
pub struct StoreRecorder {
    queue: mpsc::Sender<(Arc<str>, Event)>,
    dropped: Arc<AtomicU64>,
}

impl StoreRecorder {
    /// Starts the task that writes. It ends with `tasks`, after it has written what it had taken.
    pub fn start(store: Arc<dyn Store>, clock: Arc<dyn Clock>, chance: Chance, tasks: &Tasks) -> Arc<Self> {
        let (queue, events) = mpsc::channel(QUEUE_EVENTS_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = Writer { store, clock, chance, correlator: Correlator::new(), dropped: dropped.clone() };
        let shutdown = tasks.shutdown().clone();
        tasks.spawn("events", OnExit::Log, writer.run(events, async move { shutdown.requested().await }));
        Arc::new(Self { queue, dropped })
    }

    /// Events that were not written: no room, too many of one object, or the store refused.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Recorder for StoreRecorder {
    fn record(&self, component: &Arc<str>, mut event: Event) {
        shorten(&mut event.message);
        if self.queue.try_send((component.clone(), event)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for StoreRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreRecorder").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

/// Cuts a message down to the bound, between two characters.
pub(super) fn shorten(message: &mut String) {
    const MARK: &str = "...";
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX - MARK.len()));
        message.push_str(MARK);
    }
}

struct Writer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    chance: Chance,
    correlator: Correlator,
    dropped: Arc<AtomicU64>,
}

impl Writer {
    async fn run(mut self, mut events: mpsc::Receiver<(Arc<str>, Event)>, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut taken = Vec::with_capacity(WRITES_MAX);
        loop {
            // Events before the end: the last ones often say why everything stops.
            let count = tokio::select! {
                biased;
                count = events.recv_many(&mut taken, WRITES_MAX) => count,
                () = &mut stop => 0,
            };
            if count == 0 {
                return;
            }
            while !taken.is_empty() {
                // One of each object at a time: what is told of an object stays in order.
                let mut about = HashSet::new();
                let (now, later): (Vec<_>, Vec<_>) =
                    taken.drain(..).partition(|(_, event)| about.insert(event.uid.clone()));
                self.take(now).await;
                taken = later;
            }
        }
    }

    /// Writes what is worth it. No two of `events` are about the same object.
    async fn take(&mut self, events: Vec<(Arc<str>, Event)>) {
        let now = self.clock.elapsed();
        let mut writes = Vec::new();
        for (component, event) in &events {
            match self.correlator.decide(event, now) {
                Verdict::Known => {}
                Verdict::Limited => {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                }
                Verdict::Create => writes.push((component, event, None)),
                Verdict::Repeat { object, count } => writes.push((component, event, Some((object, count)))),
            }
        }
        let results =
            join_all(writes.iter().map(|(component, event, told)| self.write(component, event, told))).await;
        let now = self.clock.elapsed();
        for ((_, event, _), result) in writes.iter().zip(results) {
            match result {
                Ok(object) => self.correlator.written(event, object, now),
                Err(error) => {
                    debug!(key = %event.object, reason = event.reason, %error, "event not written");
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                    self.correlator.forget(event);
                }
            }
        }
    }

    /// Writes an event, or that one that was told before happened so often by now.
    async fn write(
        &self,
        component: &Arc<str>,
        event: &Event,
        told: &Option<(ObjectKey, u32)>,
    ) -> Result<ObjectKey, Error> {
        let by = By::actor(component.clone());
        let Some((object, count)) = told else { return self.create(component, event, &by).await };
        match self.repeat(object, *count, &by).await {
            // Events are cleaned up after an hour or so.
            Err(Error::NotFound { .. }) => self.create(component, event, &by).await,
            other => other.map(|()| object.clone()),
        }
    }

    async fn create(&self, component: &str, event: &Event, by: &By) -> Result<ObjectKey, Error> {
        let object = self.object(component, event);
        Ok(self.store.create(object, by).await?.key().clone())
    }

    async fn repeat(&self, object: &ObjectKey, count: u32, by: &By) -> Result<(), Error> {
        let patch = json!({"count": count, "lastTimestamp": time::seconds(self.clock.now())});
        self.store.patch(object, Part::Main, &Patch::Merge(patch), by).await.map(drop)
    }

    fn object(&self, component: &str, event: &Event) -> Object {
        let about = &event.object;
        let namespace = if about.namespace.is_empty() { CLUSTER_NAMESPACE } else { &about.namespace };
        let kind = GroupKind::new("", "Event").at_version("v1");
        let mut object = Object::new(&kind, namespace, &self.name(&about.name));
        if !event.annotations.is_empty() {
            object.set_metadata("annotations", json!(event.annotations));
        }
        let mut involved = json!({
            "apiVersion": event.api_version, "kind": &*about.kind.kind, "name": &*about.name,
            "uid": &*event.uid.0,
        });
        if !about.namespace.is_empty() {
            involved["namespace"] = json!(&*about.namespace);
        }
        if let Some(version) = &event.resource_version {
            involved["resourceVersion"] = json!(&*version.0);
        }
        let now = json!(time::seconds(self.clock.now()));
        object.set("involvedObject", involved);
        object.set("reason", json!(event.reason));
        object.set("message", json!(event.message));
        object.set("type", json!(if event.is_warning { "Warning" } else { "Normal" }));
        object.set("count", json!(1));
        object.set("firstTimestamp", now.clone());
        object.set("lastTimestamp", now);
        object.set("source", json!({"component": component}));
        object.set("reportingComponent", json!(component));
        object.set("reportingInstance", json!(""));
        object
    }

    /// The object's name and something that no other event has.
    fn name(&self, about: &str) -> String {
        let unique = format!(".{:016x}", self.chance.bits() >> 64);
        let room = about.floor_char_boundary(SUBDOMAIN_BYTES_MAX - unique.len());
        // What is cut between two parts of a name must not end with the mark between them.
        let stem = about[..room].trim_end_matches(['.', '-']);
        format!("{stem}{unique}")
    }
}
