//! The machine a run was made on, and what it uses of it.

use std::fmt;
use std::fs;

use serde::Serialize;

/// What a number without its machine would be worth.
#[derive(Serialize)]
pub struct Description {
    cores: usize,
    memory_mib: u64,
    cpu: String,
    version: &'static str,
}

/// This machine.
pub fn describe() -> Description {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map(|(_, v)| v.trim().to_owned()).unwrap_or_default()
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kib: u64 = memory.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    Description {
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        memory_mib: kib / 1024,
        cpu: field(&read("/proc/cpuinfo"), "model name"),
        version: env!("CARGO_PKG_VERSION"),
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Description { cores, memory_mib, cpu, version } = self;
        write!(f, "concert {version} on {cores} cores, {memory_mib} MiB, {cpu}")
    }
}

/// Memory of this process that is really there, in bytes.
pub fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|n| n.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
