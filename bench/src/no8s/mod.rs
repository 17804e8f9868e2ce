//! no8s: resources created over HTTP, reconciled by a Python plugin in a host of its own.

mod records;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::Scale;
use crate::process::{Process, neighbour, request};
use crate::report::{Report, percentile};
use records::{Made, ready};

/// Resources that are made at once.
const RESOURCES: usize = 1_000;
/// Resources that are made one after the other, to see how long one alone takes.
const ALONE: usize = 200;
/// What the upstream operator needed for as many, on PostgreSQL and a machine like this one; it was not
/// part of this run.
const UPSTREAM: &str = "upstream operator on PostgreSQL, not in this run: 105 s, 9.5 per s, 75 MB";

/// Runs all of it.
pub fn run(scale: Scale, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let calls = folder.path().join("calls");
    let (mut server, address) = serve(folder.path(), &calls)?;
    define(&address)?;
    server.line(|line| line.contains("Started reconciler plugin: bench_record").then_some(()))?;

    let alone = records::one_by_one(&address, scale.of(ALONE))?;
    ready(&address, alone.len())?;
    let waits = waits(&alone, &calls)?;
    let area = "no8s";
    report.add(area, "from 201 to reconcile(), median", percentile(&waits, 0.5), "ms");
    report.add(area, "from 201 to reconcile(), p99", percentile(&waits, 0.99), "ms");

    let count = scale.of(RESOURCES);
    let started = Instant::now();
    let made = records::at_once(&address, count)?;
    let created = started.elapsed();
    ready(&address, alone.len() + made.len())?;
    let all = started.elapsed();
    report.add(area, format!("{count} resources created"), created.as_secs_f64(), "s");
    report.add_against(area, format!("{count} resources ready"), all.as_secs_f64(), "s", UPSTREAM);
    report.add(
        area,
        "resident, server, at its peak",
        server.peak_bytes()? as f64 / f64::from(1 << 20),
        "MiB",
    );
    report.add(area, "CPU of the server", server.cpu()?, "s");
    Ok(())
}

/// A server for development with the plugin beside it.
fn serve(folder: &Path, calls: &Path) -> Result<(Process, String)> {
    let programs = environment()?;
    let path = std::env::join_paths(
        std::iter::once(programs.clone())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )?;
    let mut command = Command::new(neighbour("concert")?);
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--admin-listen", "0", "--log-format=json"]);
    command.arg("--data-dir").arg(folder.join("data"));
    command.arg("--plugins").arg(programs.join("no8s-plugin-host"));
    command.env("PATH", path).env("NO8S_BENCH_CALLS", calls);
    let mut process = Process::start(folder, "concert", &mut command)?;
    let address = process.first(|line| {
        let is_it = line["message"] == "serving" && line["what"] == "api";
        line["address"].as_str().filter(|_| is_it).map(str::to_owned)
    })?;
    Ok((process, address))
}

/// A Python environment with the package and the plugin in it; the folder of its programs.
fn environment() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = neighbour("concert")?.with_file_name("no8s-bench-python");
    let run = |command: &mut Command| -> Result<()> {
        let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
        ensure!(status.success(), "{command:?}: {status}");
        Ok(())
    };
    eprintln!("  making a Python environment");
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let programs = folder.join("bin");
    run(Command::new(programs.join("pip"))
        .args(["install", "--quiet", "--disable-pip-version-check"])
        .arg(root.join("../sdk/python"))
        .arg(root.join("no8s")))?;
    Ok(programs)
}

fn define(address: &str) -> Result<()> {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "required": ["domain", "type", "value"], "properties": {
        "domain": text, "type": {"type": "string", "enum": ["A", "AAAA", "CNAME", "TXT"]}, "value": text,
        "ttl": {"type": "integer", "minimum": 60, "default": 300}}});
    let kind = json!({"name": "DnsRecord", "version": "v1", "schema": schema});
    request(address, "POST", "/api/v1/resource-types", &kind.to_string()).map(drop)
}

/// How many milliseconds after its 201 each resource was reconciled for the first time; sorted.
fn waits(made: &[Made], calls: &Path) -> Result<Vec<f64>> {
    let text = std::fs::read_to_string(calls)?;
    let mut first: BTreeMap<&str, u128> = BTreeMap::new();
    for line in text.lines() {
        let (name, nanos) = line.split_once(' ').context("a call has a name and a time")?;
        let nanos: u128 = nanos.parse()?;
        first.entry(name).and_modify(|it| *it = nanos.min(*it)).or_insert(nanos);
    }
    let wait = |made: &Made| -> Result<f64> {
        let called = first.get(&*made.name).with_context(|| format!("{} was not reconciled", made.name))?;
        Ok(called.saturating_sub(made.answered) as f64 / 1e6)
    };
    let mut waits = made.iter().map(wait).collect::<Result<Vec<_>>>()?;
    waits.sort_unstable_by(f64::total_cmp);
    Ok(waits)
}
