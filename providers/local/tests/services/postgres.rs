//! A PostgreSQL server in a temporary folder, on a port of loopback.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use concert_model::Object;
use concert_provider::{Configuration, Details};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

const PASSWORD: &str = "it's \"secret\" @/:";

pub struct Cluster {
    folder: TempDir,
    programs: PathBuf,
    pub port: u16,
}

/// A connection that ends with this value.
pub struct Connected {
    pub client: Client,
    _driver: JoinSet<()>,
}

impl std::ops::Deref for Connected {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Cluster {
    /// A new server; none where there is none to start, which is said.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(!super::has("initdb"), "initdb is there, and was not found");
            return None;
        };
        // Its user must be able to get into the folder.
        let folder = tempfile::Builder::new().prefix("concert-pg").tempdir_in("/tmp").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let cluster = Self { folder, programs, port };
        let password = cluster.folder.path().join("password");
        std::fs::write(&password, PASSWORD).unwrap();
        if is_root() {
            let mut chown = Command::new("chown");
            run(chown.args(["-R", "postgres"]).arg(cluster.folder.path()));
        }
        let auth = ["--auth=scram-sha-256", "--username=postgres", "--no-sync", "--encoding=UTF8"];
        let mut initdb = cluster.command("initdb");
        run(initdb.arg("-D").arg(cluster.data()).args(auth).arg("--pwfile").arg(&password));
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories='' -c fsync=off \
             -c log_statement=all"
        );
        let mut start = cluster.command("pg_ctl");
        run(start
            .arg("-D")
            .arg(cluster.data())
            .arg("-l")
            .arg(cluster.log())
            .args(["-w", "-o", &options, "start"]));
        Some(cluster)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Every statement that the server has seen.
    pub fn statements(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap()
    }

    /// The server refuses to run as root.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// The account of its administrator.
    pub fn account(&self) -> Arc<Configuration> {
        account(&self.url())
    }

    /// Where its administrator gets in.
    pub fn url(&self) -> String {
        let encoded: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
        format!("postgres://postgres:{encoded}@127.0.0.1:{}/postgres\n", self.port)
    }

    pub async fn admin(&self, database: &str) -> Connected {
        self.connect("postgres", PASSWORD, database).await.unwrap()
    }

    /// Connects with nothing but connection details, as an application would.
    pub async fn application(&self, details: &Details) -> Result<Connected, tokio_postgres::Error> {
        let text = |name: &str| String::from_utf8(details.get(name).unwrap().to_vec()).unwrap();
        assert_eq!((text("host"), text("port")), ("127.0.0.1".to_owned(), self.port.to_string()));
        self.connect(&text("username"), &text("password"), &text("database")).await
    }

    pub async fn connect(
        &self,
        user: &str,
        password: &str,
        database: &str,
    ) -> Result<Connected, tokio_postgres::Error> {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(self.port).user(user).password(password).dbname(database);
        let (client, connection) = config.connect(NoTls).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move { drop(connection.await) });
        Ok(Connected { client, _driver: driver })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let mut stop = self.command("pg_ctl");
        run(stop.arg("-D").arg(self.data()).args(["-m", "immediate", "-w", "stop"]));
    }
}

/// An account with these credentials.
pub fn account(url: &str) -> Arc<Configuration> {
    let object = json!({"apiVersion": "local.concert.dev/v1alpha1", "kind": "ProviderConfig",
        "metadata": {"name": "default"}});
    Arc::new(Configuration {
        name: "default".into(),
        fingerprint: "1".into(),
        object: Object::from_value(object).unwrap(),
        credentials: Details::new().with("credentials", url),
    })
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The folder with the server's programs: on the PATH, or where Debian has them.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok().into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|it| it.path().join("bin")).collect();
    folders.sort();
    folders.into_iter().rev().find(|it| it.join("initdb").exists()).or_else(|| {
        let is_there = Command::new("initdb").arg("--version").output().is_ok();
        is_there.then(PathBuf::new)
    })
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
