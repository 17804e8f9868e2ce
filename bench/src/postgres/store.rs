//! The store alone, beside the embedded one: the same objects and the same calls, without HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use concert_store::backend::Postgres;
use concert_store::backend::postgres::{Address, Options};
use concert_store::seal::Keyring;
use concert_store::{Chance, Config, ItemKey, Local, Query, Store, SystemClock, Work};

use crate::Scale;
use crate::report::{Report, percentile};
use crate::store::by;
use crate::store::world::{World, widget};
use crate::store::writes::{creates_in, updates_in};

const CALLERS: [usize; 3] = [1, 16, 64];

/// A database, and the keys of its replicas.
struct Site {
    server: concert_testbed::Postgres,
    keyring: Keyring,
}

impl Site {
    /// One more replica on the database.
    fn replica(&self, url: &str) -> Result<Local> {
        let options = Options::new(Arc::new(SystemClock::new()), Chance::from_system());
        let backend = Postgres::open(&Address::parse(url)?, options)?;
        let config = Config::new(Arc::new(SystemClock::new()), Chance::from_system());
        Ok(Local::open(Arc::new(backend), config.sealed(self.keyring.clone()))?)
    }

    fn world(&self) -> Result<Arc<World>> {
        Ok(Arc::new(World::over(self.replica(&self.server.fresh_url())?, ())?))
    }
}

pub fn run(server: concert_testbed::Postgres, scale: Scale, report: &mut Report) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let site = Site { server, keyring: Keyring::in_memory(&Chance::from_system()) };
    runtime.block_on(async {
        writes(&site, scale, report).await?;
        claims(&site, scale, report).await?;
        across_replicas(&site, scale, report).await
    })
}

async fn writes(site: &Site, scale: Scale, report: &mut Report) -> Result<()> {
    let duration = Duration::from_millis(scale.of(3_000) as u64);
    for callers in CALLERS {
        let embedded = creates_in(Arc::new(World::open()?), callers, duration).await?;
        let rate = creates_in(site.world()?, callers, duration).await?;
        row(report, "postgres: writes", &format!("creates, {callers} callers"), rate, embedded, "");
        let embedded = updates_in(Arc::new(World::open()?), callers, duration, true).await?;
        let rate = updates_in(site.world()?, callers, duration, true).await?;
        row(report, "postgres: writes", &format!("status updates, {callers} callers"), rate, embedded, "");
    }
    Ok(())
}

fn row(report: &mut Report, area: &'static str, what: &str, rate: f64, embedded: f64, more: &str) {
    let against = format!("{:.2} of the embedded store ({embedded:.0}){more}", rate / embedded);
    report.add_against(area, what, rate, "per s", against);
}

/// Claims of items that nobody has, each answered before the next. There is no such call on Kubernetes.
async fn claims(site: &Site, scale: Scale, report: &mut Report) -> Result<()> {
    let duration = Duration::from_millis(scale.of(3_000) as u64);
    for callers in CALLERS {
        let embedded = claim_rate(&World::open()?.store, callers, duration).await?;
        let rate = claim_rate(&site.world()?.store, callers, duration).await?;
        row(
            report,
            "postgres: work",
            &format!("claims, {callers} callers"),
            rate,
            embedded,
            "; Kubernetes has none",
        );
    }
    Ok(())
}

async fn claim_rate(store: &Local, callers: usize, duration: Duration) -> Result<f64> {
    let (started, next) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..callers {
        let (store, next) = (store.clone(), next.clone());
        tasks.spawn(async move {
            while started.elapsed() < duration {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let item = ItemKey { controller: "bench".into(), item: format!("item-{number}").into() };
                store.claim(&item, 0, Bytes::from_static(&[7; 200])).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(result) = tasks.join_next().await {
        result??;
    }
    Ok(next.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}

/// Time from the answer that one replica gave to the event that another one tells.
async fn across_replicas(site: &Site, scale: Scale, report: &mut Report) -> Result<()> {
    let url = site.server.fresh_url();
    let world = World::over(site.replica(&url)?, ())?;
    let other = site.replica(&url)?;
    let mut events = other.watch(&Query::all(world.kind.group_kind.clone()), None).await?;
    // The end of what was there before.
    events.next().await.context("a watch begins")??;
    let mut times = Vec::new();
    for n in 0..scale.of(2_000) {
        let called = Instant::now();
        world.store.create(widget(&world.kind, n), &by()).await?;
        let answered = called.elapsed();
        events.next().await.context("a watch goes on")??;
        times.push(called.elapsed().saturating_sub(answered).as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    for (name, fraction) in [("p50", 0.5), ("p99", 0.99)] {
        let what = format!("from the answer of one replica to the event of another, {name}");
        report.add("postgres: watch", what, percentile(&times, fraction), "ms");
    }
    Ok(())
}
