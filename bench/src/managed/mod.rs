//! The managed reconciler beside one on the published crossplane-runtime, on a real kube-apiserver and
//! with the same cloud.
//!
//! Objects are made before a contender starts, so that the time to all ready is its own and not that
//! of whoever makes them.
//!
//! Both have the same second process: ours asks it as a provider over gRPC, and the cloud is inside of it; the
//! contender is reconciler and provider in one, as those on crossplane-runtime are, and asks it as a cloud over
//! HTTP. So a provider's work counts in ours only where that process does, and CPU and memory are told both
//! ways: of both processes together, which is what a machine has to bear, and of the reconciler alone.

mod edits;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use concert_testbed::{Cluster, Options};
use serde_json::{Value, json};

use crate::Scale;
use crate::process::{Process, get, neighbour};
use crate::report::{Report, percentile};

/// Reconciles at a time, for both. Providers start with 10; a hundred is what people set who wait.
const CONCURRENCY: &str = "100";
/// How long nothing happens, in a whole run.
const STEADY: Duration = Duration::from_secs(300);
/// Longest wait for all to be ready.
const LIMIT: Duration = Duration::from_secs(1800);
/// Made with one call of kubectl.
const BATCH: usize = 1000;

/// Who is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contender {
    Concert,
    CrossplaneRuntime,
}

impl Contender {
    fn name(self) -> &'static str {
        match self {
            Contender::Concert => "concert",
            Contender::CrossplaneRuntime => "crossplane-runtime",
        }
    }
}

/// What was seen of one contender with so many objects.
struct Seen {
    ready: Duration,
    cpu: Spent,
    peak: Spent,
    writes: Vec<(String, u64)>,
    steady_writes: u64,
    steady_cpu: Spent,
    /// Milliseconds from sending an edit to the cloud having the change, sorted.
    served: Vec<f64>,
}

/// What two processes have used: CPU seconds, or bytes.
#[derive(Clone, Copy)]
struct Spent {
    reconciler: f64,
    /// The process that has the cloud, and for ours the provider.
    other: f64,
}

impl Spent {
    fn of(reconciler: &Process, other: &Process, read: impl Fn(&Process) -> Result<f64>) -> Result<Self> {
        Ok(Self { reconciler: read(reconciler)?, other: read(other)? })
    }

    fn since(self, before: Self) -> Self {
        Self { reconciler: self.reconciler - before.reconciler, other: self.other - before.other }
    }

    fn sum(self) -> f64 {
        self.reconciler + self.other
    }
}

/// Runs all of it.
pub fn run(scale: Scale, report: &mut Report) -> Result<()> {
    let programs = Programs::build()?;
    for count in [scale.of(1_000), scale.of(10_000)] {
        let ours = measure(&programs, Contender::Concert, count, scale)?;
        let theirs = measure(&programs, Contender::CrossplaneRuntime, count, scale)?;
        tell(report, count, &ours, &theirs, scale);
    }
    Ok(())
}

fn tell(report: &mut Report, count: usize, ours: &Seen, theirs: &Seen, scale: Scale) {
    let area = "managed";
    let mut row = |what: &str, unit, ours: f64, theirs: f64| {
        let ratio = if theirs > 0.0 { format!(", ratio {:.2}", ours / theirs) } else { String::new() };
        let against = format!("crossplane-runtime {theirs:.2}{ratio}");
        report.add_against(area, format!("{what}, {count} objects"), ours, unit, against);
    };
    row("to all ready", "s", ours.ready.as_secs_f64(), theirs.ready.as_secs_f64());
    row("CPU until then, with provider and cloud", "s", ours.cpu.sum(), theirs.cpu.sum());
    row("CPU until then, reconciler alone", "s", ours.cpu.reconciler, theirs.cpu.reconciler);
    let (all, alone) = ("with provider and cloud", "reconciler alone");
    row(&format!("peak resident memory, {all}"), "MiB", mib(ours.peak.sum()), mib(theirs.peak.sum()));
    row(
        &format!("peak resident memory, {alone}"),
        "MiB",
        mib(ours.peak.reconciler),
        mib(theirs.peak.reconciler),
    );
    let per_object = |seen: &Seen| seen.writes.iter().map(|(_, n)| n).sum::<u64>() as f64 / count as f64;
    row("API writes per object, all kinds", "", per_object(ours), per_object(theirs));
    let minutes = steady(scale).as_secs_f64() / 60.0;
    let rate = |seen: &Seen| seen.steady_writes as f64 / minutes;
    row("API writes in steady state", "per min", rate(ours), rate(theirs));
    let polls = count as f64 * minutes / 1000.0;
    let (mine, other) = (ours.steady_cpu, theirs.steady_cpu);
    row(&format!("CPU per 1,000 polls, {all}"), "s", mine.sum() / polls, other.sum() / polls);
    row(&format!("CPU per 1,000 polls, {alone}"), "s", mine.reconciler / polls, other.reconciler / polls);
    for (name, share) in [("median", 0.5), ("p99", 0.99)] {
        let (ours, theirs) = (percentile(&ours.served, share), percentile(&theirs.served, share));
        row(&format!("edit served while all poll, {name}"), "ms", ours, theirs);
    }
    for (name, seen) in [("concert", ours), ("crossplane-runtime", theirs)] {
        for (what, writes) in &seen.writes {
            report.add(area, format!("{name}: {what}, {count} objects"), *writes as f64, "writes");
        }
    }
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

fn steady(scale: Scale) -> Duration {
    Duration::from_secs(scale.of(STEADY.as_secs() as usize) as u64)
}

fn measure(programs: &Programs, contender: Contender, count: usize, scale: Scale) -> Result<Seen> {
    eprintln!("  {} with {count} objects", contender.name());
    let options = Options { with_controllers: true, ..Options::default() };
    let cluster = Cluster::start_with(&options)?.context("there is no cluster to measure on")?;
    let folder = tempfile::tempdir()?;
    let mut provider = Process::start(
        folder.path(),
        "provider",
        Command::new(&programs.provider).args(["--address", "127.0.0.1:0", "--control", "127.0.0.1:0"]),
    )?;
    let line = provider.first(|line| line.get("control").is_some().then(|| line.clone()))?;
    let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
    declare(&cluster, count)?;
    let (mut process, metrics) =
        start(programs, contender, folder.path(), &cluster, &text("address"), &text("control"))?;
    let started = Instant::now();
    wait_ready(&cluster, &text("control"), &mut process, count)?;
    let ready = started.elapsed();
    let cpu = Spent::of(&process, &provider, Process::cpu)?;
    let writes = writes(contender, &metrics)?;
    eprintln!(
        "    all are ready after {:.1} s; now {:?} of nothing but polls",
        ready.as_secs_f64(),
        steady(scale)
    );
    // What the last passes still have to say is not part of the steady state.
    std::thread::sleep(Duration::from_secs(10));
    let sum = |writes: &[(String, u64)]| writes.iter().map(|(_, n)| n).sum::<u64>();
    let spent = || Spent::of(&process, &provider, Process::cpu);
    let before = (spent()?, sum(&self::writes(contender, &metrics)?));
    std::thread::sleep(steady(scale));
    let after = (spent()?, sum(&self::writes(contender, &metrics)?));
    eprintln!("    now edits");
    let served = edits::run(&cluster, &text("control"), count, scale)?;
    let peak = Spent::of(&process, &provider, |it| Ok(it.peak_bytes()? as f64))?;
    let (steady_writes, steady_cpu) = (after.1 - before.1, after.0.since(before.0));
    Ok(Seen { ready, cpu, peak, writes, steady_writes, steady_cpu, served })
}

/// Makes definitions and objects.
fn declare(cluster: &Cluster, count: usize) -> Result<()> {
    let crds = workspace().join("providers/example/crds");
    cluster.kubectl(&["apply", "-f", &crds.to_string_lossy()])?;
    cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])?;
    let account = json!({"apiVersion": "example.crossplane.io/v1alpha1", "kind": "ProviderConfig",
        "metadata": {"name": "default"}, "spec": {"credentials": {"source": "None"}}});
    cluster.kubectl_with(&["apply", "-f", "-"], &account.to_string())?;
    let numbers: Vec<usize> = (0..count).collect();
    for batch in numbers.chunks(BATCH) {
        let items: Vec<Value> = batch.iter().map(|n| object(*n)).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        cluster.kubectl_with(&["create", "-f", "-"], &list.to_string())?;
        eprintln!("    {} objects are declared", batch.last().map_or(0, |n| n + 1));
    }
    Ok(())
}

fn object(number: usize) -> Value {
    json!({"apiVersion": "example.crossplane.io/v1alpha1", "kind": "ExampleResource",
        "metadata": {"name": format!("r{number}")},
        "spec": {"forProvider": {"region": "here", "size": number, "tier": "standard"}}})
}

fn start(
    programs: &Programs,
    contender: Contender,
    folder: &Path,
    cluster: &Cluster,
    address: &str,
    control: &str,
) -> Result<(Process, String)> {
    let kubeconfig = cluster.kubeconfig();
    match contender {
        Contender::Concert => {
            let config = json!({"providers": [{"name": "example", "endpoint": address, "resourceTypes": [
                {"apiVersion": "example.crossplane.io/v1alpha1", "kind": "ExampleResource"}]}]});
            let path = folder.join("config.json");
            std::fs::write(&path, config.to_string())?;
            let mut command = Command::new(&programs.reconciler);
            command.arg("--config").arg(path).arg("--kubeconfig").arg(kubeconfig);
            command.args([
                "--leader-election=false",
                "--log-format=json",
                "--max-reconcile-rate",
                CONCURRENCY,
            ]);
            command.args([
                "--metrics-bind-address",
                "127.0.0.1:0",
                "--health-probe-bind-address",
                "127.0.0.1:0",
            ]);
            let mut process = Process::start(folder, "concert", &mut command)?;
            let metrics = process.first(|line| {
                let is_it = line["message"] == "serving" && line["what"] == "metrics";
                line["address"].as_str().filter(|_| is_it).map(str::to_owned)
            })?;
            Ok((process, metrics))
        }
        Contender::CrossplaneRuntime => {
            let metrics = free_address()?;
            let mut command = Command::new(&programs.contender);
            command.arg("--kubeconfig").arg(kubeconfig).args(["--cloud", &format!("http://{control}")]);
            command.args(["--max-reconcile-rate", CONCURRENCY, "--metrics-bind-address", &metrics]);
            // Without its limits on requests per second: what is measured is the machine, not a setting.
            command.args(["--kind", "ExampleResource", "--limit=false"]);
            Ok((Process::start(folder, "contender", &mut command)?, metrics))
        }
    }
}

/// Waits until every object is ready. The cloud is asked first: a list of ten thousand objects costs the
/// API server seconds that the contender then lacks.
fn wait_ready(cluster: &Cluster, cloud: &str, process: &mut Process, count: usize) -> Result<()> {
    let path = "jsonpath={range .items[*]}{.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}{end}";
    let started = Instant::now();
    loop {
        let summary: Value = serde_json::from_str(&get(cloud, "/summary")?)?;
        let mut ready = 0;
        if summary["live"].as_u64() == Some(count as u64) {
            let listed = cluster.kubectl(&["get", "exampleresources", "-o", path])?;
            ready = listed.lines().filter(|it| *it == "True").count();
        }
        if ready == count {
            return Ok(());
        }
        process.check_alive()?;
        ensure!(started.elapsed() < LIMIT, "only {ready} of {count} are ready after {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Writes so far, by verb and resource.
fn writes(contender: Contender, metrics: &str) -> Result<Vec<(String, u64)>> {
    const VERBS: [&str; 4] = ["create", "update", "patch", "delete"];
    let mut found = Vec::new();
    match contender {
        Contender::Concert => {
            for line in
                get(metrics, "/metrics")?.lines().filter(|it| it.starts_with("concert_store_requests_total{"))
            {
                let label = |name: &str| Some(line.split_once(&format!("{name}=\""))?.1.split_once('"')?.0);
                let (Some(verb), Some(resource)) = (label("verb"), label("resource")) else { continue };
                let number = line.rsplit(' ').next().and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
                if VERBS.contains(&verb) {
                    found.push((format!("{verb} {resource}"), number as u64));
                }
            }
        }
        Contender::CrossplaneRuntime => {
            let all: Value = serde_json::from_str(&get(metrics, "/requests")?)?;
            for (resource, verbs) in all.as_object().into_iter().flatten() {
                for (verb, number) in verbs.as_object().into_iter().flatten() {
                    let verb = verb.to_lowercase();
                    let verb = match verb.as_str() {
                        "post" => "create",
                        "put" => "update",
                        other => other,
                    };
                    if VERBS.contains(&verb) {
                        found.push((format!("{verb} {resource}"), number.as_u64().unwrap_or(0)));
                    }
                }
            }
        }
    }
    Ok(found)
}

fn free_address() -> Result<String> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What is run, built as it is shipped.
struct Programs {
    reconciler: PathBuf,
    provider: PathBuf,
    contender: PathBuf,
}

impl Programs {
    fn build() -> Result<Self> {
        eprintln!("  building the contender");
        let reconciler = neighbour("managed-reconciler")?;
        let contender = reconciler.with_file_name("contender");
        let status = Command::new("go")
            .args(["build", "-trimpath", "-o"])
            .arg(&contender)
            .arg(".")
            .current_dir(workspace().join("bench/contender"))
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => bail!("go cannot build the contender: {status}"),
            Err(error) => bail!("there is no Go to build the contender with: {error}"),
        }
        Ok(Self { reconciler, provider: neighbour("concert-provider-example")?, contender })
    }
}
