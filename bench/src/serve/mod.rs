//! The API beside a real kube-apiserver with etcd, both over TLS with a token.

pub mod server;
pub mod watchers;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use concert_testbed::Options;
use serde_json::Value;

use crate::Scale;
use crate::report::Report;
use server::Server;

const WRITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/serve/write.lua");
pub const WIDGETS: &str = "/apis/test.concert.dev/v1/namespaces/default/widgets";
const CONNECTIONS: &str = "16";
pub const SECONDS: usize = 20;
/// How much is kept when memory is measured.
pub const KEPT: usize = 10_000;
const LISTS: usize = 5;
const WATCHERS: usize = 1000;
/// Events that each watcher is told.
const EVENTS: usize = 50;

/// What was seen of one server.
struct Seen {
    /// From the start of the process to the first answer.
    start: Duration,
    creates: Writes,
    /// With [`KEPT`] objects, just made.
    resident: u64,
    list: Duration,
    listed: usize,
    fan_out: Duration,
}

/// What became of writes that clients made side by side.
pub struct Writes {
    requests: usize,
    pub per_second: f64,
    p50: Duration,
    p99: Duration,
}

/// Runs all of it.
pub fn run(scale: Scale, report: &mut Report) -> Result<()> {
    check_wrk()?;
    let ours = measure(Server::concert()?, scale)?;
    let theirs = measure(Server::kubernetes(&Options::default())?, scale)?;
    let area = "serve";
    let mut row = |what: &str, unit: &'static str, ours: f64, theirs: f64| {
        let against = format!("kube-apiserver with etcd {theirs:.1}, ratio {:.2}", ours / theirs);
        report.add_against(area, what.to_owned(), ours, unit, against);
    };
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    row("creates, 16 connections", "per s", ours.creates.per_second, theirs.creates.per_second);
    row("create, median", "ms", millis(ours.creates.p50), millis(theirs.creates.p50));
    row("create, p99", "ms", millis(ours.creates.p99), millis(theirs.creates.p99));
    row("from start to first answer", "ms", millis(ours.start), millis(theirs.start));
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    row("resident with 10,000 objects, all processes", "MiB", mib(ours.resident), mib(theirs.resident));
    let each = |seen: &Seen| millis(seen.list) / seen.listed as f64 * 10_000.0;
    row("list, per 10,000 objects", "ms", each(&ours), each(&theirs));
    row("50 changes to 1,000 watchers", "ms", millis(ours.fan_out), millis(theirs.fan_out));
    Ok(())
}

/// Fails where the client is missing.
pub fn check_wrk() -> Result<()> {
    ensure!(Command::new("wrk").arg("-v").output().is_ok(), "wrk is not installed; try: apt-get install wrk");
    Ok(())
}

fn measure(server: Server, scale: Scale) -> Result<Seen> {
    eprintln!("  {}", server.name);
    server.define()?;
    fill(&server, scale.of(KEPT))?;
    let resident = server.resident()?;
    let (list, listed) = list(&server)?;
    let fan_out = watchers::run(&server, scale.of(WATCHERS), scale.of(EVENTS))?;
    let creates = create(&server, scale.of(SECONDS).max(2), "measured", usize::MAX)?;
    Ok(Seen { start: server.start, creates, resident, list, listed, fan_out })
}

/// Makes `count` objects. wrk goes by the clock, so it takes a few rounds.
pub fn fill(server: &Server, count: usize) -> Result<()> {
    let mut left = count;
    for round in 0.. {
        let seen = create(server, 2, &format!("kept-{round}"), left)?;
        left = left.saturating_sub(seen.requests);
        if left < 2 {
            break;
        }
    }
    Ok(())
}

/// How long a list of everything takes, the median of a few, and how much it is.
fn list(server: &Server) -> Result<(Duration, usize)> {
    let (mut times, mut listed) = (Vec::new(), 0);
    for _ in 0..LISTS {
        let started = Instant::now();
        let list = server.get(WIDGETS)?;
        times.push(started.elapsed());
        listed = list.matches("\"uid\":").count();
    }
    times.sort_unstable();
    Ok((times[LISTS / 2], listed))
}

/// Creates objects for so many seconds, or until there are `most`.
pub fn create(server: &Server, seconds: usize, label: &str, most: usize) -> Result<Writes> {
    write(server, seconds, &[label, &(most / 2).to_string()])
}

/// Writes the status of `pool` objects in turn, for so many seconds. They are made first.
pub fn update_status(server: &Server, seconds: usize, pool: usize) -> Result<Writes> {
    for number in 0..pool {
        server.request("POST", WIDGETS, &widget(&format!("status-{number}")))?;
    }
    write(server, seconds, &["status", &usize::MAX.to_string(), &pool.to_string()])
}

/// A small one of the kind that is measured with.
pub fn widget(name: &str) -> String {
    format!(
        "{{\"apiVersion\":\"test.concert.dev/v1\",\"kind\":\"Widget\",\"metadata\":{{\"name\":\"{name}\"}},\"spec\":{{\"size\":1}}}}"
    )
}

fn write(server: &Server, seconds: usize, more: &[&str]) -> Result<Writes> {
    let mut command = Command::new("wrk");
    command.args(["-t", "2", "-c", CONNECTIONS, "-d", &format!("{seconds}s"), "--latency", "-s", WRITE]);
    command.arg(format!("https://{}", server.address)).args(["--", WIDGETS, &server.token]).args(more);
    let output = command.output().context("cannot run wrk")?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find(|line| line.starts_with('{'));
    let seen: Value = serde_json::from_str(line.with_context(|| format!("wrk says:\n{text}"))?)?;
    let number = |field: &str| seen[field].as_f64().unwrap_or_default();
    ensure!(number("refused") == 0.0, "requests were refused: {seen}");
    if number("broken") > 0.0 {
        eprintln!("    {} connections broke", number("broken"));
    }
    let micros = |field: &str| Duration::from_micros(number(field) as u64);
    Ok(Writes {
        requests: number("requests") as usize,
        per_second: number("requests") / number("micros") * 1e6,
        p50: micros("p50"),
        p99: micros("p99"),
    })
}
