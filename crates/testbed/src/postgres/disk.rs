//! A server whose tables are on a small disk of their own.
//!
//! The disk is memory, and mounted where only the server sees it: it goes with the server, however that ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::{Postgres, installed, is_ci, run};
use crate::hold::Server;

/// What the server begins with: where to mount, how many bytes, and then the program with its arguments.
const MOUNT: &str = r#"mount -t tmpfs -o "size=$1,mode=700" tmpfs "$0"
chown postgres "$0"
shift
exec "$@""#;

impl Postgres {
    /// A server whose tables in the database `postgres` have so many bytes and no more. Its log and all else is
    /// elsewhere. None where there is no PostgreSQL or no disk can be mounted, which is said on stderr; on CI that
    /// is a failure.
    ///
    /// # Errors
    /// The server does not start.
    pub fn start_with_disk_of(bytes: u64, settings: &[&str]) -> Result<Option<Self>> {
        let Some(programs) = installed()? else { return Ok(None) };
        let mut postgres = Self::place(programs, settings)?;
        let disk = postgres.disk();
        fs::create_dir(&disk)?;
        if let Err(error) = run(unshared().args(["mount", "-t", "tmpfs", "tmpfs"]).arg(&disk)) {
            ensure!(!is_ci(), "nothing can be mounted here: {error:#}; run the tests as root");
            eprintln!("skipped: nothing can be mounted here: {error:#}");
            return Ok(None);
        }
        postgres.server = with_disk(postgres.server, &disk, bytes);
        postgres.make()?;
        postgres.begin()?;
        postgres.sql("postgres", &format!("CREATE TABLESPACE small LOCATION '{}'", disk.display()))?;
        postgres.sql("postgres", "ALTER DATABASE postgres SET default_tablespace = small")?;
        Ok(Some(postgres))
    }

    /// Makes the disk larger, or smaller, while it is in use.
    ///
    /// # Errors
    /// There is none, or it cannot be.
    pub fn resize_disk(&self, bytes: u64) -> Result<()> {
        let process = self.process()?.to_string();
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &process, "mount", "-o", &format!("remount,size={bytes}")]);
        run(command.arg(self.disk())).map(drop)
    }

    fn disk(&self) -> PathBuf {
        self.directory.join("disk")
    }
}

/// What begins with mounts of its own: the program and its arguments follow.
fn unshared() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]);
    command
}

/// Each program on the way is replaced by the next one, so that signals reach the server.
fn with_disk(server: Server, disk: &Path, bytes: u64) -> Server {
    let mut arguments: Vec<String> =
        ["--mount", "--propagation", "private", "sh", "-ec", MOUNT].map(str::to_owned).into();
    arguments.extend([disk.display().to_string(), bytes.to_string(), server.program.display().to_string()]);
    arguments.extend(server.arguments);
    Server { program: "unshare".into(), arguments, ..server }
}
