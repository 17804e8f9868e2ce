//! A fleet: from a section write to the start of whoever it wakes, what an idle fleet costs, and how many
//! runs a thousand writes at once become. Over HTTP, as reconcilers elsewhere see it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::Scale;
use crate::process::{Process, get, neighbour, request};
use crate::report::{Report, percentile};

/// Writes that are made one after the other, each on an entry of its own.
const ALONE: usize = 500;
/// Entries of the idle fleet, and who works on each.
const ENTRIES: usize = 10_000;
const COMPONENTS: usize = 5;
const RESYNC_SECONDS: u64 = 300;
/// How long the idle fleet is looked at.
const IDLE: Duration = Duration::from_secs(60);
/// Writes at once, and from how many connections.
const BURST: usize = 1_000;
const WRITERS: usize = 16;
/// Longest wait for anything.
const LIMIT: Duration = Duration::from_secs(900);
/// The older system's tickers, from the specification; not part of this run.
const OLDER: &str = "older system: about two minutes of tickers per step, not in this run";

/// Runs all of it.
pub fn run(scale: Scale, report: &mut Report) -> Result<()> {
    wakes(scale.of(ALONE), report)?;
    burst(scale.of(BURST), report)?;
    burst_of_entries(scale.of(BURST), report)?;
    idle(scale.of(ENTRIES), report)
}

fn wakes(count: usize, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(folder.path())?;
    server.entries(count)?;
    let hosts = Hosts::start(&server, "component", json!([{"section": "spec", "path": "/n"}]), 1)?;
    hosts.wait_for(count)?;
    let mut waits = Vec::with_capacity(count);
    for number in 0..count {
        let before = Instant::now();
        server.put(number, number)?;
        let started = hosts.next_run(&format!("rt-{number}/component"), before)?;
        waits.push(started.duration_since(before).as_secs_f64() * 1e3);
    }
    waits.sort_by(f64::total_cmp);
    let what = |part: &str| format!("from a section write to the start of who it wakes, {part}");
    report.add_against("fleet", what("median"), percentile(&waits, 0.5), "ms", OLDER);
    report.add("fleet", what("p99"), percentile(&waits, 0.99), "ms");
    Ok(())
}

fn burst(count: usize, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(folder.path())?;
    server.entries(1)?;
    let hosts = Hosts::start(&server, "component", json!([{"section": "spec"}]), 1)?;
    hosts.wait_for(1)?;
    let started = Instant::now();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let server = &server;
                scope.spawn(move || -> Result<()> {
                    for number in (writer..count).step_by(WRITERS) {
                        server.put(0, number + 1)?;
                    }
                    Ok(())
                })
            })
            .collect();
        writers.into_iter().try_for_each(|it| it.join().expect("no writer panics"))
    })?;
    let wrote = started.elapsed();
    // Longer than any run is held back.
    std::thread::sleep(Duration::from_secs(15));
    let runs = hosts.runs("rt-0/component") - 1;
    // One at once and one more for all that follow within a second; then one for each second of writing.
    let most = 2 + wrote.as_secs() as usize;
    ensure!((1..=most).contains(&runs), "{runs} runs for {count} writes in {wrote:?}, and {most} at most");
    let what = format!("runs for {count} writes of one section in {:.2} s", wrote.as_secs_f64());
    let bound =
        format!("{most}: one at once, one more for all that follow, one for each full second of writing");
    report.add_against("fleet", what, runs as f64, "", bound);
    Ok(())
}

/// As many entries, each written once, all at once.
fn burst_of_entries(count: usize, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(folder.path())?;
    server.entries(count)?;
    let hosts = Hosts::start(&server, "component", json!([{"section": "spec"}]), 500)?;
    hosts.wait_for(count)?;
    // What was ready is at rest.
    std::thread::sleep(Duration::from_secs(2));
    let before: Vec<usize> = (0..count).map(|it| hosts.runs(&format!("rt-{it}/component"))).collect();
    let started = Instant::now();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let server = &server;
                scope.spawn(move || (writer..count).step_by(WRITERS).try_for_each(|it| server.put(it, it)))
            })
            .collect();
        writers.into_iter().try_for_each(|it| it.join().expect("no writer panics"))
    })?;
    let wrote = started.elapsed();
    // Longer than any run is held back.
    std::thread::sleep(Duration::from_secs(15));
    let extra = |it: usize| hosts.runs(&format!("rt-{it}/component")) - before[it];
    let (least, most) = ((0..count).map(extra).min(), (0..count).map(extra).max());
    ensure!(least >= Some(1), "an entry was written and its reconciler did not run");
    ensure!(most <= Some(2), "an entry that was written once had {most:?} runs");
    let what = format!("most runs of one of {count} entries written at once in {:.2} s", wrote.as_secs_f64());
    report.add_against("fleet", what, most.unwrap_or_default() as f64, "", "one each, and at most one more");
    Ok(())
}

fn idle(entries: usize, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(folder.path())?;
    server.entries(entries)?;
    let mut hosts = Vec::new();
    let began = Instant::now();
    for number in 0..COMPONENTS {
        hosts.push(Hosts::start(&server, &format!("c{number}"), json!([{"section": "spec"}]), 500)?);
    }
    for each in &hosts {
        each.wait_for(entries)?;
    }
    let settled = began.elapsed();
    // The last of what was ready is told of its entry.
    std::thread::sleep(Duration::from_secs(10));
    let runs = |all: &[Hosts]| all.iter().map(Hosts::all_runs).sum::<usize>();
    let disk = server.process()?.written_bytes()?;
    let before = (server.revision()?, server.process()?.cpu()?, runs(&hosts));
    std::thread::sleep(IDLE);
    let after = (server.revision()?, server.process()?.cpu()?, runs(&hosts));
    let disk = server.process()?.written_bytes()? - disk;
    let minutes = IDLE.as_secs_f64() / 60.0;
    let items = entries * COMPONENTS;
    let area = "fleet";
    report.add(area, format!("{items} items until all were ready"), settled.as_secs_f64(), "s");
    let what = format!("idle, {entries} entries x {COMPONENTS}, looks every {RESYNC_SECONDS} s");
    let cores = (after.1 - before.1) / IDLE.as_secs_f64();
    report.add(area, format!("{what}: CPU"), cores * 100.0, "% of a core");
    let peak = server.process()?.peak_bytes()? as f64 / f64::from(1 << 20);
    report.add(area, format!("{what}: resident at its peak"), peak, "MiB");
    let writes = (after.0 - before.0) as f64 / minutes;
    report.add_against(area, format!("{what}: writes"), writes, "/min", "reach for none");
    let disk = disk as f64 / 1024.0 / minutes;
    report.add(area, format!("{what}: to the disk, logs included"), disk, "KiB/min");
    report.add(area, format!("{what}: looks"), (after.2 - before.2) as f64 / minutes, "/min");
    Ok(())
}

/// A control plane for development.
struct Server {
    process: Mutex<Process>,
    address: String,
}

impl Server {
    fn start(folder: &Path) -> Result<Self> {
        let mut command = Command::new(neighbour("concert")?);
        command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--admin-listen", "0"]);
        command.args(["--plugins", "off", "--log-format=json"]);
        command.arg("--data-dir").arg(folder.join("data"));
        let mut process = Process::start(folder, "concert", &mut command)?;
        let address = process.first(|line| {
            let is_it = line["message"] == "serving" && line["what"] == "api";
            line["address"].as_str().filter(|_| is_it).map(str::to_owned)
        })?;
        Ok(Self { process: Mutex::new(process), address })
    }

    fn process(&self) -> Result<std::sync::MutexGuard<'_, Process>> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.check_alive()?;
        Ok(process)
    }

    fn entries(&self, count: usize) -> Result<()> {
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..WRITERS)
                .map(|maker| {
                    scope.spawn(move || -> Result<()> {
                        for number in (maker..count).step_by(WRITERS) {
                            let body = json!({"id": format!("rt-{number}"), "kind": "runtime",
                                "tenant": format!("t{}", number % 50), "sections": {"spec": {"n": -1}}});
                            request(&self.address, "POST", "/inventory/v1/entries", &body.to_string())?;
                        }
                        Ok(())
                    })
                })
                .collect();
            makers.into_iter().try_for_each(|it| it.join().expect("nobody panics"))
        })
    }

    fn put(&self, entry: usize, value: usize) -> Result<()> {
        let path = format!("/inventory/v1/entries/rt-{entry}/sections/spec");
        request(&self.address, "PUT", &path, &json!({"data": {"n": value}}).to_string()).map(drop)
    }

    /// How much was ever written.
    fn revision(&self) -> Result<u64> {
        let path = "/apis/mothership.concert.dev/v1alpha1/items?limit=1";
        let page: Value = serde_json::from_str(&get(&self.address, path)?)?;
        page["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok()).context("a revision")
    }
}

/// The hosts of one reconciler: they say of everything that it is ready.
struct Hosts {
    seen: Arc<Mutex<BTreeMap<String, (usize, Instant)>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Hosts {
    fn start(server: &Server, name: &str, watches: Value, limit: usize) -> Result<Self> {
        let body = json!({"name": name, "handles": [{"kind": "runtime"}], "watches": watches,
            "resync_seconds": RESYNC_SECONDS, "concurrency": 2_000, "grants": {"read": ["spec"]}});
        request(&server.address, "POST", "/api/v1/workers", &body.to_string())?;
        let seen: Arc<Mutex<BTreeMap<String, (usize, Instant)>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let worker =
            (server.address.clone(), format!("/api/v1/workers/{name}"), seen.clone(), is_over.clone());
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let (address, path, seen, is_over) = worker;
            while !is_over.load(Ordering::Relaxed) {
                let ask = json!({"host_id": "h", "limit": limit, "wait_seconds": 1});
                let claimed = request(&address, "POST", &format!("{path}/claim"), &ask.to_string())?;
                let now = Instant::now();
                let claimed: Value = serde_json::from_str(&claimed)?;
                let items = claimed["items"].as_array().cloned().unwrap_or_default();
                if items.is_empty() {
                    continue;
                }
                let mut results = Vec::with_capacity(items.len());
                for item in &items {
                    let name = item["item"].as_str().unwrap_or_default().to_owned();
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    let runs = seen.get(&name).map_or(0, |it| it.0) + 1;
                    seen.insert(name, (runs, now));
                    results.push(json!({"item": item["item"], "fence": item["lease"]["fence"],
                        "outcome": "ready", "observed_revision": item["inventory"]["revision"]}));
                }
                let body = json!({"results": results}).to_string();
                request(&address, "POST", &format!("{path}/results"), &body)?;
            }
            Ok(())
        })?;
        Ok(Self { seen, is_over, thread: Some(thread) })
    }

    /// All of so many items have run.
    fn wait_for(&self, items: usize) -> Result<()> {
        let started = Instant::now();
        while self.lock().len() < items {
            ensure!(started.elapsed() < LIMIT, "only {} of {items} items have run", self.lock().len());
            ensure!(self.thread.as_ref().is_some_and(|it| !it.is_finished()), "the host has ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// When an item ran that was woken after `before`.
    fn next_run(&self, item: &str, before: Instant) -> Result<Instant> {
        loop {
            if let Some((_, at)) = self.lock().get(item).filter(|it| it.1 > before) {
                return Ok(*at);
            }
            ensure!(before.elapsed() < LIMIT, "{item} does not run");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn runs(&self, item: &str) -> usize {
        self.lock().get(item).map_or(0, |it| it.0)
    }

    fn all_runs(&self) -> usize {
        self.lock().values().map(|it| it.0).sum()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (usize, Instant)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its server may have ended first.
            thread.join().ok();
        }
    }
}
