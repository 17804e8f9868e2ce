//! A PostgreSQL server from Debian's programs, in a directory of its own, on loopback.

mod disk;
mod session;
mod standby;

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::hold::{Holder, Server};
use crate::{certificates, programs, wait};

pub use session::Session;

/// The administrator's. Every character in it has to be written in another way somewhere.
const PASSWORD: &str = "it's \"secret\" @/:";
/// Longest the server may take to be ready.
const READY_LIMIT: Duration = Duration::from_secs(60);
const NAME: &str = "postgres";

/// A running server. It ends when it is dropped, and when its process ends, however that happens.
#[derive(Debug)]
pub struct Postgres {
    holder: Mutex<Holder>,
    programs: PathBuf,
    directory: PathBuf,
    port: u16,
    server: Server,
    schemas: AtomicUsize,
}

impl Postgres {
    /// A server for this caller alone, with further settings as in `postgresql.conf`. None where there is
    /// no PostgreSQL to start, which is said on stderr; on CI that is a failure.
    ///
    /// # Errors
    /// The server does not start.
    pub fn start(settings: &[&str]) -> Result<Option<Self>> {
        let Some(programs) = installed()? else { return Ok(None) };
        let postgres = Self::place(programs, settings)?;
        postgres.make()?;
        postgres.begin()?;
        Ok(Some(postgres))
    }

    /// A directory and a port for a server that has no files yet.
    fn place(programs: PathBuf, settings: &[&str]) -> Result<Self> {
        // Its user must be able to get into the directory.
        let directory = tempfile::Builder::new().prefix("concert-postgres-").tempdir_in("/tmp")?;
        let holder = Holder::start(&programs::own()?, directory.path())?;
        // From here on the holder removes it.
        let directory = directory.keep();
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let server = server(&programs, &directory, port, settings);
        let holder = Mutex::new(holder);
        let postgres = Self { holder, programs, directory, port, server, schemas: AtomicUsize::new(0) };
        postgres.furnish()?;
        Ok(postgres)
    }

    /// The server of this process, started by the first who asks. None where there can be none.
    ///
    /// # Panics
    /// As [`Postgres::start`] fails: no test can go on.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
        let start = || Self::start(&[]).unwrap_or_else(|error| panic!("no server for tests: {error:?}"));
        SHARED.get_or_init(start).as_ref()
    }

    /// Where psql, pg_dump and the others of its version are; empty where they are on the PATH.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// The port of loopback that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The number of its first process, whose children are the others.
    ///
    /// # Errors
    /// It is not running.
    pub fn process(&self) -> Result<u32> {
        let file = fs::read_to_string(self.data().join("postmaster.pid"))?;
        let number = file.lines().next().and_then(|it| it.trim().parse().ok());
        number.context("postmaster.pid begins with a number")
    }

    /// The administrator's password.
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Where the administrator gets into a database.
    pub fn url(&self, database: &str) -> String {
        let encoded: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
        format!("postgres://postgres:{encoded}@127.0.0.1:{}/{database}", self.port)
    }

    /// The same, for a schema that nobody else uses.
    pub fn fresh_url(&self) -> String {
        let number = self.schemas.fetch_add(1, Ordering::Relaxed);
        format!("{}?schema=fresh_{}_{number}", self.url("postgres"), std::process::id())
    }

    /// The certificate of the authority that signed the server's, as a file in PEM: it takes TLS on the same
    /// port, as `localhost` and `127.0.0.1`.
    pub fn authority(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    /// What the server has logged.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.server.log)?)
    }

    /// What psql prints for a statement of the administrator: values only.
    ///
    /// # Errors
    /// It failed; the error is what it said.
    pub fn sql(&self, database: &str, statement: &str) -> Result<String> {
        let mut command = self.client("psql", database);
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement]);
        Ok(run(&mut command)?.trim().to_owned())
    }

    /// Copies a schema of the database `postgres` to a new file, as an operator would.
    ///
    /// # Errors
    /// It failed; the error is what pg_dump said.
    pub fn dump(&self, schema: &str, file: &Path) -> Result<()> {
        let mut command = self.client("pg_dump", "postgres");
        command.args(["--format=custom", "--schema", schema, "--file"]).arg(file);
        run(&mut command).map(drop)
    }

    /// Puts such a copy back, where the schema must not be.
    ///
    /// # Errors
    /// It failed; the error is what pg_restore said.
    pub fn restore(&self, file: &Path) -> Result<()> {
        let mut command = self.client("pg_restore", "postgres");
        command.args(["--exit-on-error", "--single-transaction"]).arg(file);
        run(&mut command).map(drop)
    }

    /// A program of the administrator that connects to a database.
    fn client(&self, program: &str, database: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        let port = self.port.to_string();
        command.args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-d", database]);
        command.env("PGPASSWORD", PASSWORD);
        command
    }

    /// Cuts all connections but the one that does it.
    ///
    /// # Errors
    /// As [`Postgres::sql`].
    pub fn cut_connections(&self) -> Result<()> {
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
        self.sql("postgres", sql).map(drop)
    }

    /// Stops the server as a crash would: nobody is asked to finish.
    ///
    /// # Errors
    /// It is not running.
    pub fn stop(&self) -> Result<()> {
        run(self.command("pg_ctl").arg("-D").arg(self.data()).args(["-m", "immediate", "-w", "stop"]))?;
        // It waits for the file that says who runs, which goes a moment before the process does.
        let ended = wait::until(READY_LIMIT, || Ok((!self.holder().is_running(NAME)?).then_some(())))?;
        ended.context("PostgreSQL does not end")
    }

    /// Starts it again, and waits until it is ready.
    ///
    /// # Errors
    /// It does not start.
    pub fn begin(&self) -> Result<()> {
        self.holder().start_server(self.server.clone())?;
        let look = || {
            let is_ready = self.sql("postgres", "SELECT 1").is_ok();
            if !is_ready && !self.holder().is_running(NAME)? {
                bail!("PostgreSQL has ended: {}", self.log().unwrap_or_default());
            }
            Ok(is_ready.then_some(()))
        };
        let ready = wait::until(READY_LIMIT, look)?;
        ready.with_context(|| format!("PostgreSQL is not ready: {}", self.log().unwrap_or_default()))
    }

    /// Starts it again as a standby that has caught up with a primary that is gone: it can be read, and
    /// written to after `SELECT pg_promote()`.
    ///
    /// # Errors
    /// As [`Postgres::begin`].
    pub fn begin_as_standby(&self) -> Result<()> {
        let signal = self.data().join("standby.signal");
        fs::write(&signal, "")?;
        if is_root() {
            // The server removes it when it is promoted.
            run(Command::new("chown").arg(NAME).arg(&signal))?;
        }
        self.begin()
    }

    /// Puts what a server needs beside its files into the directory, which becomes its user's.
    fn furnish(&self) -> Result<()> {
        certificates::write(&self.directory)?;
        fs::set_permissions(self.directory.join("server.key"), Permissions::from_mode(0o600))?;
        fs::write(self.directory.join("password"), PASSWORD)?;
        if is_root() {
            run(Command::new("chown").args(["-R", NAME]).arg(&self.directory))?;
        }
        Ok(())
    }

    /// Makes the files of a new server.
    fn make(&self) -> Result<()> {
        let password = self.directory.join("password");
        let auth = ["--auth=scram-sha-256", "--username=postgres", "--no-sync", "--encoding=UTF8"];
        let mut initdb = self.command("initdb");
        run(initdb.arg("-D").arg(self.data()).args(auth).arg("--pwfile").arg(&password)).map(drop)
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn command(&self, program: &str) -> Command {
        let (program, first) = as_its_user(&self.programs.join(program));
        let mut command = Command::new(program);
        command.args(first).current_dir(&self.directory);
        command
    }

    fn holder(&self) -> MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn server(programs: &Path, directory: &Path, port: u16, settings: &[&str]) -> Server {
    let (program, mut arguments) = as_its_user(&programs.join("postgres"));
    let file = |name: &str| directory.join(name).display().to_string();
    arguments.extend(["-D".to_owned(), file("data")]);
    let own = [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        "unix_socket_directories=".to_owned(),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", file("server.crt")),
        format!("ssl_key_file={}", file("server.key")),
        // Nothing here has to survive a power cut.
        "fsync=off".to_owned(),
        // Several test processes may share it, each with several stores.
        "max_connections=300".to_owned(),
    ];
    for setting in own.into_iter().chain(settings.iter().map(|it| (*it).to_owned())) {
        arguments.extend(["-c".to_owned(), setting]);
    }
    let log = directory.join("postgres.log");
    // Asked rather than killed, it gives back the memory that it shares with its children.
    Server { name: NAME.to_owned(), program, arguments, log, ends_by: Some("QUIT".to_owned()) }
}

/// The server refuses to run as root.
fn as_its_user(program: &Path) -> (PathBuf, Vec<String>) {
    if !is_root() {
        return (program.to_owned(), Vec::new());
    }
    let user = ["--reuid=postgres", "--regid=postgres", "--clear-groups"].map(str::to_owned);
    let arguments = user.into_iter().chain([program.display().to_string()]);
    ("setpriv".into(), arguments.collect())
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?} failed: {}", command.get_program(), said.trim());
    Ok(String::from_utf8(output.stdout)?)
}

/// The directory with the server's programs; where Debian has them, or the one on the PATH that has them.
fn installed() -> Result<Option<PathBuf>> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut directories: Vec<PathBuf> = versions.map(|it| it.path().join("bin")).collect();
    directories.sort();
    if let Some(found) = directories.into_iter().rev().find(|it| it.join("initdb").exists()) {
        return Ok(Some(found));
    }
    if Command::new("initdb").arg("--version").output().is_ok() {
        return Ok(Some(PathBuf::new()));
    }
    ensure!(!is_ci(), "PostgreSQL is not installed: run scripts/services");
    eprintln!("skipped: PostgreSQL is not installed; scripts/services says how to have it");
    Ok(None)
}

#[expect(clippy::disallowed_methods, reason = "a test asks where it runs")]
fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|it| it == "true")
}
