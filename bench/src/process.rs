//! One program under measurement: its log, its CPU time, its memory. It ends with the value.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// Linux counts CPU time in hundredths of a second for programs, whatever its own clock does.
const TICKS_PER_SECOND: f64 = 100.0;

/// A program that was built together with this one.
pub fn neighbour(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(path.exists(), "{name} is not built; make bench builds everything");
    Ok(path)
}

pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, with everything it says in a file of `folder`.
    pub fn start(folder: &Path, name: &str, command: &mut Command) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log)?;
        let child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn();
        Ok(Self { child: child.with_context(|| format!("cannot start {name}"))?, log })
    }

    /// Its number among processes.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What `pick` finds in the first line of JSON that it finds anything in.
    pub fn first<T>(&mut self, pick: impl Fn(&Value) -> Option<T>) -> Result<T> {
        self.line(|line| pick(&serde_json::from_str(line).ok()?))
    }

    /// What `pick` finds in the first line that it finds anything in.
    pub fn line<T>(&mut self, pick: impl Fn(&str) -> Option<T>) -> Result<T> {
        let started = Instant::now();
        loop {
            let log = fs::read_to_string(&self.log)?;
            if let Some(found) = log.lines().find_map(&pick) {
                return Ok(found);
            }
            self.check_alive()?;
            ensure!(started.elapsed() < Duration::from_secs(60), "it says nothing:\n{log}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Fails if it has ended.
    pub fn check_alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("it has ended with {status}:\n{}", fs::read_to_string(&self.log)?);
        }
        Ok(())
    }

    /// CPU seconds so far.
    pub fn cpu(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name may hold anything, so fields are counted from its closing bracket.
        let (_, fields) = stat.rsplit_once(')').context("a stat has a name")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(|it| it.parse::<f64>().unwrap_or(0.0));
        Ok(ticks.sum::<f64>() / TICKS_PER_SECOND)
    }

    /// What it has had written to the disk so far.
    pub fn written_bytes(&self) -> Result<u64> {
        let io = fs::read_to_string(format!("/proc/{}/io", self.child.id()))?;
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes:"));
        line.and_then(|line| line.trim().parse().ok()).context("the kernel tells")
    }

    /// The most memory that was ever really there.
    pub fn peak_bytes(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        Ok(kib.context("the kernel tells")? * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of a GET.
pub fn get(address: &str, path: &str) -> Result<String> {
    request(address, "GET", path, "")
}

/// The body of the answer to any request; `body` is JSON, or a merge patch where the method is PATCH.
pub fn request(address: &str, method: &str, path: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let length = body.len();
    // In one piece, so that nothing waits for an acknowledgement in between.
    let head = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: {kind}\r\n");
    stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a body")?;
    ensure!(head.split(' ').nth(1).is_some_and(|it| it.starts_with('2')), "{method} {path}: {answer}");
    Ok(body.to_owned())
}
