//! How soon an edited object is served while all others are polled.
//!
//! Edits go through `kubectl proxy`, one after another and evenly spread. The clock starts when the edit
//! is sent, so the API server's own time is in the number, and stops at the time the cloud wrote down.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use concert_model::Timestamp;
use concert_testbed::Cluster;
use serde_json::{Value, json};

use crate::Scale;
use crate::process::{Process, get, request};

/// How many edits, in a whole run.
const EDITS: usize = 500;
/// From one to the next: so that all of them take longer than the minute between two polls of an object, and none
/// of the polls is missed.
const PACE: Duration = Duration::from_millis(130);
/// No object was declared with a size like it.
const SIZE: usize = 1_000_000;
/// Longest wait for the last ones.
const LIMIT: Duration = Duration::from_secs(120);

/// Milliseconds from each edit to the cloud, sorted.
pub fn run(cluster: &Cluster, cloud: &str, count: usize, scale: Scale) -> Result<Vec<f64>> {
    let edits = scale.of(EDITS).min(count);
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(cluster.kubectl_program());
    command.arg("--kubeconfig").arg(cluster.kubeconfig()).args(["proxy", "--port=0"]);
    let mut proxy = Process::start(folder.path(), "proxy", &mut command)?;
    let address = proxy.line(|line| Some(line.split_once("serve on ")?.1.to_owned()))?;
    let since = truth(cloud, 0)?.len();

    let mut sent = Vec::with_capacity(edits);
    for number in 0..edits {
        let started = Instant::now();
        // A stride without a common divisor with the count, so that they lie apart.
        let name = format!("r{}", number * 7919 % count);
        let path = format!("/apis/example.crossplane.io/v1alpha1/exampleresources/{name}");
        let patch = json!({"spec": {"forProvider": {"size": SIZE + number}}});
        sent.push(Timestamp::now());
        request(&address, "PATCH", &path, &patch.to_string())?;
        sleep(PACE.saturating_sub(started.elapsed()));
    }
    let started = Instant::now();
    loop {
        let mut arrived = vec![None; edits];
        for entry in truth(cloud, since)? {
            let size = entry["properties"]["size"].as_u64().unwrap_or(0) as usize;
            if entry["event"] == "updated" && size >= SIZE {
                let time: Timestamp = serde_json::from_value(entry["time"].clone())?;
                arrived[size - SIZE].get_or_insert(time);
            }
        }
        let arrived: Vec<Timestamp> = arrived.into_iter().flatten().collect();
        if arrived.len() == edits {
            let millis = |(arrived, sent): (&Timestamp, &Timestamp)| {
                arrived.duration_since(*sent).as_secs_f64() * 1000.0
            };
            let mut took: Vec<f64> = arrived.iter().zip(&sent).map(millis).collect();
            took.sort_by(f64::total_cmp);
            return Ok(took);
        }
        ensure!(started.elapsed() < LIMIT, "only {} of {edits} edits have arrived", arrived.len());
        sleep(Duration::from_millis(500));
    }
}

/// What the cloud wrote down after the given entry.
fn truth(cloud: &str, since: usize) -> Result<Vec<Value>> {
    let answer: Value = serde_json::from_str(&get(cloud, &format!("/truth?since={since}"))?)?;
    Ok(answer["entries"].as_array().context("the truth is a list")?.clone())
}
