//! What clients see over HTTPS: writes, how late a watch is, and what the servers need.

use anyhow::Result;
use concert_testbed::{Options, Postgres};

use crate::Scale;
use crate::report::{Report, percentile};
use crate::serve::server::{Memory, Server, family};
use crate::serve::{KEPT, SECONDS, check_wrk, create, fill, update_status, watchers};

const AREA: &str = "postgres: API";
/// Objects whose status is written in turn: enough that no two clients write the same.
const POOL: usize = 256;
/// Events that are waited for one by one.
const EVENTS: usize = 1000;

/// What was seen of one server.
struct Seen {
    creates: f64,
    updates: f64,
    /// Milliseconds from a create to its event; sorted.
    delays: Vec<f64>,
    /// With [`KEPT`] objects.
    memory: Memory,
}

/// Measures all three, one after the other.
pub fn run(server: &Postgres, scale: Scale, report: &mut Report) -> Result<()> {
    check_wrk()?;
    let embedded = alone(Server::concert()?, scale)?;
    let postgres = on_postgres(server, scale)?;
    let options = Options { is_synced: true, ..Options::default() };
    let kubernetes = alone(Server::kubernetes(&options)?, scale)?;
    tell(report, [&postgres, &embedded, &kubernetes]);
    Ok(())
}

/// One that has no replicas. It ends before the next one begins.
fn alone(server: Server, scale: Scale) -> Result<Seen> {
    measure(&server, &server, None, scale)
}

fn on_postgres(server: &Postgres, scale: Scale) -> Result<Seen> {
    let (folder, url) = (tempfile::tempdir()?, server.fresh_url());
    let first = Server::replica(&url, folder.path(), 0)?;
    let second = Server::replica(&url, folder.path(), 1)?;
    measure(&first, &second, Some(server), scale)
}

/// Writes to `server` and watches at `watched`. The processes of `database` are counted as well.
fn measure(server: &Server, watched: &Server, database: Option<&Postgres>, scale: Scale) -> Result<Seen> {
    eprintln!("  {}", server.name);
    server.define()?;
    watched.await_kind()?;
    fill(server, scale.of(KEPT))?;
    let more = database.map(|it| family(it.process()?)).transpose()?.unwrap_or_default();
    let memory = server.memory(&more)?;
    let delays = watchers::delays(server, watched, scale.of(EVENTS))?;
    let mut delays: Vec<f64> = delays.iter().map(|it| it.as_secs_f64() * 1e3).collect();
    delays.sort_by(f64::total_cmp);
    let seconds = scale.of(SECONDS).max(2);
    let creates = create(server, seconds, "measured", usize::MAX)?.per_second;
    let updates = update_status(server, seconds, POOL)?.per_second;
    Ok(Seen { creates, updates, delays, memory })
}

fn tell(report: &mut Report, seen: [&Seen; 3]) {
    let mut row = |what: &str, unit: &'static str, number: &dyn Fn(&Seen) -> f64| {
        let [postgres, embedded, kubernetes] = seen.map(number);
        let beside = |name: &str, other: f64| format!("{name} {other:.1}, ratio {:.2}", postgres / other);
        let (own, theirs) = (beside("embedded", embedded), beside("kube-apiserver with etcd", kubernetes));
        report.add_against(AREA, what, postgres, unit, format!("{own}; {theirs}"));
    };
    row("creates, 16 connections", "per s", &|it| it.creates);
    row("status updates, 16 connections", "per s", &|it| it.updates);
    row("from a create to its event, at another replica, p50", "ms", &|it| percentile(&it.delays, 0.5));
    row("from a create to its event, at another replica, p99", "ms", &|it| percentile(&it.delays, 0.99));
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    row("resident with 10,000 objects, the server's process", "MiB", &|it| mib(it.memory.alone));
    row("the same with its database, shared pages once", "MiB", &|it| mib(it.memory.whole));
}
