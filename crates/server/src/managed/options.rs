//! How a managed reconciler runs, apart from which providers it has.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use concert_controllers::managed::registry::Settings;
use concert_store::{Chance, Clock, Store, SystemClock, Work};
use tracing::Dispatch;

use crate::admin::Address;

use super::error::Error;
use super::provider::{self, Dial};
use super::storage::Storage;

/// The name of the lease, unless told otherwise.
pub const LEADER_ELECTION_ID: &str = "managed-reconciler-leader-election";

/// How a managed reconciler runs. Every part has the default of the command line.
#[derive(Clone)]
pub struct Options {
    pub(super) leader: Option<Candidacy>,
    pub(super) metrics: Address,
    pub(super) health: Address,
    pub(super) concurrency: Option<usize>,
    pub(super) poll: Option<Duration>,
    pub(super) timeout: Option<Duration>,
    pub(super) restarts_on_disconnect: bool,
    pub(super) has_objects: bool,
    pub(super) storage: Storage,
    pub(super) cert_dir: Option<PathBuf>,
    pub(super) dial: Option<Dial>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) chance: Chance,
    pub(super) patience: Duration,
    pub(super) logger: Option<Dispatch>,
}

/// How it stands for election.
#[derive(Clone)]
pub(super) struct Candidacy {
    pub id: String,
    pub namespace: Option<String>,
    /// How long a lease is good, how long a leader may go without renewing it, and between tries.
    pub times: Option<[Duration; 3]>,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            leader: Some(Candidacy { id: LEADER_ELECTION_ID.into(), namespace: None, times: None }),
            metrics: Address::Everywhere(8080),
            health: Address::Everywhere(8081),
            concurrency: None,
            poll: None,
            timeout: None,
            restarts_on_disconnect: true,
            has_objects: true,
            storage: Storage::default(),
            cert_dir: None,
            dial: None,
            clock: Arc::new(SystemClock::new()),
            chance: Chance::from_system(),
            patience: Duration::from_secs(30),
            logger: None,
        }
    }

    /// Whether to work only while no other instance does.
    #[must_use]
    pub fn with_leader_election(mut self, is_wanted: bool) -> Self {
        self.leader = if is_wanted { self.leader.or(Self::new().leader) } else { None };
        self
    }

    /// Which lease to stand for. Without a namespace that of the process, or of the kubeconfig's
    /// context. Means nothing without leader election.
    #[must_use]
    pub fn with_lease(mut self, id: impl Into<String>, namespace: Option<String>) -> Self {
        if let Some(leader) = &mut self.leader {
            (leader.id, leader.namespace) = (id.into(), namespace);
        }
        self
    }

    /// How long a lease is good, how long a leader may go without renewing it (less than that), and
    /// how long to wait between tries.
    #[must_use]
    pub fn with_lease_times(mut self, lease: Duration, renew_within: Duration, retry: Duration) -> Self {
        if let Some(leader) = &mut self.leader {
            leader.times = Some([lease, renew_within, retry]);
        }
        self
    }

    /// Where `/metrics` is.
    #[must_use]
    pub fn with_metrics_address(mut self, address: Address) -> Self {
        self.metrics = address;
        self
    }

    /// Where `/healthz` and `/readyz` are.
    #[must_use]
    pub fn with_health_address(mut self, address: Address) -> Self {
        self.health = address;
        self
    }

    /// Most reconciles of one kind at a time, whatever its provider would like.
    #[must_use]
    pub fn with_max_reconciles(mut self, count: usize) -> Self {
        self.concurrency = Some(count);
        self
    }

    /// How often objects are looked at when nothing changes, whatever their provider would like.
    #[must_use]
    pub fn with_poll_interval(mut self, interval: Duration) -> Self {
        self.poll = Some(interval);
        self
    }

    /// How long one look at an object may take with all its calls, whatever its provider would like.
    #[must_use]
    pub fn with_reconcile_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Whether a lost connection stops the controllers of its provider until it is back, and has it
    /// introduce itself again.
    #[must_use]
    pub fn with_restart_on_disconnect(mut self, is_wanted: bool) -> Self {
        self.restarts_on_disconnect = is_wanted;
        self
    }

    /// Whether providers may also be declared as objects.
    #[must_use]
    pub fn with_provider_objects(mut self, is_wanted: bool) -> Self {
        self.has_objects = is_wanted;
        self
    }

    /// Where objects live.
    #[must_use]
    pub fn with_storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// The cluster of this kubeconfig and context, rather than of the one that kubectl would use.
    #[must_use]
    pub fn with_kubeconfig(self, kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        self.with_storage(Storage::Kubernetes { kubeconfig, context })
    }

    /// A store that is open already, and its rows of work where it has them.
    #[must_use]
    pub fn with_store(self, store: Arc<dyn Store>, work: Option<Arc<dyn Work>>) -> Self {
        self.with_storage(Storage::Given { store, work })
    }

    /// The folder with `ca.crt`, `tls.crt` and `tls.key`.
    #[must_use]
    pub fn with_cert_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cert_dir = Some(folder.into());
        self
    }

    /// The way to providers, instead of gRPC: for providers in the same process.
    #[must_use]
    pub fn with_dial(mut self, dial: Dial) -> Self {
        self.dial = Some(dial);
        self
    }

    /// Where time comes from.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How long what runs may take to end when asked to.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Where logs go, rather than to whatever subscriber the program has installed.
    #[must_use]
    pub fn with_logger(mut self, logger: impl Into<Dispatch>) -> Self {
        self.logger = Some(logger.into());
        self
    }

    /// What all controllers are told. Where their work is kept is not known here.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            concurrency: self.concurrency,
            poll: self.poll,
            timeout: self.timeout,
            restarts_on_disconnect: self.restarts_on_disconnect,
            ..Settings::default()
        }
    }

    /// Refuses certificates that cannot be used.
    pub(super) fn check_certificates(&self) -> Result<(), Error> {
        self.cert_dir.as_deref().map_or(Ok(()), provider::check_certificates)
    }

    pub(super) fn dial(&self) -> Dial {
        self.dial.clone().unwrap_or_else(|| provider::grpc(self.cert_dir.clone()))
    }
}
