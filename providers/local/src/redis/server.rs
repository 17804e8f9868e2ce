//! Starting, adopting and stopping the process of one server. Whoever calls has the server's turn.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use concert_provider::{Class, Error};
use tokio::process::{Child, Command};

use super::Redis;
use super::instances::{is_free, taken};
use super::process::Process;
use super::record::{Record, failed};
use super::resp::{Client, Fault};
use super::settings::configuration;
use crate::{Result, data_folder};

/// How long a server may take until it listens. One with much data listens before it has read it.
const LISTENS_WITHIN: Duration = Duration::from_secs(10);

/// Between two tries to connect to a server that starts.
const PAUSE: Duration = Duration::from_millis(10);

/// How often a server is asked to end, and how long it may take each time, before it is killed. It forgets
/// that it was asked if it just then writes its first log.
const ASKED_TO_END: usize = 80;
const ENDS_WITHIN: Duration = Duration::from_millis(250);

/// How long the kernel may take to end a process.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

impl Redis {
    /// Whether the process that was started for this server still runs.
    pub(super) fn is_running(&self, record: &Record) -> bool {
        let data = self.records.data(&record.name);
        record.process.as_ref().is_some_and(|it| it.is_alive(&data))
    }

    /// Makes sure that the process runs.
    pub(super) async fn ensure_running(&self, record: &mut Record) -> Result<()> {
        if self.is_running(record) || self.adopt(record).await? {
            return Ok(());
        }
        self.start(record).await
    }

    /// Takes a process for the server's own that listens on its port, has its password and works in its
    /// folder: it was started just before this provider was killed.
    async fn adopt(&self, record: &mut Record) -> Result<bool> {
        let data = self.records.data(&record.name);
        let Ok(mut client) = Client::open(record.port, &record.password).await else { return Ok(false) };
        let about = client.about().await.unwrap_or_default();
        let pid = about.get("process_id").and_then(|it| it.parse().ok());
        let Some(process) = pid.and_then(Process::with_pid) else { return Ok(false) };
        let Some(handle) = process.open(&data) else { return Ok(false) };
        record.process = Some(process);
        self.records.save(record)?;
        self.vigil.keep(&record.name, handle, None);
        Ok(true)
    }

    async fn start(&self, record: &mut Record) -> Result<()> {
        if !is_free(record.port) {
            return Err(taken(record.port, "another program"));
        }
        let mut child = self.spawn(record)?;
        let pid = child.id().and_then(|it| i32::try_from(it).ok());
        record.process = pid.and_then(Process::with_pid);
        let data = self.records.data(&record.name);
        let handle = record.process.as_ref().and_then(|it| it.open(&data));
        let known = self.records.save(record);
        let listens = match known {
            Ok(()) => self.listens(record, &mut child).await,
            Err(error) => Err(error),
        };
        if let Err(error) = listens {
            // What is not known to have started must not run on unknown.
            let _ = child.kill().await;
            return Err(error);
        }
        if let Some(handle) = handle {
            tracing::info!(name = %record.name, port = record.port, "started");
            self.vigil.keep(&record.name, handle, Some(child));
        }
        Ok(())
    }

    fn spawn(&self, record: &Record) -> Result<Child> {
        let (folder, data) = (self.records.folder(&record.name), self.records.data(&record.name));
        let (file, log) = (folder.join("redis.conf"), folder.join("redis.log"));
        let text =
            configuration(record.port, &record.password, &data.to_string_lossy(), &record.settings.pairs());
        data_folder::write(&file, text.as_bytes()).map_err(|e| failed("write", &file, &e))?;
        let opened = data_folder::private().append(true).create(true).open(&log);
        let output = opened.map_err(|e| failed("write", &log, &e))?;
        let errors = output.try_clone().map_err(|e| failed("write", &log, &e))?;
        let mut command = Command::new(&self.settings.program);
        // The password is in the file and not among the arguments, which everybody can read. A group of its
        // own, since what is typed at this provider's terminal is not meant for it.
        command.arg(&file).current_dir(&data).process_group(0);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        command.spawn().map_err(|error| self.cannot_start(&error))
    }

    fn cannot_start(&self, error: &io::Error) -> Error {
        let program = self.settings.program.display();
        let message = match error.kind() {
            io::ErrorKind::NotFound => format!(
                "{program} is not installed: install it (apt-get install redis-server), or start the provider \
                 with --redis-server PATH"
            ),
            _ => format!("cannot start {program}: {error}"),
        };
        Error::new(Class::Transient, message)
    }

    /// Waits until a server that was started listens.
    async fn listens(&self, record: &Record, child: &mut Child) -> Result<()> {
        let started = self.settings.clock.elapsed();
        loop {
            tokio::select! {
                ended = child.wait() => {
                    let log = self.records.folder(&record.name).join("redis.log");
                    let how = ended.map_or_else(|e| e.to_string(), |it| it.to_string());
                    let message = format!("redis-server ended at once ({how}): {}", last_words(&log));
                    return Err(Error::new(Class::Transient, message));
                }
                client = Client::open(record.port, &record.password) => match client {
                    Err(Fault::NobodyListens | Fault::Broken(_)) => {}
                    // Whatever else it says, it is there, and a look will tell.
                    _ => return Ok(()),
                }
            }
            if self.settings.clock.elapsed().saturating_sub(started) > LISTENS_WITHIN {
                let message = format!("redis-server does not listen after {} s", LISTENS_WITHIN.as_secs());
                return Err(Error::new(Class::Transient, message));
            }
            self.settings.clock.sleep(PAUSE).await;
        }
    }

    /// Ends the process, if it runs and is beyond doubt the server's own.
    pub(super) async fn stop(&self, record: &mut Record) -> Result<()> {
        if !self.is_running(record) {
            self.adopt(record).await?;
        }
        let data = self.records.data(&record.name);
        let Some(process) = record.process.as_ref().and_then(|it| it.open(&data)) else { return Ok(()) };
        for _ in 0..ASKED_TO_END {
            process.terminate();
            if tokio::time::timeout(ENDS_WITHIN, process.ended()).await.is_ok() {
                return Ok(());
            }
        }
        process.kill();
        let killed = tokio::time::timeout(KILLED_WITHIN, process.ended()).await;
        killed.map_err(|_| Error::new(Class::Transient, "redis-server does not end"))
    }
}

/// The end of a log, as one line.
fn last_words(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    format!("{last} (in {})", log.display())
}
