//! One cluster: its servers, and ways to talk to it.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::hold::{Holder, Server};
use crate::{certificates, programs, wait};

/// Longest a server may take to be ready; on a busy machine kube-apiserver needs ten seconds.
const READY_LIMIT: Duration = Duration::from_secs(90);
/// How much of a log is shown when a server fails.
const LOG_LINES: usize = 30;

/// How often a cluster is started whose ports others have taken.
const STARTS_MAX: usize = 3;
/// What a server says of such a port before it ends.
const PORT_TAKEN: &str = "address already in use";

const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";
const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// What runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Also kube-controller-manager, with the garbage collector and the namespace controller only.
    pub with_controllers: bool,
    /// Further arguments for kube-apiserver.
    pub api_server_arguments: Vec<String>,
    /// etcd syncs every commit, as it does outside of tests.
    pub is_synced: bool,
}

/// A running cluster. It ends when it is dropped, and when its process ends, however that happens.
#[derive(Debug)]
pub struct Cluster {
    holder: Mutex<Holder>,
    programs: PathBuf,
    directory: PathBuf,
    url: String,
    etcd_url: String,
    token: String,
    api_server: Server,
}

impl Cluster {
    /// A cluster for this caller alone. None where there can be none, which was said on stderr.
    ///
    /// # Errors
    /// The programs cannot be built, or a server does not become ready.
    pub fn start() -> Result<Option<Self>> {
        Self::start_with(&Options::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_with(options: &Options) -> Result<Option<Self>> {
        let Some(programs) = programs::servers()? else { return Ok(None) };
        let own = programs::own()?;
        Self::start_of(programs, &own, options).map(Some)
    }

    /// The cluster of this process, started by the first who asks. None where there can be none.
    ///
    /// # Panics
    /// As [`Cluster::start`] fails: no test can go on.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        let start = || Self::start().unwrap_or_else(|error| panic!("no cluster for tests: {error:?}"));
        SHARED.get_or_init(start).as_ref()
    }

    /// Starts the programs of a directory, under the parent `own`. Between the moment in which a port is found
    /// free and the one in which a server listens on it somebody else may take it: then with other ports.
    pub(crate) fn start_of(programs: PathBuf, own: &Path, options: &Options) -> Result<Self> {
        for _ in 1..STARTS_MAX {
            match Self::start_once(programs.clone(), own, options) {
                Err(error) if error.to_string().contains(PORT_TAKEN) => {}
                started => return started,
            }
        }
        Self::start_once(programs, own, options)
    }

    fn start_once(programs: PathBuf, own: &Path, options: &Options) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("concert-testbed-").tempdir()?;
        certificates::write(directory.path())?;
        let [api_port, etcd_port, peer_port] = free_ports()?;
        let url = format!("https://127.0.0.1:{api_port}");
        let etcd_url = format!("http://127.0.0.1:{etcd_port}");
        let token = directory.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let holder = Holder::start(own, directory.path())?;
        // From here on the holder removes it.
        let directory = directory.keep();
        let place = Place { programs: &programs, directory: &directory };
        let api_server = place.api_server(api_port, &etcd_url, &options.api_server_arguments);
        let etcd = place.etcd(&etcd_url, peer_port, options.is_synced);
        let controller_manager = place.controller_manager();
        fs::write(directory.join("tokens.csv"), format!("{token},admin,admin,\"system:masters\"\n"))?;
        let holder = Mutex::new(holder);
        let cluster = Self { holder, programs, directory, url, etcd_url, token, api_server };
        cluster.write_kubeconfig()?;
        cluster.holder().start_server(etcd)?;
        cluster.wait_for(ETCD, || Ok(TcpStream::connect(("127.0.0.1", etcd_port)).ok().map(drop)))?;
        cluster.start_api_server()?;
        if options.with_controllers {
            cluster.holder().start_server(controller_manager)?;
        }
        Ok(cluster)
    }

    /// The file that kubectl and other clients find this cluster by, as its administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// Where kube-apiserver listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where etcd listens, without TLS.
    pub fn etcd_url(&self) -> &str {
        &self.etcd_url
    }

    /// The bearer token of the administrator.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The certificate of the authority that signed kube-apiserver's, as a file in PEM.
    pub fn authority(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    /// The program kubectl.
    pub fn kubectl_program(&self) -> PathBuf {
        self.programs.join("kubectl")
    }

    /// Runs kubectl as the administrator and answers with what it printed.
    ///
    /// # Errors
    /// It failed; the error is what it said.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_with(arguments, "")
    }

    /// The same, with something to read from stdin (`-f -`).
    ///
    /// # Errors
    /// As [`Cluster::kubectl`].
    pub fn kubectl_with(&self, arguments: &[&str], stdin: &str) -> Result<String> {
        let mut command = Command::new(self.kubectl_program());
        command.arg("--kubeconfig").arg(self.kubeconfig()).args(arguments);
        // Its cache of kinds would otherwise be that of the user.
        command.env("KUBECACHEDIR", self.directory.join("kubectl-cache"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot run kubectl")?;
        if let Some(mut input) = child.stdin.take() {
            // One that does not read everything has its reasons, and says so itself.
            let _ = input.write_all(stdin.as_bytes());
        }
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {} failed: {}", arguments.join(" "), said.trim());
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Ends kube-apiserver at once, as a crash would.
    ///
    /// # Errors
    /// It is not running.
    pub fn stop_api_server(&self) -> Result<()> {
        self.holder().stop_server(API_SERVER)
    }

    /// Starts kube-apiserver and waits until it is ready.
    ///
    /// # Errors
    /// It is running already, or does not become ready.
    pub fn start_api_server(&self) -> Result<()> {
        self.holder().start_server(self.api_server.clone())?;
        let address = self.url.trim_start_matches("https://").to_owned();
        self.wait_for(API_SERVER, || Ok(TcpStream::connect(&address).ok().map(drop)))?;
        self.wait_for(API_SERVER, || Ok(self.kubectl(&["get", "--raw", "/readyz"]).ok().map(drop)))
    }

    /// Ends kube-apiserver and starts it again.
    ///
    /// # Errors
    /// As [`Cluster::start_api_server`].
    pub fn restart_api_server(&self) -> Result<()> {
        self.stop_api_server()?;
        self.start_api_server()
    }

    fn holder(&self) -> std::sync::MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for(&self, server: &str, mut is_ready: impl FnMut() -> Result<Option<()>>) -> Result<()> {
        let look = || {
            let found = is_ready()?;
            if found.is_none() && !self.holder().is_running(server)? {
                bail!("{server} has ended\n{}", self.end_of_log(server));
            }
            Ok(found)
        };
        let ready = wait::until(READY_LIMIT, look)?;
        ready.with_context(|| {
            format!("{server} is not ready after {} s\n{}", READY_LIMIT.as_secs(), self.end_of_log(server))
        })
    }

    fn end_of_log(&self, server: &str) -> String {
        let log = fs::read_to_string(log_of(&self.directory, server)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    fn write_kubeconfig(&self) -> Result<()> {
        // JSON is YAML.
        let config = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "testbed",
            "clusters": [{"name": "testbed",
                "cluster": {"server": self.url, "certificate-authority": self.authority()}}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "testbed",
                "context": {"cluster": "testbed", "user": "admin", "namespace": "default"}}],
        });
        Ok(fs::write(self.kubeconfig(), serde_json::to_string_pretty(&config)?)?)
    }
}

fn log_of(directory: &Path, server: &str) -> PathBuf {
    directory.join(format!("{server}.log"))
}

/// Ports that nobody listens on. Held all at once while they are looked for, so that they differ.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let listeners: Vec<TcpListener> =
        (0..N).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<Result<_, _>>()?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

/// Where programs are and where they may write.
struct Place<'a> {
    programs: &'a Path,
    directory: &'a Path,
}

impl Place<'_> {
    fn server(&self, name: &str, arguments: Vec<String>) -> Server {
        let (program, log) = (self.programs.join(name), log_of(self.directory, name));
        Server { name: name.to_owned(), program, arguments, log, ends_by: None }
    }

    fn file(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    fn etcd(&self, url: &str, peer_port: u16, is_synced: bool) -> Server {
        let peer = format!("http://127.0.0.1:{peer_port}");
        let mut arguments = vec![
            format!("--data-dir={}", self.file("etcd")),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--log-level=warn".to_owned(),
        ];
        if !is_synced {
            // Nothing here has to survive a power cut; and a lone member elects itself, and need not wait a
            // second to hear of others.
            let hasty = ["--unsafe-no-fsync", "--heartbeat-interval=10", "--election-timeout=100"];
            arguments.extend(hasty.map(str::to_owned));
        }
        self.server(ETCD, arguments)
    }

    fn api_server(&self, port: u16, etcd_url: &str, more: &[String]) -> Server {
        let mut arguments = vec![
            format!("--etcd-servers={etcd_url}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", self.file("server.crt")),
            format!("--tls-private-key-file={}", self.file("server.key")),
            format!("--client-ca-file={}", self.file("ca.crt")),
            format!("--token-auth-file={}", self.file("tokens.csv")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.file("accounts.pub")),
            format!("--service-account-signing-key-file={}", self.file("accounts.key")),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            // There is no controller that would make the accounts this one waits for.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--enable-priority-and-fairness=false".to_owned(),
            "--profiling=false".to_owned(),
        ];
        arguments.extend_from_slice(more);
        self.server(API_SERVER, arguments)
    }

    fn controller_manager(&self) -> Server {
        let arguments = vec![
            format!("--kubeconfig={}", self.file("kubeconfig")),
            // The last puts roles together from others, as some manifests of ours want it.
            "--controllers=garbage-collector-controller,namespace-controller,clusterrole-aggregation-controller"
                .to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        self.server(CONTROLLER_MANAGER, arguments)
    }
}
