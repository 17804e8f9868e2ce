//! The benchmarks: `make bench ARGS=store`, `make bench ARGS="engine --json"`.
//!
//! Every claim of speed comes from here, as a ratio to a physical limit or a peer measured in the same
//! run: machines are noisy, ratios much less so.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time on the real machine")]
#![allow(clippy::print_stdout, reason = "the report is what it is for")]

/// The allocator of the shipped binaries: JSON trees are many small pieces.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod claims;
mod engine;
mod fleet;
mod machine;
mod managed;
mod no8s;
mod postgres;
mod process;
mod replicas;
mod report;
mod serve;
mod store;

use anyhow::{Result, bail, ensure};
use report::Report;

const USAGE: &str = "usage: bench [NAME]... [--json] [--quick]

  store           durable writes, lists, watches and memory of the embedded store;
                  store-writes, store-list, store-watch, store-growth: one part of it
  engine          latency, throughput and memory of the reconcile engine;
                  engine-latency, engine-throughput, engine-memory: one part of it
  managed         the managed reconciler beside one on crossplane-runtime, on a real kube-apiserver:
                  1,000 objects until all are ready, 10,000 with five minutes of steady state and edits as well;
                  takes twenty minutes, needs Go, and is run only by name
  serve           the API beside a real kube-apiserver with etcd: creates, lists, watchers, memory;
                  needs Go and wrk, and is run only by name
  no8s            resources reconciled by a Python plugin: from the answer to reconcile(), and 1,000 of
                  them until all are ready; needs Python 3.11, and is run only by name
  claims          1,000 claims until all are bound, on the embedded store and on a real kube-apiserver;
                  needs Go, and is run only by name
  fleet           from a section write to the start of who it wakes, a thousand writes at once, and what
                  10,000 idle entries cost; takes some minutes, and is run only by name
  postgres        the API on a PostgreSQL database beside the embedded store and a real kube-apiserver with
                  etcd: writes, watches across two replicas, memory; then the store alone, with claims of
                  work; needs Go, wrk and PostgreSQL, and is run only by name
  replicas        10,000 managed resources until all are ready with one, two and three replicas on a PostgreSQL
                  database, and what happens when one is lost in the middle of it; needs Go and PostgreSQL, takes ten minutes,
                  and is run only by name
  --json          print the report as JSON instead of a table
  --quick         a tenth of the work: to see that it runs, not to be quoted

Without a name everything is run.";

const NAMES: [&str; 14] = [
    "store-writes",
    "store-list",
    "store-watch",
    "store-growth",
    "engine-latency",
    "engine-throughput",
    "engine-memory",
    "managed-side-by-side",
    "serve-side-by-side",
    "no8s-side-by-side",
    "claims-side-by-side",
    "fleet-side-by-side",
    "postgres-side-by-side",
    "replicas-side-by-side",
];

/// How much to do.
#[derive(Clone, Copy)]
pub struct Scale {
    divisor: usize,
}

impl Scale {
    /// `n`, or a tenth of it in a quick run.
    pub fn of(self, n: usize) -> usize {
        (n / self.divisor).max(1)
    }
}

fn main() -> Result<()> {
    let mut names = Vec::new();
    let (mut is_json, mut divisor) = (false, 1);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => is_json = true,
            "--quick" => divisor = 10,
            "-h" | "--help" => {
                println!("{USAGE}");
                return Ok(());
            }
            other => {
                let meant = NAMES.iter().filter(|n| *n == &other || n.split('-').next() == Some(other));
                let before = names.len();
                names.extend(meant.copied());
                if names.len() == before {
                    bail!("unknown argument {other:?}\n\n{USAGE}");
                }
            }
        }
    }
    if names.is_empty() {
        names = NAMES.iter().copied().filter(|it| !it.ends_with("side-by-side")).collect();
    }
    let mut report = Report::new();
    match names[..] {
        [name] => run(name, Scale { divisor }, &mut report)?,
        // Each part in a process of its own: memory that one has used would hide what the next one needs.
        _ => {
            for name in names {
                report.take_rows(&run_apart(name, divisor > 1)?)?;
            }
        }
    }
    println!("{}", if is_json { report.json() } else { report.table() });
    Ok(())
}

fn run(name: &str, scale: Scale, report: &mut Report) -> Result<()> {
    eprintln!("{name}:");
    match name.split_once('-') {
        Some(("store", part)) => store::run(part, scale, report),
        Some(("managed", _)) => managed::run(scale, report),
        Some(("serve", _)) => serve::run(scale, report),
        Some(("no8s", _)) => no8s::run(scale, report),
        Some(("postgres", _)) => postgres::run(scale, report),
        Some(("replicas", _)) => replicas::run(scale, report),
        Some(("claims", _)) => claims::run(scale, report),
        Some(("fleet", _)) => fleet::run(scale, report),
        Some((_, part)) => engine::run(part, scale, report),
        None => Ok(()),
    }
}

/// Runs one part in a child; its report as JSON.
fn run_apart(name: &str, is_quick: bool) -> Result<Vec<u8>> {
    let mut child = std::process::Command::new(std::env::current_exe()?);
    child.args([name, "--json"]).args(is_quick.then_some("--quick")).stderr(std::process::Stdio::inherit());
    let output = child.output()?;
    ensure!(output.status.success(), "{name} failed: {}", output.status);
    Ok(output.stdout)
}
