//! Where records go: a file that is kept from growing without end, or the log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file is set aside at this size, and the one set aside before is gone.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where records go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// To the log, under the target `audit`.
    Log,
    /// To this file, readable by its owner alone, which becomes `FILE.1` when it is large.
    File(PathBuf),
}

impl Sink {
    /// The same for strangers: `audit-strangers.jsonl` beside `audit.jsonl`.
    pub(super) fn of_strangers(&self) -> Self {
        match self {
            Self::Log => Self::Log,
            Self::File(path) => {
                let mut name = path.file_stem().unwrap_or_default().to_owned();
                name.push("-strangers");
                let beside = path.with_file_name(name);
                Self::File(match path.extension() {
                    Some(extension) => beside.with_extension(extension),
                    None => beside,
                })
            }
        }
    }

    /// Writes whole lines. A disk that cannot take them does not stop the server: the lines go to the log.
    pub(super) async fn write(&self, lines: String) {
        let Self::File(path) = self else { return log(&lines) };
        let path = path.clone();
        let written =
            tokio::task::spawn_blocking(move || match append(&path, lines.as_bytes(), FILE_BYTES_MAX) {
                Ok(()) => {}
                Err(error) => {
                    tracing::error!(path = %path.display(), %error, "cannot write the audit file");
                    log(&lines);
                }
            });
        if let Err(error) = written.await {
            tracing::error!(%error, "audit records were lost");
        }
    }
}

fn log(lines: &str) {
    for line in lines.lines() {
        tracing::info!(target: "audit", record = line, "request");
    }
}

pub(super) fn append(path: &Path, bytes: &[u8], bytes_max: u64) -> io::Result<()> {
    let mut file = open(path)?;
    if file.metadata()?.len() >= bytes_max {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".1");
        fs::rename(path, aside)?;
        file = open(path)?;
    }
    file.write_all(bytes)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
