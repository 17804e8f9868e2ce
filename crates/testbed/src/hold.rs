//! The parent of the servers.
//!
//! A test process can be killed at any time and then ends nothing. So the servers are children of a
//! small process that reads its orders from a pipe: when the other end of the pipe is gone, for
//! whatever reason, it ends what it started, removes the directory and goes.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

/// What to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// What it is called in later orders.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where its output goes, at the end of what is there.
    pub log: PathBuf,
    /// The signal that ends it, where killing it would leave something behind.
    #[serde(default)]
    pub ends_by: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Order {
    Start(Server),
    Stop(String),
    IsRunning(String),
}

/// The holding process, as seen by who started it. Dropping it ends all servers.
#[derive(Debug)]
pub(crate) struct Holder {
    process: Child,
    // Taken when it is dropped: closing the pipe is what ends the process.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Holder {
    /// Starts `program` as the parent of servers that work in `directory`.
    pub(crate) fn start(program: &Path, directory: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("hold").arg(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        // A group of its own: a signal to the group of the tests must not reach the one who cleans up.
        let mut process =
            command.process_group(0).spawn().context("cannot start the parent of the servers")?;
        let orders = process.stdin.take();
        let answers = process.stdout.take().context("the parent of the servers has no output")?;
        Ok(Self { process, orders, answers: BufReader::new(answers) })
    }

    pub(crate) fn start_server(&mut self, server: Server) -> Result<()> {
        self.order(&Order::Start(server)).map(drop)
    }

    pub(crate) fn stop_server(&mut self, name: &str) -> Result<()> {
        self.order(&Order::Stop(name.to_owned())).map(drop)
    }

    pub(crate) fn is_running(&mut self, name: &str) -> Result<bool> {
        self.order(&Order::IsRunning(name.to_owned()))
    }

    fn order(&mut self, order: &Order) -> Result<bool> {
        let orders = self.orders.as_mut().context("the parent of the servers is gone")?;
        writeln!(orders, "{}", serde_json::to_string(order)?)?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let answer: Result<bool, String> =
            serde_json::from_str(&line).context("the parent of the servers is gone")?;
        answer.map_err(|error| anyhow!(error))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.orders.take());
        // It has nothing left to do but to end its children.
        let _ = self.process.wait();
    }
}

/// The holding process itself: does what it is told until its input ends, then ends what it started and
/// removes `directory`.
///
/// # Errors
/// The pipe is broken in another way than by ending.
pub fn run(directory: &Path, orders: impl BufRead, mut answers: impl Write) -> Result<()> {
    let mut children = Children::default();
    for line in orders.lines() {
        let answer = children.obey(serde_json::from_str(&line?)?).map_err(|error| format!("{error:#}"));
        writeln!(answers, "{}", serde_json::to_string(&answer)?)?;
        answers.flush()?;
    }
    drop(children);
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

/// Processes that end with this value.
#[derive(Default)]
struct Children(BTreeMap<String, Running>);

struct Running {
    child: Child,
    ends_by: Option<String>,
}

impl Running {
    /// Fails for one that is gone already, which is all that is wanted.
    fn end(&mut self) {
        let asked = self.ends_by.as_ref().is_some_and(|signal| {
            let pid = self.child.id().to_string();
            Command::new("kill").args(["-s", signal, &pid]).status().is_ok_and(|status| status.success())
        });
        if !asked {
            let _ = self.child.kill();
        }
    }
}

impl Children {
    fn obey(&mut self, order: Order) -> Result<bool> {
        match order {
            Order::Start(server) => {
                if self.is_running(&server.name)? {
                    bail!("{} is running already", server.name);
                }
                let log = OpenOptions::new().create(true).append(true).open(&server.log)?;
                let mut command = Command::new(&server.program);
                command.args(&server.arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
                let child = command.spawn().with_context(|| format!("cannot start {}", server.name))?;
                self.0.insert(server.name, Running { child, ends_by: server.ends_by });
                Ok(true)
            }
            Order::Stop(name) => {
                let mut running = self.0.remove(&name).with_context(|| format!("{name} is not running"))?;
                running.child.kill()?;
                running.child.wait()?;
                Ok(true)
            }
            Order::IsRunning(name) => self.is_running(&name),
        }
    }

    fn is_running(&mut self, name: &str) -> Result<bool> {
        match self.0.get_mut(name) {
            Some(running) => Ok(running.child.try_wait()?.is_none()),
            None => Ok(false),
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.0.values_mut().for_each(Running::end);
        for running in self.0.values_mut() {
            let _ = running.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(directory: &Path, name: &str) -> Server {
        let (program, log) = ("sleep".into(), directory.join("log"));
        Server { name: name.into(), program, arguments: vec!["600".into()], log, ends_by: None }
    }

    #[test]
    fn what_was_started_ends_when_the_orders_end() {
        let directory = tempfile::tempdir().unwrap().keep();
        let order = |order: &Order| serde_json::to_string(order).unwrap() + "\n";
        let orders = [
            order(&Order::Start(sleeper(&directory, "a"))),
            order(&Order::Start(sleeper(&directory, "b"))),
            order(&Order::IsRunning("a".into())),
            order(&Order::Stop("a".into())),
            order(&Order::IsRunning("a".into())),
            order(&Order::Start(sleeper(&directory, "b"))),
        ];
        let mut answers = Vec::new();
        run(&directory, orders.concat().as_bytes(), &mut answers).unwrap();
        let answers = String::from_utf8(answers).unwrap();
        let said: Vec<&str> = answers.lines().collect();
        assert_eq!(
            said[..5],
            [r#"{"Ok":true}"#; 4].iter().copied().chain([r#"{"Ok":false}"#]).collect::<Vec<_>>()
        );
        assert!(said[5].contains("b is running already"), "{answers}");
        assert!(!directory.exists());
    }
}
