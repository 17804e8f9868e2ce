//! Claims until all are bound, on the simulated cloud: on the embedded store and on a real kube-apiserver.
//!
//! Claims are made before their controllers start to count: all are there when the class appears that they
//! select, and what is measured is the concert and not whoever claims.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use concert_testbed::{Cluster, Options};
use serde_json::{Value, json};

use crate::Scale;
use crate::process::{Process, neighbour};
use crate::report::Report;

const CLAIMS: usize = 1_000;
const PATH: &str = "/apis/cache.crossplane.io/v1alpha1/namespaces/default/redisclusters";
/// Reconciles of one kind at a time.
const CONCURRENCY: &str = "100";
/// Longest wait for all to be bound.
const LIMIT: Duration = Duration::from_secs(600);

/// What was seen of one store.
struct Seen {
    bound: Duration,
    /// Everything that was written meanwhile, events included.
    writes: f64,
    cpu: f64,
    peak: f64,
}

/// Runs all of it.
pub fn run(scale: Scale, report: &mut Report) -> Result<()> {
    let count = scale.of(CLAIMS);
    eprintln!("  the embedded store");
    let ours = embedded(count)?;
    eprintln!("  kube-apiserver");
    let theirs = kubernetes(count)?;
    let mut row = |what: &str, unit, ours: f64, theirs: f64| {
        let against = format!("on kube-apiserver {theirs:.2}, ratio {:.2}", ours / theirs);
        report.add_against("claims", format!("{what}, {count} claims"), ours, unit, against);
    };
    row("to the last Bound", "s", ours.bound.as_secs_f64(), theirs.bound.as_secs_f64());
    row("writes per claim, all kinds", "", ours.writes, theirs.writes);
    row("CPU until then, store and API apart on Kubernetes", "s", ours.cpu, theirs.cpu);
    row("peak resident memory, likewise", "MiB", ours.peak, theirs.peak);
    Ok(())
}

fn embedded(count: usize) -> Result<Seen> {
    let folder = tempfile::tempdir()?;
    let (_provider, endpoint) = provider(folder.path())?;
    let mut command = Command::new(neighbour("concert")?);
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--admin-listen", "0", "--plugins", "off"]);
    command.args(["--log-format=json", "--max-reconcile-rate", CONCURRENCY]);
    command.arg("--data-dir").arg(folder.path().join("data"));
    let mut process = Process::start(folder.path(), "concert", &mut command)?;
    process.first(|line| (line["message"] == "serving" && line["what"] == "api").then_some(()))?;
    let world = World { kubeconfig: folder.path().join("data/kubeconfig"), kubectl: kubectl()? };
    let provider = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider",
        "metadata": {"name": "cloud"}, "spec": {"endpoint": endpoint}});
    world.run(&["apply", "-f", "-"], &provider.to_string())?;
    world.declare(count)?;
    world.measure(&mut process, count)
}

fn kubernetes(count: usize) -> Result<Seen> {
    let folder = tempfile::tempdir()?;
    let (_provider, endpoint) = provider(folder.path())?;
    let options = Options { with_controllers: true, ..Options::default() };
    let cluster = Cluster::start_with(&options)?.context("there is no cluster to measure on")?;
    let world = World { kubeconfig: cluster.kubeconfig(), kubectl: kubectl()? };
    world.apply(&["deploy/crds"])?;
    let config = folder.path().join("config.json");
    std::fs::write(&config, json!({"providers": [{"name": "cloud", "endpoint": endpoint}]}).to_string())?;
    let mut command = Command::new(neighbour("managed-reconciler")?);
    command.arg("--config").arg(config).arg("--kubeconfig").arg(&world.kubeconfig);
    command.args(["--leader-election=false", "--log-format=json", "--max-reconcile-rate", CONCURRENCY]);
    command.args(["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"]);
    let mut process = Process::start(folder.path(), "concert", &mut command)?;
    world.declare(count)?;
    world.measure(&mut process, count)
}

fn provider(folder: &Path) -> Result<(Process, String)> {
    let mut command = Command::new(neighbour("concert-provider-example")?);
    command.args(["--claims", "--address", "127.0.0.1:0"]);
    let mut provider = Process::start(folder, "provider", &mut command)?;
    let endpoint = provider.first(|line| line["address"].as_str().map(str::to_owned))?;
    Ok((provider, endpoint))
}

fn kubectl() -> Result<PathBuf> {
    concert_testbed::kubectl()?.context("there is no kubectl")
}

/// A control plane, whichever.
struct World {
    kubeconfig: PathBuf,
    kubectl: PathBuf,
}

impl World {
    fn run(&self, words: &[&str], stdin: &str) -> Result<String> {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        std::io::Write::write_all(&mut child.stdin.take().context("a pipe")?, stdin.as_bytes())?;
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "kubectl {words:?}: {}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    fn apply(&self, files: &[&str]) -> Result<()> {
        for file in files {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
            self.run(&["apply", "--server-side", "-f", &path.to_string_lossy()], "")?;
        }
        Ok(())
    }

    /// Everything but the class that the claims select.
    fn declare(&self, count: usize) -> Result<()> {
        self.apply(&["providers/example/crds", "deploy/claims/managed"])?;
        for kind in
            ["buckets", "kubernetesclusters", "mysqlinstances", "postgresqlinstances", "redisclusters"]
        {
            self.apply(&[&format!("deploy/claims/{kind}.yaml")])?;
        }
        self.apply(&["deploy/claims/classes.yaml"])?;
        self.wait_established()?;
        self.apply(&["deploy/claims/definitions.yaml"])?;
        self.run(&["wait", "--for=condition=Ready", "claimdefinition/rediscluster", "--timeout=60s"], "")?;
        let items: Vec<Value> = (0..count).map(claim).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        self.run(&["create", "-f", "-"], &list.to_string()).map(drop)
    }

    /// kubectl gives up at once on a definition that says nothing of itself yet.
    fn wait_established(&self) -> Result<()> {
        let started = Instant::now();
        loop {
            match self.run(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=10s"], "") {
                Ok(_) => return Ok(()),
                Err(error) if started.elapsed() > LIMIT => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    fn measure(&self, process: &mut Process, count: usize) -> Result<Seen> {
        let (before, cpu) = (self.revision()?, process.cpu()?);
        let started = Instant::now();
        self.apply(&["examples/claims/memorystore.yaml"])?;
        let columns = "jsonpath={range .items[*]}{.status.bindingPhase}{\"\\n\"}{end}";
        loop {
            let listed = self.run(&["get", "redisclusters", "-o", columns], "")?;
            let bound = listed.lines().filter(|it| *it == "Bound").count();
            if bound == count {
                break;
            }
            process.check_alive()?;
            ensure!(started.elapsed() < LIMIT, "only {bound} of {count} are bound after {LIMIT:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
        let bound = started.elapsed();
        Ok(Seen {
            bound,
            writes: (self.revision()? - before) / count as f64,
            cpu: process.cpu()? - cpu,
            peak: process.peak_bytes()? as f64 / f64::from(1 << 20),
        })
    }

    /// How often anything was written until now.
    fn revision(&self) -> Result<f64> {
        let list: Value =
            serde_json::from_str(&self.run(&["get", "--raw", &format!("{PATH}?limit=1")], "")?)?;
        Ok(list["metadata"]["resourceVersion"].as_str().context("a list has a position")?.parse()?)
    }
}

fn claim(number: usize) -> Value {
    json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
        "metadata": {"name": format!("c{number}"), "namespace": "default"},
        "spec": {"engineVersion": "3.2", "classSelector": {"matchLabels": {"grade": "prod"}},
            "writeConnectionSecretToRef": {"name": format!("c{number}")}}})
}
