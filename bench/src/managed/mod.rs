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
//!
//! For each object both do what providers do when they connect: they note the usage of a ProviderConfig, read
//! that, and take the credentials it names; and both count the usages of an account, to protect it.
//!
//! Five minutes of steady state and the edits come with most objects only: they are about what is there, and
//! with fewer there is less of it.

mod edits;
mod writes;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use concert_testbed::{Cluster, Options};
use serde_json::{Value, json};

use crate::Scale;
use crate::process::{Process, get, neighbour};
use crate::report::{Report, percentile};
use writes::Writes;

/// Reconciles at a time, for both. Providers start with 10; a hundred is what people set who wait.
const CONCURRENCY: &str = "100";
/// How long nothing happens, in a whole run.
const STEADY: Duration = Duration::from_secs(300);
/// How long the last passes have to say what they still have to say: events are written beside them, the users of
/// an account are counted up to half a minute later, and both belong to the making of objects and not to the
/// steady state.
const SETTLING: Duration = Duration::from_secs(45);
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
    writes: Vec<Writes>,
    /// What came after, where it was waited for.
    after: Option<After>,
}

/// What was seen while nothing but polls and edits happened.
struct After {
    writes: u64,
    cpu: Spent,
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
    for (count, is_largest) in [(scale.of(1_000), false), (scale.of(10_000), true)] {
        let then = is_largest.then_some(scale);
        let ours = measure(&programs, Contender::Concert, count, then)?;
        let theirs = measure(&programs, Contender::CrossplaneRuntime, count, then)?;
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
    let (all, alone) = ("with provider and cloud", "reconciler alone");
    row(&format!("CPU until then, {all}"), "s", ours.cpu.sum(), theirs.cpu.sum());
    row(&format!("CPU until then, {alone}"), "s", ours.cpu.reconciler, theirs.cpu.reconciler);
    let (mine, other) = (ours.peak, theirs.peak);
    row(&format!("peak resident memory, {all}"), "MiB", mib(mine.sum()), mib(other.sum()));
    row(&format!("peak resident memory, {alone}"), "MiB", mib(mine.reconciler), mib(other.reconciler));
    let each = |writes: u64| writes as f64 / count as f64;
    let total = |seen: &Seen| each(writes::total(&seen.writes));
    row("API writes per object, all verbs", "", total(ours), total(theirs));
    for verb in writes::VERBS {
        let of_verb = |seen: &Seen| each(writes::of_verb(&seen.writes, verb));
        row(&format!("API writes per object, {verb}"), "", of_verb(ours), of_verb(theirs));
    }
    if let (Some(ours), Some(theirs)) = (&ours.after, &theirs.after) {
        let minutes = steady(scale).as_secs_f64() / 60.0;
        let rate = |seen: &After| seen.writes as f64 / minutes;
        row("API writes in steady state", "per min", rate(ours), rate(theirs));
        let polls = count as f64 * minutes / 1000.0;
        let (mine, other) = (ours.cpu, theirs.cpu);
        row(&format!("CPU per 1,000 polls, {all}"), "s", mine.sum() / polls, other.sum() / polls);
        row(&format!("CPU per 1,000 polls, {alone}"), "s", mine.reconciler / polls, other.reconciler / polls);
        for (name, share) in [("median", 0.5), ("p99", 0.99)] {
            let (ours, theirs) = (percentile(&ours.served, share), percentile(&theirs.served, share));
            row(&format!("edit served while all poll, {name}"), "ms", ours, theirs);
        }
    }
    for (name, seen) in [("concert", ours), ("crossplane-runtime", theirs)] {
        for Writes { verb, resource, number } in &seen.writes {
            let what = format!("{name}: {verb} {resource}, {count} objects");
            report.add(area, what, each(*number), "per object");
        }
    }
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

fn steady(scale: Scale) -> Duration {
    Duration::from_secs(scale.of(STEADY.as_secs() as usize) as u64)
}

/// Until all are ready; and what comes then, if a scale for that is given.
fn measure(programs: &Programs, contender: Contender, count: usize, then: Option<Scale>) -> Result<Seen> {
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
    let spent = || Spent::of(&process, &provider, Process::cpu);
    let cpu = spent()?;
    eprintln!("    all are ready after {:.1} s", ready.as_secs_f64());
    std::thread::sleep(SETTLING);
    let writes = writes::so_far(contender, &metrics)?;
    let after = match then {
        None => None,
        Some(scale) => {
            let (before, total) = (spent()?, writes::total(&writes));
            eprintln!("    now {:?} of nothing but polls", steady(scale));
            std::thread::sleep(steady(scale));
            let cpu = spent()?.since(before);
            let writes = writes::total(&writes::so_far(contender, &metrics)?) - total;
            eprintln!("    now edits");
            Some(After { writes, cpu, served: edits::run(&cluster, &text("control"), count, scale)? })
        }
    };
    let peak = Spent::of(&process, &provider, |it| Ok(it.peak_bytes()? as f64))?;
    Ok(Seen { ready, cpu, peak, writes, after })
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
        "spec": {"providerConfigRef": {"name": "default"},
            "forProvider": {"region": "here", "size": number, "tier": "standard"}}})
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
            command.arg("--limit=false");
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

fn free_address() -> Result<String> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where Go is; its installer does not put it on the path.
fn go() -> Result<&'static str> {
    let works = |go: &&str| Command::new(go).arg("version").output().is_ok_and(|it| it.status.success());
    let found = ["go", "/usr/local/go/bin/go"].into_iter().find(works);
    found.context("there is no Go to build the contender with; see https://go.dev/dl")
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
        let go = go()?;
        let run = |arguments: &[&OsStr]| -> Result<()> {
            let folder = workspace().join("bench/contender");
            let status = Command::new(go).args(arguments).current_dir(folder).status()?;
            ensure!(status.success(), "go {} of the contender: {status}", arguments[0].display());
            Ok(())
        };
        // Its own tests say whether it counts what is compared.
        run(&["test", "./..."].map(OsStr::new))?;
        let [build, trimpath, output, here] = ["build", "-trimpath", "-o", "."].map(OsStr::new);
        run(&[build, trimpath, output, contender.as_os_str(), here])?;
        Ok(Self { reconciler, provider: neighbour("concert-provider-example")?, contender })
    }
}
