//! Processes, recognised beyond doubt before anything is done to them.
//!
//! A pid alone means nothing once its process has ended: the kernel gives it to another. So a process is
//! its pid, the moment it started and the folder it works in; and what is signalled is a handle that was
//! opened before those were compared.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Which process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Process {
    pub(super) pid: i32,
    /// When it started, in the kernel's ticks since the machine did.
    start_ticks: u64,
}

impl Process {
    /// The process that has this pid now.
    pub(super) fn with_pid(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        start_ticks(&stat).map(|start_ticks| Self { pid, start_ticks })
    }

    /// A handle on this very process, if it lives and works in `folder`.
    pub(super) fn open(&self, folder: &Path) -> Option<Handle> {
        let handle = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::NONBLOCK).ok()?;
        let is_it = Self::with_pid(self.pid).as_ref() == Some(self)
            && fs::read_link(format!("/proc/{}/cwd", self.pid)).is_ok_and(|it| it == folder);
        is_it.then(|| Handle(Arc::new(handle)))
    }

    /// Whether it lives and works in `folder`.
    pub(super) fn is_alive(&self, folder: &Path) -> bool {
        self.open(folder).is_some()
    }
}

/// When a process started, from what the kernel says of it; none if it has ended and only waits for its
/// parent to notice.
fn start_ticks(stat: &str) -> Option<u64> {
    // Its name is in parentheses and may contain anything, parentheses and blanks included.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    // Field 22, of which the state was field 3.
    fields.nth(18)?.parse().ok()
}

/// A process that cannot become another one.
#[derive(Debug)]
pub(super) struct Handle(Arc<OwnedFd>);

impl Handle {
    /// Asks it to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends it.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // The one way to fail is that it has ended, which is what was wanted.
        let _ = pidfd_send_signal(&*self.0, signal);
    }

    /// Completes when it has ended.
    #[expect(
        deprecated,
        reason = "its successor is unsafe, which is forbidden here; a shared OwnedFd is sound"
    )]
    pub(super) async fn ended(&self) {
        let handle = AsyncFd::with_interest(self.0.clone(), Interest::READABLE);
        // Cannot be watched only where there are no handles at all.
        if let Ok(handle) = handle {
            let _ = handle.readable().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper(folder: &Path) -> (Child, Process) {
        let child = Command::new("sleep").arg("600").current_dir(folder).spawn().unwrap();
        let process = Process::with_pid(child.id() as i32).unwrap();
        (child, process)
    }

    #[tokio::test]
    async fn a_process_is_its_pid_its_start_and_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, process) = sleeper(folder.path());
        assert!(process.is_alive(folder.path()));
        assert!(!process.is_alive(Path::new("/")), "works elsewhere");
        let reused = Process { start_ticks: process.start_ticks + 1, ..process.clone() };
        assert!(!reused.is_alive(folder.path()), "started at another time");
        let handle = process.open(folder.path()).unwrap();
        handle.terminate();
        handle.ended().await;
        assert!(!process.is_alive(folder.path()), "has ended, though its parent has not noticed");
        child.wait().unwrap();
        handle.kill();
        assert!(process.open(folder.path()).is_none());
    }

    #[test]
    fn names_of_processes_cannot_confuse() {
        let tail = (4..=21).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(start_ticks(&format!("7 (a) Z) S {tail} 1234 9")), Some(1234));
        assert_eq!(start_ticks(&format!("7 (a) Z {tail} 1234 9")), None);
        assert_eq!(start_ticks("7"), None);
    }
}
