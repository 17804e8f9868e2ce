//! Replicas that share the work: managed resources until all are ready, with one, two and three of them on
//! one PostgreSQL database; then with three of them of which one is killed in the middle of the work, and one
//! stands still for a minute.
//!
//! The cloud takes its time for every call, as clouds do, so what one replica can do is bounded by how many
//! reconciles it may run at a time. Resources are there before their provider is: what is measured is the
//! work, and not whoever declares it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::Scale;
use crate::process::{Process, get, neighbour, request};
use crate::report::Report;

const RESOURCES: usize = 10_000;
const BUCKETS: &str = "/apis/cloud.concert.dev/v1alpha1/namespaces/default/buckets";
/// What a call of the cloud takes.
const LATENCY: &str = "200ms";
/// Reconciles at a time in each replica.
const CONCURRENCY: &str = "50";
/// What others wait before they take the work of one that is gone: the default.
const LEASE: Duration = Duration::from_secs(15);
/// What a takeover may take beside the lease, until those who are left say so: they look twice a second.
const TAKEOVER: Duration = Duration::from_secs(1);
/// Between looks of ours.
const LOOK: Duration = Duration::from_millis(5);
/// How long one stands still.
const STANDSTILL: Duration = Duration::from_secs(60);
/// Longest wait for anything.
const LIMIT: Duration = Duration::from_secs(900);
/// Who declare resources at the same time.
const HANDS: usize = 8;

/// Runs all of it.
pub fn run(scale: Scale, report: &mut Report) -> Result<()> {
    let server = concert_testbed::Postgres::start(&["fsync=on", "shared_buffers=256MB"])?;
    let server = server.context("PostgreSQL is not installed: run scripts/services")?;
    let count = scale.of(RESOURCES);
    let mut alone = None;
    for replicas in 1..=3 {
        eprintln!("  {replicas} of them");
        let mut site = Site::open(&server.fresh_url(), replicas)?;
        site.declare(0..count)?;
        let took = site.work_off(count)?.as_secs_f64();
        let first = *alone.get_or_insert(took);
        let what = format!("to all of {count} ready, {replicas} replicas");
        report.add_against("replicas", what, took, "s", format!("{:.2} times as fast as one", first / took));
        let peak = site.replicas.iter().map(|it| it.0.peak_bytes()).collect::<Result<Vec<_>>>()?;
        let largest = peak.into_iter().max().unwrap_or_default() as f64 / f64::from(1 << 20);
        report.add("replicas", format!("peak memory of one, {replicas} replicas"), largest, "MiB");
        site.check_truth(&format!("{replicas} replicas"), report)?;
    }
    eprintln!("  three of them, and one is lost");
    let mut site = Site::open(&server.fresh_url(), 3)?;
    site.declare(0..count)?;
    site.lose_one(count, report)?;
    site.stand_still(count, scale.of(1_000), report)?;
    site.check_truth("one killed and one standing still", report)
}

/// Replicas on one database, and their cloud.
struct Site {
    replicas: Vec<(Process, String)>,
    url: String,
    cloud: Process,
    endpoint: String,
    control: String,
    folder: tempfile::TempDir,
}

impl Site {
    fn open(url: &str, count: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(neighbour("concert-provider-example")?);
        command.args(["--address", "127.0.0.1:0", "--control", "127.0.0.1:0", "--latency", LATENCY]);
        let mut cloud = Process::start(folder.path(), "cloud", &mut command)?;
        let said = cloud.first(|line| line["address"].is_string().then(|| line.clone()))?;
        let address = |field: &str| said[field].as_str().unwrap_or_default().to_owned();
        let (endpoint, control) = (address("address"), address("control"));
        let mut site = Self { replicas: Vec::new(), url: url.to_owned(), cloud, endpoint, control, folder };
        for _ in 0..count {
            site.join()?;
        }
        site.settle(count)?;
        site.prepare()?;
        Ok(site)
    }

    fn join(&mut self) -> Result<()> {
        let (folder, number) = (self.folder.path(), self.replicas.len());
        let mut command = Command::new(neighbour("concert")?);
        command.args([
            "serve",
            "--dev",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "0",
            "--plugins",
            "off",
        ]);
        command.args(["--log-format=json", "--max-reconcile-rate", CONCURRENCY, "--poll-interval", "1h"]);
        command.args(["--store", &self.url, "--client-rate", "0"]);
        command.arg("--key-file").arg(folder.join("keys"));
        command.arg("--data-dir").arg(folder.join(format!("data-{number}")));
        let mut process = Process::start(folder, &format!("replica-{number}"), &mut command)?;
        let is_api = |line: &Value| line["message"] == "serving" && line["what"] == "api";
        let address = process.first(|line| {
            let address = line["address"].as_str()?;
            is_api(line).then(|| address.trim_start_matches("http://").to_owned())
        })?;
        self.replicas.push((process, address));
        Ok(())
    }

    fn first(&self) -> &str {
        &self.replicas[0].1
    }

    /// Kinds and an account, and no provider yet.
    fn prepare(&self) -> Result<()> {
        let kubectl = concert_testbed::kubectl()?.context("there is no kubectl")?;
        let kubeconfig = self.folder.path().join("data-0/kubeconfig");
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../providers/example/crds");
        for words in [
            vec!["apply".into(), "-f".into(), crds.to_string_lossy().into_owned()],
            ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"].map(String::from).into(),
        ] {
            let mut command = Command::new(&kubectl);
            let output = command.arg("--kubeconfig").arg(&kubeconfig).args(&words).output()?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let account = json!({"apiVersion": "cloud.concert.dev/v1alpha1", "kind": "ClusterProviderConfig",
            "metadata": {"name": "default"}, "spec": {"credentials": {"source": "None"}}});
        let path = "/apis/cloud.concert.dev/v1alpha1/clusterproviderconfigs";
        request(self.first(), "POST", path, &account.to_string()).map(drop)
    }

    fn declare(&self, numbers: std::ops::Range<usize>) -> Result<()> {
        std::thread::scope(|scope| {
            let hand = |hand: usize| {
                let numbers = numbers.clone().filter(move |it| it % HANDS == hand);
                scope.spawn(move || {
                    numbers.into_iter().try_for_each(|number| {
                        let bucket = json!({"apiVersion": "cloud.concert.dev/v1alpha1", "kind": "Bucket",
                            "metadata": {"name": format!("b{number}"), "namespace": "default"},
                            "spec": {"forProvider": {"region": "eu", "size": 1}}});
                        request(self.first(), "POST", BUCKETS, &bucket.to_string()).map(drop)
                    })
                })
            };
            let hands: Vec<_> = (0..HANDS).map(hand).collect();
            hands.into_iter().try_for_each(|it| it.join().expect("no hand panics"))
        })
    }

    /// Lets the provider in. Returns the time until all are ready.
    fn work_off(&mut self, count: usize) -> Result<Duration> {
        let started = Instant::now();
        self.let_in()?;
        self.await_ready(count)?;
        Ok(started.elapsed())
    }

    fn let_in(&self) -> Result<()> {
        let provider = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider",
            "metadata": {"name": "cloud"}, "spec": {"endpoint": self.endpoint}});
        request(self.first(), "POST", "/apis/concert.dev/v1alpha1/providers", &provider.to_string()).map(drop)
    }

    fn await_ready(&mut self, count: usize) -> Result<()> {
        let started = Instant::now();
        loop {
            // The cloud is asked first: a list of all would take a replica's time from the work.
            let live = self.summary("live")?;
            let ready = if live < count { live } else { self.ready()? };
            if ready >= count {
                return Ok(());
            }
            self.cloud.check_alive()?;
            ensure!(started.elapsed() < LIMIT, "only {ready} of {count} are ready after {LIMIT:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn ready(&self) -> Result<usize> {
        let list: Value = serde_json::from_str(&get(self.first(), BUCKETS)?)?;
        let is_ready = |it: &&Value| {
            let conditions = it["status"]["conditions"].as_array().into_iter().flatten();
            conditions.filter(|it| it["type"] == "Ready").any(|it| it["status"] == "True")
        };
        Ok(list["items"].as_array().into_iter().flatten().filter(is_ready).count())
    }

    /// What the cloud has counted.
    fn summary(&self, what: &str) -> Result<usize> {
        let summary: Value = serde_json::from_str(&get(&self.control, "/summary")?)?;
        Ok(summary[what].as_u64().context("the cloud counts")? as usize)
    }

    /// Waits until so many have everything between them.
    fn settle(&self, count: usize) -> Result<()> {
        let started = Instant::now();
        loop {
            let answer: Value = serde_json::from_str(&get(self.first(), "/api/v1/cluster/nodes")?)?;
            let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
            let live = nodes.iter().filter(|it| it["status"] == "Ready" && it["is_leaving"] == false);
            let shares: Vec<u64> = live.filter_map(|it| it["shares"].as_u64()).collect();
            let all = nodes.first().and_then(|it| it["shares_max"].as_u64()).unwrap_or_default();
            if shares.len() == count && all > 0 && shares.iter().sum::<u64>() == all && !shares.contains(&0) {
                return Ok(());
            }
            ensure!(started.elapsed() < LIMIT, "the work is not shared: {nodes:?}");
            std::thread::sleep(LOOK);
        }
    }

    /// Lets the provider in, kills one when half is made, and starts another in its place when all is.
    fn lose_one(&mut self, count: usize, report: &mut Report) -> Result<()> {
        let replicas = self.replicas.len();
        self.let_in()?;
        let started = Instant::now();
        while self.summary("live")? < count / 2 {
            ensure!(started.elapsed() < LIMIT, "half is not made after {LIMIT:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let killed = Instant::now();
        self.replicas.pop();
        let made = self.summary("live")?;
        ensure!(made < count, "all {count} are made: nothing was lost in the middle of anything");
        self.settle(replicas - 1)?;
        let took = killed.elapsed();
        let against = format!("the lease is {} s; {made} of {count} were made", LEASE.as_secs());
        let what = "kill -9 of one of three until others have its share";
        report.add_against("replicas", what, took.as_secs_f64(), "s", against);
        ensure!(took <= LEASE + TAKEOVER, "others had its share only after {took:?}");
        self.await_ready(count)?;
        self.join()?;
        self.settle(replicas)
    }

    /// Fails if the cloud has anything twice, or was told anything by one who had been replaced.
    fn check_truth(&self, when: &str, report: &mut Report) -> Result<()> {
        let (doubles, late) = (self.summary("doubles")?, self.summary("late")?);
        report.add("replicas", format!("made twice, {when}"), doubles as f64, "");
        report.add("replicas", format!("changed by one who was replaced, {when}"), late as f64, "");
        ensure!(doubles == 0, "{doubles} were made twice");
        ensure!(late == 0, "{late} changes came from one who had been replaced");
        Ok(())
    }

    /// Stops one in the middle of its work for a minute, and has it go on.
    fn stand_still(&mut self, made: usize, more: usize, report: &mut Report) -> Result<()> {
        let frozen = self.replicas[1].0.id().to_string();
        let signal = |name: &str| -> Result<()> {
            let sent = Command::new("kill").args(["-s", name, &frozen]).status()?;
            ensure!(sent.success(), "kill: {sent}");
            Ok(())
        };
        self.declare(made..made + more)?;
        let started = Instant::now();
        signal("STOP")?;
        self.await_ready(made + more)?;
        let took = started.elapsed();
        std::thread::sleep(STANDSTILL.saturating_sub(took));
        signal("CONT")?;
        self.settle(3)?;
        let what = format!("one stands still for {} s, {more} more ready after", STANDSTILL.as_secs());
        report.add("replicas", what, took.as_secs_f64(), "s");
        let live = self.summary("live")?;
        ensure!(live == made + more, "{live} things for {} resources", made + more);
        Ok(())
    }
}
