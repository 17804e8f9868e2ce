//! What a control plane is told: by flags, by `CONCERT_*` variables and by a file, in that order.
//!
//! All three say the same things, so each is one [`Layer`]; what none of them says has a default.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use concert_api::listen::{Limits, Rate};
use concert_model::duration;
use concert_model::no8s::Rules;
use serde::{Deserialize, Serialize};

use super::logins::{Logins, Secrets};
use super::members::Sharing;
use super::only::{Elsewhere, Only, Said};
use super::storage::{Storage, StoreUrl};
use crate::admin::Address;
use crate::config::variable;
use crate::managed::config::{Error, parse};
use crate::managed::{ControllerConfig, ProviderConfig};

/// Where the API is, unless told otherwise.
pub const LISTEN: &str = "127.0.0.1:8000";
/// Shortest lease of a replica: it must be able to renew it a few times.
const LEASE_MIN: Duration = Duration::from_secs(2);
/// Where metrics and probes are, unless told otherwise.
pub const ADMIN_LISTEN: &str = "127.0.0.1:8001";

/// What is logged, unless told otherwise.
const LOG_LEVEL: &str = "info";
/// How much can be logged, least first.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// One source of settings. Everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Layer {
    /// Where the store, its key and the certificates are kept.
    pub data_dir: Option<PathBuf>,
    /// The database that the objects are in, instead of a file there: `postgres://…`.
    pub store: Option<StoreUrl>,
    /// The keys that the database is sealed with, instead of those there: the same for every replica.
    pub key_file: Option<PathBuf>,
    /// With a database: one replica has all the work and the others stand by.
    pub leader_election: Option<bool>,
    /// With a database: where the other replicas reach this one, as in `https://host:port`.
    pub advertise: Option<String>,
    /// With a database: how long the others wait before they take the work of a replica that is gone.
    pub member_lease: Option<String>,
    /// `ADDRESS:PORT` of the API.
    pub listen: Option<String>,
    /// `ADDRESS:PORT` of metrics and probes; `0` for nowhere.
    pub admin_listen: Option<String>,
    /// No authentication, plain HTTP, loopback only.
    pub dev: Option<bool>,
    /// A certificate of your own for the API, reloaded when it changes.
    pub tls_cert_file: Option<PathBuf>,
    /// Its key.
    pub tls_key_file: Option<PathBuf>,
    /// Further names and addresses for the certificate that is made otherwise.
    pub tls_names: Option<Vec<String>>,
    /// Certificates for the way to providers.
    pub cert_dir: Option<PathBuf>,
    /// How often a managed resource is looked at when nothing changes.
    pub poll_interval: Option<String>,
    /// Most reconciles of one kind at a time.
    pub max_reconcile_rate: Option<usize>,
    /// How long one reconcile may take.
    pub reconcile_timeout: Option<String>,
    /// Requests a second that one address may make; 0 for any number.
    pub client_rate: Option<u32>,
    /// The plugin host: `auto`, `off`, or the program.
    pub plugins: Option<String>,
    /// Which part runs here: `inventory`, `mothership`, or everything.
    pub only: Option<String>,
    /// Where the inventory is, if it is elsewhere.
    pub inventory: Option<String>,
    /// A file with the token to get in there with.
    pub inventory_token_file: Option<PathBuf>,
    /// A file with the certificates to verify it with.
    pub inventory_ca: Option<PathBuf>,
    /// How long a resource waits after its first failure.
    pub backoff_base_delay: Option<String>,
    /// How long it waits at most.
    pub backoff_max_delay: Option<String>,
    /// By which part of it that wait is longer or shorter.
    pub backoff_jitter_factor: Option<String>,
    /// How often a resource is looked at that is neither ready nor failed.
    pub reconcile_interval: Option<String>,
    /// How many hours a login lasts.
    pub jwt_expiry_hours: Option<String>,
    /// What is logged: a level, or levels of modules.
    pub log_level: Option<String>,
    /// The form of log lines: `text` or `json`.
    pub log_format: Option<String>,
    /// What no file or flag says.
    #[serde(skip)]
    pub secrets: Secrets,
    /// Provider servers, as in the configuration of the managed reconciler.
    pub providers: Option<Vec<ProviderConfig>>,
}

/// Everything, decided and checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the store, its key and the certificates are kept.
    pub data_dir: PathBuf,
    /// Where the objects are.
    pub storage: Storage,
    /// How this replica takes part, where there are several.
    pub sharing: Sharing,
    /// Where the API is.
    pub listen: SocketAddr,
    /// Where metrics and probes are.
    pub admin_listen: Address,
    /// No authentication, plain HTTP, loopback only.
    pub is_dev: bool,
    /// Certificate and key of the user's own.
    pub tls_files: Option<(PathBuf, PathBuf)>,
    /// Further names for the certificate that is made otherwise.
    pub tls_names: Vec<String>,
    /// Certificates for the way to providers.
    pub cert_dir: Option<PathBuf>,
    /// How often a managed resource is looked at when nothing changes.
    pub poll_interval: Option<Duration>,
    /// Most reconciles of one kind at a time.
    pub max_reconcile_rate: Option<usize>,
    /// How long one reconcile may take.
    pub reconcile_timeout: Option<Duration>,
    /// What clients may have at once, and how often they may ask.
    pub limits: Limits,
    /// The plugin host that is started and watched over.
    pub plugins: Plugins,
    /// Which part runs here.
    pub only: Only,
    /// The inventory, if it is elsewhere.
    pub inventory: Option<Elsewhere>,
    /// How long resources wait after what.
    pub rules: Rules,
    /// How people log in.
    pub logins: Logins,
    /// What is logged: a level, or levels of modules.
    pub log_level: String,
    /// The form of log lines, `text` or `json`; none if that depends on where they go.
    pub log_format: Option<String>,
    /// Provider servers.
    pub providers: ControllerConfig,
}

/// Which plugin host runs beside the control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Plugins {
    /// The one that is installed, if any.
    #[default]
    Auto,
    /// None.
    Off,
    /// This program.
    Program(PathBuf),
}

impl Layer {
    /// Reads a file of JSON or YAML.
    ///
    /// # Errors
    /// [`Error::Unreadable`], [`Error::Malformed`] with the field and the line.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let unreadable = |error| Error::Unreadable { path: path.to_owned(), error };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        parse(&text).map_err(|what| Error::Malformed { origin: path.display().to_string(), what })
    }

    /// What the variables say.
    ///
    /// # Errors
    /// [`Error::Invalid`] for one that makes no sense.
    pub fn from_environment() -> Result<Self, Error> {
        Self::from_variables(variable)
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let text = |name: &str| variable(name).filter(|it| !it.is_empty());
        let path = |name: &str| text(name).map(PathBuf::from);
        let truth = |name: &str| match text(name).as_deref() {
            None => Ok(None),
            Some("1" | "true") => Ok(Some(true)),
            Some("0" | "false") => Ok(Some(false)),
            Some(other) => Err(Error::Invalid(vec![format!("{name}: {other:?} must be true or false")])),
        };
        let dev = truth("CONCERT_DEV")?;
        let number = |name: &str, rule: &str| match text(name).map(|it| it.parse::<u32>()) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(Error::Invalid(vec![format!("{name}: must be a whole number {rule}")])),
        };
        let rate = number("CONCERT_MAX_RECONCILE_RATE", "above 0")?;
        Ok(Self {
            data_dir: path("CONCERT_DATA_DIR"),
            store: text("CONCERT_STORE").map(StoreUrl::from),
            key_file: path("CONCERT_KEY_FILE"),
            leader_election: truth("CONCERT_LEADER_ELECTION")?,
            advertise: text("CONCERT_ADVERTISE"),
            member_lease: text("CONCERT_MEMBER_LEASE"),
            listen: text("CONCERT_LISTEN").or_else(|| listen_of(text("API_HOST"), text("API_PORT"))),
            admin_listen: text("CONCERT_ADMIN_LISTEN"),
            dev,
            tls_cert_file: path("CONCERT_TLS_CERT_FILE"),
            tls_key_file: path("CONCERT_TLS_KEY_FILE"),
            tls_names: text("CONCERT_TLS_NAMES").map(|it| it.split(',').map(str::to_owned).collect()),
            cert_dir: path("CONCERT_CERT_DIR"),
            poll_interval: text("CONCERT_POLL_INTERVAL"),
            max_reconcile_rate: rate.and_then(|it| usize::try_from(it).ok()),
            reconcile_timeout: text("CONCERT_RECONCILE_TIMEOUT"),
            client_rate: number("CONCERT_CLIENT_RATE", "from 0 on")?,
            plugins: text("CONCERT_PLUGINS"),
            only: text("CONCERT_ONLY"),
            inventory: text("CONCERT_INVENTORY"),
            inventory_token_file: path("CONCERT_INVENTORY_TOKEN_FILE"),
            inventory_ca: path("CONCERT_INVENTORY_CA"),
            // As the operator of no8s calls them.
            backoff_base_delay: text("BACKOFF_BASE_DELAY"),
            backoff_max_delay: text("BACKOFF_MAX_DELAY"),
            backoff_jitter_factor: text("BACKOFF_JITTER_FACTOR"),
            reconcile_interval: text("RECONCILE_INTERVAL"),
            jwt_expiry_hours: text("JWT_EXPIRY_HOURS"),
            log_level: text("CONCERT_LOG_LEVEL").or_else(|| level_of(&text("LOG_LEVEL")?)),
            log_format: text("CONCERT_LOG_FORMAT"),
            secrets: Secrets::from_variables(text),
            providers: None,
        })
    }

    /// This layer, and where it says nothing the one below.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            data_dir: self.data_dir.or(below.data_dir),
            store: self.store.or(below.store),
            key_file: self.key_file.or(below.key_file),
            leader_election: self.leader_election.or(below.leader_election),
            advertise: self.advertise.or(below.advertise),
            member_lease: self.member_lease.or(below.member_lease),
            listen: self.listen.or(below.listen),
            admin_listen: self.admin_listen.or(below.admin_listen),
            dev: self.dev.or(below.dev),
            tls_cert_file: self.tls_cert_file.or(below.tls_cert_file),
            tls_key_file: self.tls_key_file.or(below.tls_key_file),
            tls_names: self.tls_names.or(below.tls_names),
            cert_dir: self.cert_dir.or(below.cert_dir),
            poll_interval: self.poll_interval.or(below.poll_interval),
            max_reconcile_rate: self.max_reconcile_rate.or(below.max_reconcile_rate),
            reconcile_timeout: self.reconcile_timeout.or(below.reconcile_timeout),
            client_rate: self.client_rate.or(below.client_rate),
            plugins: self.plugins.or(below.plugins),
            only: self.only.or(below.only),
            inventory: self.inventory.or(below.inventory),
            inventory_token_file: self.inventory_token_file.or(below.inventory_token_file),
            inventory_ca: self.inventory_ca.or(below.inventory_ca),
            backoff_base_delay: self.backoff_base_delay.or(below.backoff_base_delay),
            backoff_max_delay: self.backoff_max_delay.or(below.backoff_max_delay),
            backoff_jitter_factor: self.backoff_jitter_factor.or(below.backoff_jitter_factor),
            reconcile_interval: self.reconcile_interval.or(below.reconcile_interval),
            jwt_expiry_hours: self.jwt_expiry_hours.or(below.jwt_expiry_hours),
            log_level: self.log_level.or(below.log_level),
            log_format: self.log_format.or(below.log_format),
            secrets: self.secrets.over(below.secrets),
            providers: self.providers.or(below.providers),
        }
    }

    /// Fills in the defaults and checks every rule.
    ///
    /// # Errors
    /// [`Error::Invalid`], with everything that is wrong.
    pub fn resolve(self) -> Result<Config, Error> {
        let mut findings = Vec::new();
        let is_dev = self.dev.unwrap_or_default();
        let listen = self.listen.as_deref().unwrap_or(LISTEN);
        let listen = socket(listen).unwrap_or_else(|| {
            findings.push(format!("listen: {listen:?} must be ADDRESS:PORT"));
            SocketAddr::from(([127, 0, 0, 1], 0))
        });
        if is_dev && !listen.ip().is_loopback() {
            findings.push(format!("listen: with dev it must be a loopback address, not {listen}"));
        }
        let storage = Storage::resolve(self.store.as_ref(), self.key_file, &mut findings);
        let is_advertised = self.advertise.is_some();
        let sharing = Sharing {
            is_leader_election: self.leader_election.unwrap_or_default(),
            advertise: self.advertise.filter(|it| is_base_url(it, &mut findings)),
            lease: time("memberLease", self.member_lease.as_deref(), &mut findings),
        };
        if sharing.lease.is_some_and(|it| it < LEASE_MIN) {
            findings.push("memberLease: must be at least 2s".to_owned());
        }
        if matches!(storage, Storage::Folder) && sharing != Sharing::default() {
            findings.push(
                "leaderElection, advertise and memberLease mean nothing without store: a file has one process"
                    .to_owned(),
            );
        }
        let admin = self.admin_listen.as_deref().unwrap_or(ADMIN_LISTEN).parse();
        let admin_listen = admin.unwrap_or_else(|error: crate::admin::AddressError| {
            findings.push(format!("adminListen: {error}"));
            Address::Nowhere
        });
        if is_dev && !admin_listen.is_local() {
            findings.push(format!("adminListen: with dev it must be a loopback address, not {admin_listen}"));
        }
        let tls_files = match (self.tls_cert_file, self.tls_key_file) {
            (Some(_), _) | (None, Some(_)) if is_dev => {
                findings.push("tlsCertFile: means nothing with dev, which speaks plain HTTP".to_owned());
                None
            }
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => {
                findings.push("tlsKeyFile: must be set together with tlsCertFile".to_owned());
                None
            }
            (None, Some(_)) => {
                findings.push("tlsCertFile: must be set together with tlsKeyFile".to_owned());
                None
            }
        };
        let poll_interval = time("pollInterval", self.poll_interval.as_deref(), &mut findings);
        let reconcile_timeout = time("reconcileTimeout", self.reconcile_timeout.as_deref(), &mut findings);
        if self.max_reconcile_rate == Some(0) {
            findings.push("maxReconcileRate: must be above 0".to_owned());
        }
        let mut rules = Rules::default();
        let mut wait = |field, text: Option<&str>, place: &mut Duration| {
            if let Some(time) = text.and_then(|it| seconds(field, it, &mut findings)) {
                *place = time;
            }
        };
        wait("backoffBaseDelay", self.backoff_base_delay.as_deref(), &mut rules.backoff_base);
        wait("backoffMaxDelay", self.backoff_max_delay.as_deref(), &mut rules.backoff_max);
        wait("reconcileInterval", self.reconcile_interval.as_deref(), &mut rules.interval);
        match self.backoff_jitter_factor.as_deref().map(str::parse) {
            None => {}
            Some(Ok(factor)) if (0.0..=1.0).contains(&factor) => rules.jitter = factor,
            Some(_) => findings.push("backoffJitterFactor: must be a number from 0 to 1".to_owned()),
        }
        let plugins = match self.plugins.as_deref() {
            None | Some("auto") => Plugins::Auto,
            Some("off") => Plugins::Off,
            Some(path) => Plugins::Program(path.into()),
        };
        let said = Said {
            only: self.only,
            inventory: self.inventory,
            token_file: self.inventory_token_file,
            ca_file: self.inventory_ca,
        };
        let (only, inventory) = said.resolve(&mut findings);
        // What remote workers ask is passed on to the one replica that lends: the others must reach it.
        let is_reached = is_advertised || !listen.ip().is_unspecified();
        if matches!(storage, Storage::Database(..)) && only.has_workers() && !is_reached {
            findings.push(format!(
                "advertise: must be set with store where listen is {listen}, at which no other replica finds \
                 this one: pass --advertise https://HOST:PORT"
            ));
        }
        let logins = Logins::resolve(self.secrets, self.jwt_expiry_hours.as_deref(), &mut findings);
        let log_level = self.log_level.unwrap_or_else(|| LOG_LEVEL.to_owned());
        let is_level = |part: &str| {
            let level = part.rsplit('=').next().unwrap_or_default();
            LEVELS.iter().any(|it| it.eq_ignore_ascii_case(level))
        };
        if !log_level.split(',').all(is_level) {
            let levels = LEVELS.join(", ");
            findings.push(format!(
                "logLevel: {log_level:?} must be one of {levels}, also per module as in info,concert_engine=debug"
            ));
        }
        if let Some(other) = self.log_format.as_deref().filter(|it| !matches!(*it, "text" | "json")) {
            findings.push(format!("logFormat: {other:?} must be text or json"));
        }
        let providers = ControllerConfig { providers: self.providers.unwrap_or_default() };
        if let Err(Error::Invalid(more)) = providers.check() {
            findings.extend(more);
        }
        let data_dir = self.data_dir.or_else(crate::config::data_folder);
        let data_dir = data_dir.unwrap_or_else(|| {
            findings.push("dataDir: must be set, for there is no home directory to put it in".to_owned());
            PathBuf::new()
        });
        if !findings.is_empty() {
            return Err(Error::Invalid(findings));
        }
        Ok(Config {
            data_dir,
            storage,
            sharing,
            listen,
            admin_listen,
            is_dev,
            tls_files,
            tls_names: self.tls_names.unwrap_or_default(),
            cert_dir: self.cert_dir,
            poll_interval,
            max_reconcile_rate: self.max_reconcile_rate,
            reconcile_timeout,
            limits: limits(self.client_rate),
            plugins,
            only,
            inventory,
            rules,
            logins,
            log_level,
            log_format: self.log_format,
            providers,
        })
    }
}

/// The usual limits, but for the rate. Twice as much may come at once.
fn limits(client_rate: Option<u32>) -> Limits {
    let usual = Limits::default();
    let rate = match client_rate {
        None => usual.rate,
        Some(0) => None,
        Some(per_second) => Some(Rate { per_second, burst: per_second.saturating_mul(2) }),
    };
    Limits { rate, ..usual }
}

fn socket(text: &str) -> Option<SocketAddr> {
    match text.parse::<Address>().ok()? {
        Address::Nowhere => None,
        Address::Everywhere(port) => Some(SocketAddr::from(([0, 0, 0, 0], port))),
        Address::At(address) => Some(address),
    }
}

/// The address that two variables of no8s make up; none if neither is set.
fn listen_of(host: Option<String>, port: Option<String>) -> Option<String> {
    if host.is_none() && port.is_none() {
        return None;
    }
    let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
    let port = port.unwrap_or_else(|| "8000".to_owned());
    // There it is a host alone, so nobody puts it in brackets.
    let is_bare = host.parse::<std::net::Ipv6Addr>().is_ok();
    Some(if is_bare { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

/// Whether others can be sent to this address; what is wrong with it goes to `findings`.
fn is_base_url(text: &str, findings: &mut Vec<String>) -> bool {
    let uri: Option<http::Uri> = text.parse().ok();
    let is_one = uri.is_some_and(|it| {
        matches!(it.scheme_str(), Some("http" | "https"))
            && it.host().is_some()
            && matches!(it.path(), "" | "/")
    });
    if !is_one {
        findings.push(format!("advertise: {text:?} must be http://HOST:PORT or https://HOST:PORT"));
    }
    is_one
}

/// What a level of Python is called here; none for a word that is none, for others read that variable too.
fn level_of(python: &str) -> Option<String> {
    let level = match &*python.to_ascii_lowercase() {
        "critical" | "fatal" => "error",
        "warning" => "warn",
        other => LEVELS.into_iter().find(|it| *it == other)?,
    };
    Some(level.to_owned())
}

/// A time in seconds, as the variables of no8s have it, or with its unit.
fn seconds(field: &str, text: &str, findings: &mut Vec<String>) -> Option<Duration> {
    match text.parse().ok().map(Duration::try_from_secs_f64) {
        Some(Ok(time)) if !time.is_zero() => Some(time),
        Some(_) => {
            findings.push(format!("{field}: must be a number of seconds above 0"));
            None
        }
        None => time(field, Some(text), findings),
    }
}

fn time(field: &str, text: Option<&str>, findings: &mut Vec<String>) -> Option<Duration> {
    let text = text?;
    match duration::parse(text) {
        Ok(time) if !time.is_zero() => Some(time),
        Ok(_) => {
            findings.push(format!("{field}: must be longer than 0s"));
            None
        }
        Err(rule) => {
            findings.push(format!("{field}: {rule}"));
            None
        }
    }
}

#[cfg(test)]
mod tests;
