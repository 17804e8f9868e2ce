//! Processes under test. They end with the value, and can be killed and started again before.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::wait::eventually;

/// A child that can be made again, with a log of all its lives.
pub struct Process {
    name: String,
    child: Option<Child>,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, with everything it says in a file of `folder`.
    pub fn start(folder: &Path, name: &str, command: &mut Command) -> Self {
        let log = folder.join(format!("{name}.log"));
        let mut process = Self { name: name.to_owned(), child: None, log };
        process.start_again(command);
        process
    }

    /// Starts another life, after the last one has ended.
    pub fn start_again(&mut self, command: &mut Command) {
        assert!(self.child.is_none(), "{} is running", self.name);
        let file = OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        self.child = Some(command.spawn().unwrap_or_else(|error| panic!("{}: {error}", self.name)));
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("it is running");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Everything that was said in all lives.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// How many bytes were said so far.
    pub fn mark(&self) -> usize {
        self.log().len()
    }

    /// Whole lines after `mark`.
    pub fn lines_since(&self, mark: usize) -> Vec<String> {
        let log = self.log();
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.get(mark..).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Something in a line of JSON after `mark`.
    pub fn find<T>(&mut self, what: &str, mark: usize, pick: impl Fn(&Value) -> Option<T>) -> T {
        eventually(what, || {
            let lines = self.lines_since(mark);
            let found =
                lines.iter().filter_map(|line| serde_json::from_str(line).ok()).find_map(|it| pick(&it));
            if found.is_none()
                && let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait)
            {
                panic!("{what}: {} has ended with {status}:\n{}", self.name, lines.join("\n"));
            }
            found.ok_or_else(|| self.end())
        })
    }

    fn end(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- the end of {}:\n{}", self.log.display(), self.end());
        }
    }
}
