//! Waiting for other processes.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest anything may take that is waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// Looks until `look` finds something, which it must.
#[expect(clippy::disallowed_methods, reason = "other processes cannot be told which time it is")]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) => assert!(started.elapsed() < LIMIT, "not within {LIMIT:?}: {what}; at last: {why}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A kubectl that waits for something. What it waits for has not happened before it watches.
pub struct Waiting(Option<Child>);

impl Waiting {
    /// Starts it, and returns when the server has answered its watch.
    pub fn start(command: &mut Command) -> Self {
        let command = command.arg("-v=6").stdin(Stdio::null());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut waiting = Self(Some(child));
        let child = waiting.0.as_mut().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.lines().last().is_some_and(|line| line.contains("watch=true")) {
            let read = lines.read_line(&mut said).unwrap();
            assert!(read > 0, "it ended before it watched: {said}");
        }
        child.stderr = Some(lines.into_inner());
        waiting
    }

    /// What it printed, when it has ended as it should.
    pub fn end(mut self) -> String {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
