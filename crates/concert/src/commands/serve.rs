//! `concert serve`: a control plane in one folder.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use concert_server::serve::{Config, Error, Layer, Plane, StoreUrl};

use super::Run;
use crate::cli::say;
use crate::client::Flags;
use crate::exit::Exit;
use crate::logs;
use crate::signals::until_told;

#[derive(clap::Args)]
pub struct Serve {
    #[command(flatten)]
    pub settings: Settings,
}

/// What a control plane is told on the command line. The same can be said with `CONCERT_*` variables and in
/// a file; the command line counts first, the file last.
#[derive(clap::Args)]
pub struct Settings {
    /// Where the store, its key and the certificates are kept [default: ~/.local/share/concert]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Keep objects in this database, together with other replicas: postgres://USER:PASSWORD@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Keys that the database is sealed with, the same for all replicas [default: concert.key of --data-dir]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// With --store: one replica has all the work and the others stand by, instead of sharing it
    #[arg(long)]
    leader_election: bool,
    /// With --store: where other replicas reach this one; needed if --listen is every address [default: the address of --listen]
    #[arg(long, value_name = "URL")]
    advertise: Option<String>,
    /// With --store: how long others wait before they take the work of a replica that is gone [default: 15s]
    #[arg(long, value_name = "DURATION")]
    member_lease: Option<String>,
    /// Where the API is [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// Where metrics and probes are; 0 for nowhere [default: 127.0.0.1:8001]
    #[arg(long, value_name = "ADDRESS:PORT")]
    admin_listen: Option<String>,
    /// No authentication, plain HTTP, loopback only: for development
    #[arg(long)]
    dev: bool,
    /// A file with settings and providers, in JSON or YAML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A certificate of your own for the API, reloaded when it changes
    #[arg(long, value_name = "FILE")]
    tls_cert_file: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE")]
    tls_key_file: Option<PathBuf>,
    /// Further names and addresses for the certificate that is made otherwise
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tls_names: Option<Vec<String>>,
    /// Certificates for the way to providers: ca.crt, or tls.crt and tls.key, or all three
    #[arg(long, value_name = "DIR")]
    cert_dir: Option<PathBuf>,
    /// How often a managed resource is looked at when nothing changes [default: 1m0s]
    #[arg(long, value_name = "DURATION")]
    poll_interval: Option<String>,
    /// Most reconciles of one kind at a time [default: 10]
    #[arg(long, value_name = "COUNT")]
    max_reconcile_rate: Option<usize>,
    /// How long one reconcile may take [default: 1m0s]
    #[arg(long, value_name = "DURATION")]
    reconcile_timeout: Option<String>,
    /// Requests a second that one address may make, 0 for any number [default: 10000]
    #[arg(long, value_name = "COUNT")]
    client_rate: Option<u32>,
    /// The plugin host to run: auto (if one is installed), off, or a program [default: auto]
    #[arg(long, value_name = "auto|off|PATH")]
    plugins: Option<String>,
    /// Run a part: inventory, or mothership with the inventory elsewhere [default: everything]
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Where the inventory is, with --only mothership
    #[arg(long, value_name = "URL")]
    inventory: Option<String>,
    /// A file with the token to get in there with, read again when it changes
    #[arg(long, value_name = "FILE")]
    inventory_token_file: Option<PathBuf>,
    /// A file with the certificates to verify it with
    #[arg(long, value_name = "FILE")]
    inventory_ca: Option<PathBuf>,
    /// What to log: error, warn, info, debug or trace, also per module (info,concert_engine=debug)
    /// [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// The form of log lines: text or json [default: text on a terminal, json otherwise]
    #[arg(long, value_name = "FORM", value_parser = ["text", "json"])]
    log_format: Option<String>,
}

impl Settings {
    /// The command line over the variables over the file, checked.
    pub fn resolve(self) -> anyhow::Result<Config> {
        let named = || concert_server::config::variable("CONCERT_CONFIG").map(PathBuf::from);
        let file = match &self.config.or_else(named) {
            Some(path) => Layer::read(path).map_err(concert_server::serve::Error::from)?,
            None => Layer::default(),
        };
        let flags = Layer {
            data_dir: self.data_dir,
            store: self.store.map(StoreUrl::from),
            key_file: self.key_file,
            leader_election: self.leader_election.then_some(true),
            advertise: self.advertise,
            member_lease: self.member_lease,
            listen: self.listen,
            admin_listen: self.admin_listen,
            dev: self.dev.then_some(true),
            tls_cert_file: self.tls_cert_file,
            tls_key_file: self.tls_key_file,
            tls_names: self.tls_names,
            cert_dir: self.cert_dir,
            poll_interval: self.poll_interval,
            max_reconcile_rate: self.max_reconcile_rate,
            reconcile_timeout: self.reconcile_timeout,
            client_rate: self.client_rate,
            plugins: self.plugins,
            only: self.only,
            inventory: self.inventory,
            inventory_token_file: self.inventory_token_file,
            inventory_ca: self.inventory_ca,
            log_level: self.log_level,
            log_format: self.log_format,
            ..Layer::default()
        };
        let variables = Layer::from_environment().map_err(concert_server::serve::Error::from)?;
        let config = flags.over(variables).over(file).resolve();
        Ok(config.map_err(concert_server::serve::Error::from)?)
    }
}

impl Run for Serve {
    const NAME: &'static str = "serve";
    const ABOUT: &'static str = "Run a control plane: store, controllers and an API, in one folder";

    fn run(self, _: &Flags) -> anyhow::Result<Exit> {
        let config = self.settings.resolve()?;
        let is_terminal = std::io::stderr().is_terminal();
        let usual = if is_terminal { "text" } else { "json" };
        logs::start(&config.log_level, config.log_format.as_deref().unwrap_or(usual))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(until_told(async |shutdown| {
            let running = Plane::new(config).start().await?;
            if let Some(kubeconfig) = running.first_way_in() {
                say(&welcome(kubeconfig));
            }
            running.run(shutdown).await;
            Ok::<(), Error>(())
        }))?;
        Ok(Exit::Done)
    }
}

/// How the administrator gets in. For people, so it is no line of the log.
fn welcome(kubeconfig: &Path) -> String {
    format!(
        "A new control plane. Its administrator gets in with
  export KUBECONFIG={}
  concert get namespaces       # or kubectl
This is said once: the file has the only copy of the token.",
        kubeconfig.display()
    )
}
