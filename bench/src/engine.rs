//! The reconcile engine: how soon, how many, how small.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use async_trait::async_trait;
use concert_engine::{
    Controller, Engine, Handle, Lane, Objects, Outcome, Reconciler, Request, Tasks, TokioSpawn,
};
use concert_model::{GroupKind, GroupVersionKind, Object, ObjectKey};
use concert_store::backend::Memory;
use concert_store::{Chance, Config, Local, Query, Store, SystemClock};
use serde_json::json;

use crate::report::{Report, percentile};
use crate::store::by;
use crate::{Scale, machine};

const AREA: &str = "engine";

/// Runs one part of the engine benchmarks.
pub fn run(part: &str, scale: Scale, report: &mut Report) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match part {
            "latency" => latency(scale, report).await,
            "throughput" => throughput(scale, report).await,
            _ => memory(scale, report).await,
        }
    })
}

/// A store in memory, so that the engine is what is measured.
fn engine() -> Result<(Local, Engine)> {
    let (clock, chance) = (Arc::new(SystemClock::new()), Chance::from_system());
    let store = Local::open(Arc::new(Memory::new()), Config::new(clock.clone(), chance.clone()))?;
    let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
    let engine = Engine::new(Arc::new(store.clone()), clock, chance, tasks);
    Ok((store, engine))
}

/// From a write to the start of its reconcile, at a thousand writes a second.
async fn latency(scale: Scale, report: &mut Report) -> Result<()> {
    const OBJECTS: usize = 1_000;
    let (store, engine) = engine()?;
    let kind = GroupKind::new("", "ConfigMap").at_version("v1");
    let started = Instant::now();
    let recorder = Arc::new(Recorder { started, seen: Mutex::default() });
    let objects = Objects::new(Query::all(kind.group_kind.clone()));
    let handle = engine.start(Controller::builder("latency", recorder.clone()).objects(objects).build())?;
    let mut last = Vec::new();
    for n in 0..OBJECTS {
        last.push(store.create(Object::new(&kind, "default", &format!("item-{n}")), &by()).await?);
    }
    handle.ready().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    recorder.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let writes = scale.of(10_000);
    let mut pace = tokio::time::interval(Duration::from_millis(1));
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let mut calls: HashMap<ObjectKey, Vec<f64>> = HashMap::new();
    let begun = Instant::now();
    for n in 0..writes {
        pace.tick().await;
        let stored = &mut last[n % OBJECTS];
        let mut object = stored.decode();
        object.set("data", json!({ "n": n.to_string() }));
        let called = started.elapsed().as_secs_f64();
        *stored = store.update(object, &by()).await?;
        calls.entry(stored.key().clone()).or_default().push(called);
    }
    let rate = writes as f64 / begun.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let seen = recorder.seen.lock().unwrap_or_else(PoisonError::into_inner);
    let mut delays = Vec::new();
    for (key, calls) in &calls {
        let runs = seen.get(key).map(Vec::as_slice).unwrap_or_default();
        for called in calls {
            let first = runs.iter().find(|at| *at >= called);
            let first = first.ok_or_else(|| anyhow::anyhow!("a write of {key} was never reconciled"))?;
            delays.push((first - called) * 1e3);
        }
    }
    delays.sort_by(f64::total_cmp);
    let what = format!("write to reconcile at {rate:.0} per s");
    report.add(AREA, format!("{what}, p50"), percentile(&delays, 0.5), "ms");
    report.add_against(AREA, format!("{what}, p99"), percentile(&delays, 0.99), "ms", "aim 2");
    Ok(())
}

struct Recorder {
    started: Instant,
    seen: Mutex<HashMap<ObjectKey, Vec<f64>>>,
}

#[async_trait]
impl Reconciler for Recorder {
    async fn reconcile(&self, request: Request) -> Outcome {
        let at = self.started.elapsed().as_secs_f64();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.entry(request.key).or_default().push(at);
        Outcome::Done
    }
}

#[derive(Default)]
struct Empty(AtomicU64);

#[async_trait]
impl Reconciler for Empty {
    async fn reconcile(&self, _: Request) -> Outcome {
        self.0.fetch_add(1, Ordering::Relaxed);
        Outcome::Done
    }
}

fn keys(count: usize) -> Vec<ObjectKey> {
    let GroupVersionKind { group_kind, .. } = GroupKind::new("bench.concert.dev", "Widget").at_version("v1");
    let key = |n| ObjectKey::namespaced(group_kind.clone(), "default", format!("widget-{n:07}"));
    (0..count).map(key).collect()
}

/// Reconciles per second through a reconciler that does nothing.
async fn throughput(scale: Scale, report: &mut Report) -> Result<()> {
    let (_store, engine) = engine()?;
    let empty = Arc::new(Empty::default());
    let handle = engine.start(Controller::builder("throughput", empty.clone()).concurrency(64).build())?;
    let keys = Arc::new(keys(10_000));
    let duration = Duration::from_millis(scale.of(5_000) as u64);
    let begun = Instant::now();
    let feed = feed(handle.clone(), keys, begun, duration);
    tokio::task::spawn_blocking(feed).await??;
    let rate = empty.0.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
    report.add_against(AREA, "reconciles, empty reconciler", rate, "per s", "aim 200000");
    engine.stop_all(Duration::from_secs(5)).await;
    Ok(())
}

/// Keeps some thousands of keys waiting, so that workers never wait and the feeder never runs ahead.
fn feed(
    handle: Handle,
    keys: Arc<Vec<ObjectKey>>,
    begun: Instant,
    duration: Duration,
) -> impl FnOnce() -> Result<()> {
    move || {
        while begun.elapsed() < duration {
            for key in keys.iter() {
                handle.enqueue(key, Lane::Event, "bench")?;
            }
        }
        Ok(())
    }
}

/// Resident memory of items that have run and will be polled within the hour.
async fn memory(scale: Scale, report: &mut Report) -> Result<()> {
    let count = scale.of(1_000_000);
    let (_store, engine) = engine()?;
    let empty = Arc::new(Empty::default());
    let controller = Controller::builder("memory", empty.clone()).poll(Duration::from_secs(3600));
    let handle = engine.start(controller.build())?;
    let before = machine::resident_bytes();
    for key in keys(count) {
        handle.enqueue(&key, Lane::Event, "bench")?;
    }
    while empty.0.load(Ordering::Relaxed) < count as u64 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let used = machine::resident_bytes().saturating_sub(before) as f64;
    let against = format!("{:.0} bytes per item, the key's text included", used / count as f64);
    report.add_against(AREA, format!("{count} idle items, poll within the hour"), used / 1e6, "MB", against);
    engine.stop_all(Duration::from_secs(5)).await;
    Ok(())
}
