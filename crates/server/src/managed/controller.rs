//! The whole: what starts in which order, and stops in which.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use concert_controllers::managed::event::StoreRecorder;
use concert_controllers::managed::metrics::Metrics;
use concert_controllers::managed::registry::{Parts, Rank, Registry, Settings};
use concert_engine::leader::{Duty, State};
use concert_engine::{Authority, Engine, OnExit, Shutdown, Spawn, Tasks, TokioSpawn, Watched};
use concert_store::{Clock, Store};
use prometheus_client::registry::Registry as Numbers;
use tracing::instrument::WithSubscriber;
use tracing::{Dispatch, info};

use crate::admin::{self, Listener, Probes, Readiness};
use crate::config;
use crate::upkeep::Upkeep;

use super::config::ControllerConfig;
use super::duty::Reconciling;
use super::error::Error;
use super::metrics::Surroundings;
use super::options::Options;
use super::storage::Opened;
use super::{leader, provider};

/// What the servers of probes and metrics may take beyond the patience for controllers.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// A managed reconciler that can be started.
pub struct Controller {
    config: ControllerConfig,
    options: Options,
}

/// A managed reconciler that runs.
pub struct Running {
    store: Arc<dyn Store>,
    tasks: Tasks,
    /// Asks the election to end its duty and to give the lease free.
    retire: Shutdown,
    duty: Arc<Reconciling>,
    election: Option<Arc<Watched<State>>>,
    clock: Arc<dyn Clock>,
    patience: Duration,
    health: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
    logger: Option<Dispatch>,
}

impl Controller {
    /// A reconciler for these providers.
    pub fn new(config: ControllerConfig, options: Options) -> Self {
        Self { config, options }
    }

    /// Starts everything, or says why not and leaves nothing behind.
    ///
    /// # Errors
    /// Any [`enum@Error`]. A provider that cannot be reached is none: it is tried until it can.
    pub async fn start(self) -> Result<Running, Error> {
        let logger = self.options.logger.clone();
        match logger {
            Some(logger) => self.begin().with_subscriber(logger).await,
            None => self.begin().await,
        }
    }

    async fn begin(self) -> Result<Running, Error> {
        let Self { config, options } = self;
        config.check()?;
        if config.providers.is_empty() {
            tracing::info!("no providers are configured: waiting for Provider objects");
        }
        options.check_certificates()?;
        let dial = options.dial();
        let providers = config.providers.iter().enumerate();
        let declarations =
            providers.map(|(place, it)| provider::declaration(it, Rank::Configured(place), &dial));
        let declarations = declarations.collect::<Result<Vec<_>, _>>()?;
        provider::warn_of_plain_text(config.providers.iter());

        // Before the store: whoever cannot listen need not connect.
        let health = Listener::bind(&options.health).await?;
        let metrics = Listener::bind(&options.metrics).await?;
        let (health_at, metrics_at) =
            (health.as_ref().map(Listener::address), metrics.as_ref().map(Listener::address));

        let clock = options.clock.clone();
        let tasks = Tasks::new(spawn(&options), clock.clone());
        let opened = options.storage.open(&clock, &options.chance, &tasks).await?;
        let candidate = match &options.leader {
            None => None,
            Some(it) => Some(leader::election(it, &options.storage, &opened, &clock, &options.chance)?),
        };

        let parts = parts(&options, &opened, &tasks);
        let state = candidate.as_ref().map(concert_engine::leader::Election::state);
        let numbers = numbers(&options, &parts, &opened, state.as_ref());
        let objects = options.has_objects.then_some(dial);
        let duty = Reconciling::new(parts, declarations, objects, options.patience)
            .keeping(opened.own.map(Upkeep::new));
        let duty = Arc::new(duty);
        let running = Running {
            store: opened.store,
            retire: tasks.shutdown().child(),
            tasks,
            duty,
            election: state,
            clock,
            patience: options.patience,
            health: health_at,
            metrics: metrics_at,
            logger: options.logger.clone(),
        };
        let tasks = &running.tasks;
        if let Some(listener) = health {
            listener.serve("probes", admin::probes(running.probes()), tasks);
        }
        if let Some(listener) = metrics {
            listener.serve("metrics", admin::metrics(Arc::new(numbers)), tasks);
        }
        match candidate {
            None => running.duty.begin(Authority::Alone),
            Some(election) => {
                let (duty, retire) = (running.duty.clone(), running.retire.clone());
                tasks.spawn("election", OnExit::Stop, election.run(duty, retire));
            }
        }
        Ok(running)
    }

    /// Starts, runs until `shutdown` or until something dies that nothing works without, and stops.
    ///
    /// # Errors
    /// As [`Controller::start`].
    pub async fn run(self, shutdown: &Shutdown) -> Result<(), Error> {
        let running = self.start().await?;
        tokio::select! {
            () = shutdown.requested() => {}
            () = running.died() => {}
        }
        running.stop().await;
        Ok(())
    }
}

impl Running {
    /// Where `/healthz` and `/readyz` are.
    pub fn health_address(&self) -> Option<SocketAddr> {
        self.health
    }

    /// Where `/metrics` is.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Whether it reconciles: it leads, or needs not.
    pub fn is_working(&self) -> bool {
        self.duty.registry().is_some()
    }

    /// Where the objects are that it works on: the only way to those of a store in memory.
    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// The providers and controllers, while it reconciles.
    pub fn registry(&self) -> Option<Registry> {
        self.duty.registry()
    }

    /// Completes when something dies that nothing works without. Then it is to be stopped.
    pub async fn died(&self) {
        self.tasks.root().requested().await;
    }

    /// Drains: no more runs start, those that run may end, then connections close, then the lease is
    /// given free.
    pub async fn stop(self) {
        match self.logger.clone() {
            Some(logger) => self.end().with_subscriber(logger).await,
            None => self.end().await,
        }
    }

    async fn end(self) {
        info!("stopping");
        self.retire.request();
        match &self.election {
            // The election ends the duty first and gives the seat free afterwards; unless it has died.
            Some(state) => tokio::select! {
                _ = state.wait_for(|it| *it == State::Ended) => {}
                () = self.clock.sleep(self.patience + LAST_PATIENCE) => self.duty.end(true).await,
            },
            None => self.duty.end(false).await,
        }
        self.tasks.stop(LAST_PATIENCE.min(self.patience)).await;
        info!("stopped");
    }

    fn probes(&self) -> Probes {
        let root = self.tasks.root().clone();
        let (duty, election) = (self.duty.clone(), self.election.clone());
        Probes {
            is_alive: Arc::new(move || !root.is_requested()),
            readiness: Arc::new(move || readiness(&duty, election.as_deref())),
        }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("health", &self.health).field("metrics", &self.metrics).finish()
    }
}

/// Where tasks run, with logs that go where they are to.
fn spawn(options: &Options) -> Arc<dyn Spawn> {
    let inner = TokioSpawn::current();
    match options.logger.clone() {
        Some(logger) => Arc::new(Logged { inner, logger }),
        None => Arc::new(inner),
    }
}

/// Has tasks log to a place of their own.
struct Logged {
    inner: TokioSpawn,
    logger: Dispatch,
}

impl Spawn for Logged {
    fn spawn(&self, name: &str, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.inner.spawn(name, Box::pin(task.with_subscriber(self.logger.clone())));
    }
}

fn readiness(duty: &Reconciling, election: Option<&Watched<State>>) -> Readiness {
    let not_yet = |why: &str| Readiness::NotReady(vec![why.to_owned()]);
    match election.map(Watched::get) {
        Some(State::Following { holder }) => return Readiness::StandingBy { leader: holder },
        Some(State::Waiting) => return not_yet("leader election: nobody leads yet"),
        Some(State::Ended) => return not_yet("stopping"),
        Some(State::Leading { .. }) | None => {}
    }
    let Some(registry) = duty.registry() else { return not_yet("starting") };
    let problems: Vec<String> =
        registry.problems().into_iter().map(|it| format!("{}: {}", it.subject, it.why)).collect();
    if problems.is_empty() { Readiness::Ready } else { Readiness::NotReady(problems) }
}

fn parts(options: &Options, opened: &Opened, tasks: &Tasks) -> Parts {
    let (clock, chance) = (options.clock.clone(), options.chance.fork());
    let settings = Settings { work: opened.work.clone(), ..options.settings() };
    Parts {
        engine: Engine::new(opened.store.clone(), clock.clone(), chance.fork(), tasks.clone()),
        store: opened.store.clone(),
        recorder: StoreRecorder::start(opened.store.clone(), clock.clone(), chance.fork(), tasks),
        clock,
        chance,
        tasks: tasks.clone(),
        metrics: Metrics::new(),
        environment: Arc::new(config::variable),
        settings,
        authority: Authority::Alone,
    }
}

fn numbers(
    options: &Options,
    parts: &Parts,
    opened: &Opened,
    state: Option<&Arc<Watched<State>>>,
) -> Numbers {
    let mut numbers = Numbers::default();
    parts.engine.metrics().register(&mut numbers);
    parts.metrics.register(&mut numbers);
    let election = options.leader.as_ref().zip(state).map(|(it, state)| (it.id.clone(), state.clone()));
    let surroundings = Surroundings { election, requests: opened.requests.clone() };
    numbers.register_collector(Box::new(surroundings));
    numbers
}
