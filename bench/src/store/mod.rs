//! The embedded store, with everything on: schema, encryption, full sync, watch.

mod plain;
mod watch;
pub mod world;
pub mod writes;

use std::time::Instant;

use anyhow::Result;
use concert_store::{PageRequest, Query, Store};

use crate::report::Report;
use crate::{Scale, machine};
use world::World;
pub use world::by;

/// Runs one part of the store benchmarks.
pub fn run(part: &str, scale: Scale, report: &mut Report) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match part {
            "writes" => writes::rates(scale, report).await,
            "list" => list(scale, report).await,
            "watch" => watch::fan_out(scale, report).await,
            _ => memory_and_growth(scale, report).await,
        }
    })
}

async fn list(scale: Scale, report: &mut Report) -> Result<()> {
    let world = World::open()?;
    let count = scale.of(10_000);
    world.fill(0, count).await?;
    let query = Query::all(world.kind.group_kind.clone());
    let mut best = f64::MAX;
    let mut bytes = 0;
    for _ in 0..5 {
        let started = Instant::now();
        let page = world.store.list(&query, &PageRequest::whole()).await?;
        bytes = page.items.iter().map(|o| o.to_json().len()).sum();
        best = best.min(started.elapsed().as_secs_f64());
        anyhow::ensure!(page.items.len() == count);
    }
    let against = format!("{:.0} objects/s, {:.1} MB of JSON", count as f64 / best, bytes as f64 / 1e6);
    report.add_against("store: list", format!("list of {count}, to JSON"), best * 1e3, "ms", against);
    Ok(())
}

/// Resident memory with many idle objects, and whether a write costs the same among few and many.
async fn memory_and_growth(scale: Scale, report: &mut Report) -> Result<()> {
    let before = machine::resident_bytes();
    let world = World::open()?;
    let steps = [scale.of(1_000), scale.of(10_000), scale.of(100_000)];
    let mut filled = 0;
    let mut rates = Vec::new();
    for count in steps {
        world.fill(filled, count).await?;
        filled = count;
        rates.push((count, writes::random_updates(&world, count, scale).await?));
    }
    let first = rates[0].1;
    for (count, rate) in &rates {
        let against = format!("{:.2} of the rate at {}", rate / first, rates[0].0);
        report.add_against(
            "store: growth",
            format!("updates among {count}, 16 callers"),
            *rate,
            "per s",
            against,
        );
    }
    let used = machine::resident_bytes().saturating_sub(before);
    let per_object = used as f64 / filled as f64;
    let against = format!("limit 1536; {:.0} MB in all", used as f64 / 1e6);
    report.add_against(
        "store: memory",
        format!("resident per 1 KB object at {filled}"),
        per_object,
        "bytes",
        against,
    );
    Ok(())
}
