//! Watch fan-out: many watchers of one kind while it is written at full speed.

use std::time::{Duration, Instant};

use anyhow::Result;
use concert_store::{Query, Store};

use super::world::{World, by, widget};
use crate::Scale;
use crate::report::{Report, percentile};

const WATCHERS: usize = 100;
const CALLERS: usize = 16;

/// Time from the acknowledged write, and from the call that made it, to the event at each watcher.
pub async fn fan_out(scale: Scale, report: &mut Report) -> Result<()> {
    let world = World::open()?;
    let query = Query::all(world.kind.group_kind.clone());
    let duration = Duration::from_millis(scale.of(3_000) as u64);
    let started = Instant::now();
    let mut watchers = tokio::task::JoinSet::new();
    for _ in 0..WATCHERS {
        let mut events = world.store.watch(&query, None).await?;
        watchers.spawn(async move {
            let mut seen: Vec<(u64, f64)> = Vec::with_capacity(1 << 16);
            while let Some(event) = events.next().await {
                let event = event?;
                let Some(object) = event.object() else { continue };
                if &*object.key().name == "last" {
                    break;
                }
                seen.push((object.resource_version().0.parse()?, started.elapsed().as_secs_f64()));
            }
            Ok::<_, anyhow::Error>(seen)
        });
    }
    let mut writers = tokio::task::JoinSet::new();
    let begun = Instant::now();
    for caller in 0..CALLERS {
        let (store, kind) = (world.store.clone(), world.kind.clone());
        writers.spawn(async move {
            let mut written = Vec::new();
            for n in 0.. {
                if begun.elapsed() >= duration {
                    break;
                }
                let object = widget(&kind, caller + n * CALLERS);
                let called = started.elapsed().as_secs_f64();
                let stored = store.create(object, &by()).await?;
                let revision: u64 = stored.resource_version().0.parse()?;
                written.push((revision, called, started.elapsed().as_secs_f64()));
            }
            Ok::<_, anyhow::Error>(written)
        });
    }
    let mut written = std::collections::HashMap::new();
    while let Some(result) = writers.join_next().await {
        written.extend(result??.into_iter().map(|(revision, called, acked)| (revision, (called, acked))));
    }
    let rate = written.len() as f64 / begun.elapsed().as_secs_f64();
    world.store.create(last(&world), &by()).await?;
    let (mut from_call, mut from_ack) = (Vec::new(), Vec::new());
    while let Some(result) = watchers.join_next().await {
        let seen = result??;
        anyhow::ensure!(
            seen.len() == written.len(),
            "a watcher saw {} of {} events",
            seen.len(),
            written.len()
        );
        for (revision, at) in seen {
            let (called, acked) = written[&revision];
            from_call.push((at - called) * 1e3);
            from_ack.push((at - acked).max(0.0) * 1e3);
        }
    }
    from_call.sort_by(f64::total_cmp);
    from_ack.sort_by(f64::total_cmp);
    let area = "store: watch";
    let delivered = rate * WATCHERS as f64;
    let against = format!("{delivered:.0} events/s delivered");
    report.add_against(
        area,
        format!("writes into {WATCHERS} watchers, {CALLERS} callers"),
        rate,
        "per s",
        against,
    );
    report.add_against(
        area,
        "delivery after the acknowledgement, p99",
        percentile(&from_ack, 0.99),
        "ms",
        "limit 10",
    );
    report.add(area, "delivery after the call, p50", percentile(&from_call, 0.5), "ms");
    report.add(area, "delivery after the call, p99", percentile(&from_call, 0.99), "ms");
    Ok(())
}

fn last(world: &World) -> concert_model::Object {
    let mut object = widget(&world.kind, 0);
    object.set_metadata("name", "last".into());
    object
}
