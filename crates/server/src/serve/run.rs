//! The whole: what starts in which order, and stops in which.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use concert_api::audit::{Audit, Sink};
use concert_api::auth;
use concert_api::kube::{self, Api};
use concert_api::listen::{Inbound, Peer};
use concert_api::mothership as fleet;
use concert_api::relay::{Relay, Way};
use concert_api::rest::auth::{self as accounts, Accounts};
use concert_api::rest::webhooks::Chain;
use concert_api::rest::{self, Ids, Node};
use concert_controllers::managed::event::StoreRecorder;
use concert_controllers::managed::metrics::Metrics;
use concert_controllers::managed::registry::{Parts, Rank, Settings};
use concert_engine::workers::Board;
use concert_engine::{Authority, Engine, Shutdown, Tasks, TokioSpawn};
use concert_model::{GroupKind, Object};
use concert_store::{By, Chance, Clock, Events, Local, Part, Query, Store, SystemClock};
use prometheus_client::registry::Registry as Numbers;
use tracing::{info, warn};

use super::config::Config;
use super::copies::{Copying, Site};
use super::data::DataFolder;
use super::declared::Declared;
use super::definitions::{ACTOR, define};
use super::error::Error;
use super::hands::{Hands, PATIENCE};
use super::inventory::{self, Inventory};
use super::knowledge::Knowledge;
use super::members::{self, Introduction, Members};
use super::mothership::Mothership;
use super::plugins;
use super::way_in::WayIn;
use super::workers::Workers;
use crate::admin::{self, Listener, Probes, Readiness};
use crate::config;
use crate::managed::{self, Dial, Reconciling, provider};
use crate::upkeep;

/// What listeners may take beyond it.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
/// How long a shared store may be out of reach before requests are better sent to another replica: longer than
/// a connection takes that was cut and is made again.
const CUT_OFF_MAX: Duration = Duration::from_secs(3);

/// A control plane that can be started.
pub struct Plane {
    config: Config,
    dial: Option<Dial>,
    clock: Arc<dyn Clock>,
    chance: Chance,
}

/// A control plane that runs.
pub struct Running {
    tasks: Tasks,
    leading: Tasks,
    serving: Tasks,
    /// Whether it is about to stop.
    leaving: Shutdown,
    api: Api,
    pub(super) hands: Arc<Hands>,
    workers: Workers,
    hosts: Tasks,
    ids: Ids,
    address: SocketAddr,
    admin: Option<SocketAddr>,
    first_way_in: Option<PathBuf>,
    store: Local,
}

impl Plane {
    /// One that is told this.
    pub fn new(config: Config) -> Self {
        Self { config, dial: None, clock: Arc::new(SystemClock::new()), chance: Chance::from_system() }
    }

    /// The way to providers, instead of gRPC: for providers in the same process.
    #[must_use]
    pub fn with_dial(mut self, dial: Dial) -> Self {
        self.dial = Some(dial);
        self
    }

    /// Starts everything, or says why not and leaves nothing running.
    ///
    /// # Errors
    /// Any [`enum@Error`]. A provider that cannot be reached is none: it is tried until it can.
    pub async fn start(self) -> Result<Running, Error> {
        let Self { config, dial, clock, chance } = self;
        let dial = dial.unwrap_or_else(|| provider::grpc(config.cert_dir.clone()));
        if let Some(folder) = &config.cert_dir {
            provider::check_certificates(folder)?;
        }
        let providers = config.providers.providers.iter().enumerate();
        let declarations =
            providers.map(|(place, it)| provider::declaration(it, Rank::Configured(place), &dial));
        let declarations = declarations.collect::<Result<Vec<_>, _>>()?;
        provider::warn_of_plain_text(config.providers.providers.iter());

        let folder = DataFolder::open(&config.data_dir)?;
        // Before the store: whoever cannot listen need not open anything.
        let admin = Listener::bind(&config.admin_listen).await?;
        let way_in = WayIn::open(&config, &folder, &clock).await?;
        let address = way_in.listener.address();
        let store = config.storage.open(&folder, &clock, &chance).await?;
        let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
        define(&store, config.only).await?;
        let keys = config.logins.keys(&folder, &chance)?;
        let (gate, first_way_in) = way_in.guard(&folder, &store, &clock, &chance, &keys).await?;

        let parts = parts(&config, &store, &clock, &chance, &tasks);
        let duty = Arc::new(Reconciling::new(parts.clone(), declarations, Some(dial), PATIENCE));
        let audit = Audit::start(Sink::File(folder.audit()), &tasks);
        let inventory = match &config.inventory {
            Some(elsewhere) => Inventory::elsewhere(elsewhere, &clock, &tasks).await?,
            None => Inventory::here(&store, &gate, &keys, &clock, &audit, &way_in.url()),
        };
        let board = Board::new(clock.clone());
        let ids = Ids::new(store.clone());
        let workers = Workers::new(&store, &parts, &gate, config.rules, &inventory, &board, &ids);
        let mothership = Mothership::new(&parts, &store, &inventory, &board, &audit);
        let numbers = numbers(&parts, &workers, &mothership);
        let hands = Hands::new(&store, &parts, duty.clone(), &workers, &mothership, config.only);
        let hands = Arc::new(hands);
        let node = node(&*clock, &chance);
        let leading = tasks.group();
        let members = if store.is_shared() {
            let introduction = Introduction {
                id: node.id.clone(),
                url: way_in.url(),
                authority: way_in.authority().map(str::to_owned),
            };
            let part = (&config.sharing, introduction);
            Some(members::join(&store, &hands, part, &clock, &chance, &leading))
        } else {
            hands.start(None)?;
            None
        };
        tidy(&store, &clock, &tasks);
        if inventory.here.is_some() {
            inventory::sweep(&store, &clock, &tasks);
        }

        let accounts = Accounts::new(accounts::Parts {
            store: store.clone(),
            gate: gate.clone(),
            clock: clock.clone(),
            chance: chance.fork(),
            ids: ids.clone(),
            keys: Some(keys),
        });
        accounts.start(config.logins.first_admin.as_ref()).await.map_err(Error::store)?;
        let mut rest = rest::Parts {
            ids: ids.clone(),
            node,
            company: members.clone().map(|it| Arc::new(it) as Arc<dyn rest::Company>),
            webhooks: Arc::new(Chain::new(store.clone(), clock.clone())),
            annexes: vec![Arc::new(accounts.clone())],
            admissions: vec![Arc::new(accounts), Arc::new(Declared(store.clone()))],
        };
        if config.only.has_workers() {
            let control = Arc::new(mothership.clone());
            let fleet = fleet::Door::new(fleet::Parts { gate: gate.clone(), control });
            rest.annexes.push(answered(Arc::new(workers.door.clone()), members.as_ref(), &clock));
            rest.annexes.push(answered(Arc::new(fleet), members.as_ref(), &clock));
        }
        if let Some(door) = inventory.here {
            rest.admissions.push(Arc::new(door.admit()));
            rest.annexes.push(Arc::new(door));
        }
        // Where nobody lends there is nobody to ask.
        let lenders = members.as_ref().filter(|_| config.only.has_workers());
        let way = lenders.map(|it| Way::new(Arc::new(it.clone()), clock.clone()));
        let knowledge = Knowledge::new(&store, &duty, &parts, &mothership, &board).with_way(way);
        let kube = kube::Parts {
            gate,
            clock: clock.clone(),
            chance: chance.fork(),
            extensions: Arc::new(knowledge),
            audit,
            limits: kube::Limits::default(),
            store: store.clone(),
        };
        let api = Api::with_rest(kube, rest);
        let hosts = tasks.group();
        let around = (&store, &clock, &chance);
        if config.only.has_workers() {
            plugins::start(&config.plugins, &way_in, &folder, around, config.is_dev, &hosts).await?;
        }
        let serving = tasks.group();
        let answering = api.clone();
        let answer = move |mut request: http::Request<Inbound>, peer: Peer| {
            let api = answering.clone();
            request.extensions_mut().insert(peer);
            async move { api.handle(request).await }
        };
        let entry = way_in.entry();
        way_in.listener.serve(answer, &serving);
        let site = Site { folder, store: store.clone(), clock, chance };
        Copying { site, entry, hands: hands.clone() }.serve(&serving);
        info!(what = "api", %address, "serving");
        let at = admin.as_ref().map(Listener::address);
        let leaving = Shutdown::new();
        let running = Running {
            tasks,
            leading,
            serving,
            leaving,
            api,
            hands,
            workers,
            hosts,
            ids,
            address,
            admin: at,
            first_way_in,
            store,
        };
        if let Some(admin) = admin {
            let router = admin::probes(running.probes()).merge(admin::metrics(Arc::new(numbers)));
            admin.serve("admin", router, &running.tasks);
        }
        Ok(running)
    }
}

impl Running {
    /// Where the API is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where metrics and probes are.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// The administrator's kubeconfig, if this start issued the token in it: whoever started it is to be
    /// told, once.
    pub fn first_way_in(&self) -> Option<&Path> {
        self.first_way_in.as_deref()
    }

    /// Runs until `shutdown` or until something dies that nothing works without, and stops.
    pub async fn run(self, shutdown: &Shutdown) {
        tokio::select! {
            () = shutdown.requested() => {}
            () = self.died() => {}
        }
        self.stop().await;
    }

    /// What it keeps.
    pub fn store(&self) -> &Local {
        &self.store
    }

    /// Completes when something dies that nothing works without. Then it is to be stopped.
    pub async fn died(&self) {
        self.tasks.root().requested().await;
    }

    /// The plugin host ends while it can still report. Then no new request is taken, those under way may
    /// end, then controllers stop, then the store closes.
    pub async fn stop(self) {
        info!("stopping");
        // Whoever sends requests here sends the next ones elsewhere, while these are still answered.
        self.leaving.request();
        self.api.leave();
        self.hosts.stop(plugins::PATIENCE + LAST_PATIENCE).await;
        if self.store.is_shared() {
            // Hands over to the other replicas what this one has, after what is under way, and serves on
            // until they have it.
            self.leading.stop(PATIENCE + LAST_PATIENCE).await;
        }
        self.api.close();
        self.workers.board.close();
        self.serving.stop(LAST_PATIENCE).await;
        self.hands.stop().await;
        self.ids.close().await;
        self.tasks.stop(LAST_PATIENCE).await;
        info!("stopped");
    }

    fn probes(&self) -> Probes {
        let (root, hands) = (self.tasks.root().clone(), self.hands.clone());
        let (store, leaving) = (self.store.clone(), self.leaving.clone());
        Probes {
            is_alive: Arc::new(move || !root.is_requested()),
            readiness: Arc::new(move || {
                // Where the store is shared another replica may reconcile; this one serves as well as that.
                let is_at_work = store.is_shared() || hands.is_ready();
                readiness(is_at_work, leaving.is_requested(), store.cut_off_for())
            }),
        }
    }
}

/// Whether requests are well placed here.
fn readiness(is_at_work: bool, is_leaving: bool, cut_off: Option<Duration>) -> Readiness {
    if is_leaving {
        return Readiness::NotReady(vec!["stopping".into()]);
    }
    if let Some(since) = cut_off.filter(|it| *it > CUT_OFF_MAX) {
        return Readiness::NotReady(vec![format!("the store has not answered for {} s", since.as_secs())]);
    }
    match is_at_work {
        true => Readiness::Ready,
        false => Readiness::NotReady(vec!["starting".into()]),
    }
}

/// Routes that one replica answers for all, where there are several.
fn answered(
    routes: Arc<dyn rest::Annex>,
    members: Option<&Members>,
    clock: &Arc<dyn Clock>,
) -> Arc<dyn rest::Annex> {
    match members {
        Some(members) => Arc::new(Relay::new(routes, Arc::new(members.clone()), clock.clone())),
        None => routes,
    }
}

/// This process, for whoever asks who answers.
fn node(clock: &dyn Clock, chance: &Chance) -> Node {
    let (hostname, pid) = (config::host_name(), std::process::id());
    let id = format!("{hostname}:{pid}:{}", concert_model::Uid::from_random(chance.bits()));
    Node { id, hostname, pid, started_at: clock.now() }
}

pub(super) fn parts(
    config: &Config,
    store: &Local,
    clock: &Arc<dyn Clock>,
    chance: &Chance,
    tasks: &Tasks,
) -> Parts {
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    Parts {
        engine: Engine::new(shared.clone(), clock.clone(), chance.fork(), tasks.clone()),
        recorder: StoreRecorder::start(shared.clone(), clock.clone(), chance.fork(), tasks),
        store: shared,
        clock: clock.clone(),
        chance: chance.fork(),
        tasks: tasks.clone(),
        metrics: Metrics::new(),
        environment: Arc::new(config::variable),
        settings: Settings {
            concurrency: config.max_reconcile_rate,
            poll: config.poll_interval,
            timeout: config.reconcile_timeout,
            work: Some(Arc::new(store.clone())),
            ..Settings::default()
        },
        authority: Authority::Alone,
    }
}

fn numbers(parts: &Parts, workers: &Workers, mothership: &Mothership) -> Numbers {
    let mut numbers = Numbers::default();
    mothership.register(&mut numbers);
    parts.engine.metrics().register(&mut numbers);
    parts.metrics.register(&mut numbers);
    workers.board.register(&mut numbers);
    numbers
}

/// Compacts and forgets, tokens that have expired among it, again and again.
fn tidy(store: &Local, clock: &Arc<dyn Clock>, tasks: &Tasks) {
    let (swept, time) = (store.clone(), clock.clone());
    upkeep::tidy(store, clock, tasks, move || {
        let (store, clock) = (swept.clone(), time.clone());
        async move {
            if let Err(error) = auth::sweep(&store, &*clock, &By::actor(ACTOR).because("expired")).await {
                warn!(%error, "cannot remove tokens that have expired");
            }
        }
    });
}

impl Running {
    /// Applies manifests of JSON or YAML, as `actor`.
    ///
    /// # Errors
    /// [`Error::Config`] for what cannot be read, [`Error::Store`] for what is refused.
    pub async fn apply(&self, manifests: &str, actor: &str) -> Result<(), Error> {
        let malformed = |what| managed::config::Error::Malformed { origin: "manifests".into(), what };
        for value in managed::config::documents(manifests).map_err(malformed)? {
            let object = Object::from_value(value).map_err(Error::store)?;
            let by = By { manager: actor.into(), ..By::actor(actor) };
            self.store.apply(object, Part::Main, true, &by).await.map_err(Error::store)?;
        }
        Ok(())
    }

    /// The objects of a kind, and every change from then on.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn watch(&self, kind: GroupKind) -> Result<Events, Error> {
        self.store.watch(&Query::all(kind), None).await.map_err(Error::store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_ready_while_it_hears_of_the_others_and_stays() {
        let seconds = Duration::from_secs;
        let not_ready = |what: &str| Readiness::NotReady(vec![what.to_owned()]);
        assert_eq!(readiness(true, false, None), Readiness::Ready);
        assert_eq!(
            readiness(true, false, Some(seconds(1))),
            Readiness::Ready,
            "a cut connection is made again"
        );
        let silent = not_ready("the store has not answered for 12 s");
        assert_eq!(readiness(true, false, Some(seconds(12))), silent);
        assert_eq!(readiness(true, true, None), not_ready("stopping"));
        assert_eq!(readiness(false, false, None), not_ready("starting"));
    }
}
