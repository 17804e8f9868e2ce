//! Durable writes per second, each answered after its sync.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use concert_model::Encoded;
use concert_store::{Chance, Store};
use serde_json::json;

use super::plain;
use super::world::{World, by, widget};
use crate::Scale;
use crate::report::Report;

const CALLERS: [usize; 3] = [1, 16, 256];

/// Rates of each kind of write beside the plain rate, interleaved so that both see the same machine.
pub async fn rates(scale: Scale, report: &mut Report) -> Result<()> {
    let duration = Duration::from_millis(scale.of(3_000) as u64);
    for callers in CALLERS {
        let limits = limits(plain::Act::Create, callers, duration).await?;
        row(report, "creates", callers, creates(callers, duration).await?, limits);
        let limits = self::limits(plain::Act::Update, callers, duration).await?;
        row(report, "updates", callers, updates(callers, duration, false).await?, limits);
        row(report, "status updates", callers, updates(callers, duration, true).await?, limits);
    }
    Ok(())
}

/// What SQLite does with the plain layout and with ours.
async fn limits(act: plain::Act, callers: usize, duration: Duration) -> Result<[f64; 2]> {
    let plain = plain::rate(plain::Layout::Plain, act, callers, duration).await?;
    Ok([plain, plain::rate(plain::Layout::Own, act, callers, duration).await?])
}

fn row(report: &mut Report, what: &str, callers: usize, rate: f64, [plain, own]: [f64; 2]) {
    let (to_plain, to_own) = (rate / plain, rate / own);
    let against =
        format!("{to_plain:.2} of plain SQLite ({plain:.0}), {to_own:.2} of our rows alone ({own:.0})");
    report.add_against("store: writes", format!("{what}, {callers} callers"), rate, "per s", against);
}

async fn creates(callers: usize, duration: Duration) -> Result<f64> {
    creates_in(Arc::new(World::open()?), callers, duration).await
}

/// Creates per second in a world that has none yet.
pub async fn creates_in(world: Arc<World>, callers: usize, duration: Duration) -> Result<f64> {
    let next = Arc::new(AtomicUsize::new(0));
    let create = move |world: Arc<World>, _: usize, _: Option<Encoded>| {
        let n = next.fetch_add(1, Ordering::Relaxed);
        async move { Ok(world.store.create(widget(&world.kind, n), &by()).await?) }
    };
    measure(world, callers, duration, create).await
}

async fn updates(callers: usize, duration: Duration, is_status: bool) -> Result<f64> {
    updates_in(Arc::new(World::open()?), callers, duration, is_status).await
}

/// Updates per second, each caller of an object of its own, in a world that has none yet.
pub async fn updates_in(
    world: Arc<World>,
    callers: usize,
    duration: Duration,
    is_status: bool,
) -> Result<f64> {
    world.fill(0, callers).await?;
    let update = move |world: Arc<World>, caller: usize, last: Option<Encoded>| async move {
        let last = match last {
            Some(last) => last,
            None => world.store.get(&widget(&world.kind, caller).key()?).await?,
        };
        let mut object = last.decode();
        let n = object.resource_version().map(|v| v.to_string());
        if is_status {
            object.set(
                "status",
                json!({"atProvider": {"seen": n}, "conditions": [
                {"type": "Ready", "status": "True", "reason": "Available"}]}),
            );
            return Ok(world.store.update_status(object, &by()).await?);
        }
        object.get_mut("spec")["forProvider"]["engine"] = json!(n);
        Ok(world.store.update(object, &by()).await?)
    };
    measure(world, callers, duration, update).await
}

/// Calls per second of `callers` that each make one call after the other.
async fn measure<F, R>(world: Arc<World>, callers: usize, duration: Duration, call: F) -> Result<f64>
where
    F: Fn(Arc<World>, usize, Option<Encoded>) -> R + Clone + Send + 'static,
    R: Future<Output = Result<Encoded>> + Send + 'static,
{
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..callers {
        let (world, call) = (world.clone(), call.clone());
        tasks.spawn(async move {
            let (mut done, mut last) = (0, None);
            while started.elapsed() < duration {
                last = Some(call(world.clone(), caller, last.take()).await?);
                done += 1;
            }
            Ok::<_, anyhow::Error>(done)
        });
    }
    let mut total = 0;
    while let Some(done) = tasks.join_next().await {
        total += done??;
    }
    Ok(total as f64 / started.elapsed().as_secs_f64())
}

/// Updates per second of 16 callers, each of a random one of `count` objects.
pub async fn random_updates(world: &World, count: usize, scale: Scale) -> Result<f64> {
    let duration = Duration::from_millis(scale.of(2_000) as u64);
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..16u64 {
        let (store, kind, chance) = (world.store.clone(), world.kind.clone(), Chance::seeded(caller));
        tasks.spawn(async move {
            let mut done = 0;
            while started.elapsed() < duration {
                // Each caller has objects of its own: no conflicts.
                let n = chance.below(count as u64 / 16) * 16 + caller;
                let key = widget(&kind, n as usize).key()?;
                let mut object = store.get(&key).await?.decode();
                object.get_mut("spec")["forProvider"]["engine"] = json!(chance.bits().to_string());
                store.update(object, &by()).await?;
                done += 1;
            }
            Ok::<_, anyhow::Error>(done)
        });
    }
    let mut total = 0;
    while let Some(done) = tasks.join_next().await {
        total += done??;
    }
    Ok(f64::from(total) / started.elapsed().as_secs_f64())
}
