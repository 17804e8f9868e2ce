//! Which controllers run: one for each kind that is defined and served, started and stopped while the
//! process runs.
//!
//! Definitions come from the store, as objects like any other: a controller of its own watches them
//! and starts what [`gate`] wants. Providers come from whoever declares them; the life of each is a
//! task that connects, asks what it serves, and notices when the connection is lost.

mod build;
pub mod claims;
mod definitions;
pub mod gate;
mod life;
mod placeholder;
mod push;
mod roster;
mod withheld;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_engine::{Authority, Controller, Engine, Handle, Lane, Objects, Tasks};
use concert_model::{GroupKind, ObjectKey, Timestamp};
use concert_provider::{Connector, Handshake};
use concert_store::{Chance, Clock, Query, Store, Work};

use super::allowance::Allowance;
use super::config::Configurations;
use super::connection::Publisher;
use super::event::Recorder;
use super::metrics::Metrics;

pub use build::rules;
use claims::{Charge, Claims, Known, State, Wanted, claims};
use gate::Want;

/// The controller that watches definitions.
const DEFINITIONS: &str = "managed/definitions";

/// How long what runs may take to end when its kind or its provider goes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks up an environment variable.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What all controllers of managed resources share.
#[derive(Clone)]
pub struct Parts {
    /// Runs controllers.
    pub engine: Engine,
    /// Where objects live.
    pub store: Arc<dyn Store>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes tokens and jitter.
    pub chance: Chance,
    /// Owns what runs beside the controllers.
    pub tasks: Tasks,
    /// Takes events.
    pub recorder: Arc<dyn Recorder>,
    /// Takes numbers.
    pub metrics: Metrics,
    /// Reads environment variables that ProviderConfigs name.
    pub environment: Environment,
    /// What people have set.
    pub settings: Settings,
    /// On which objects this process works, and under which claim.
    pub authority: Authority,
}

/// What people may set. None means: what the provider says, else the default.
#[derive(Clone)]
pub struct Settings {
    /// Most reconciles of one kind at a time.
    pub concurrency: Option<usize>,
    /// How often objects are looked at when nothing changes.
    pub poll: Option<Duration>,
    /// How long a call to a provider may take.
    pub timeout: Option<Duration>,
    /// How often everything is listed again although the watches go on.
    pub relist: Duration,
    /// Whether a lost connection stops the controllers of its provider until it is back, and has it
    /// introduce itself again.
    pub restarts_on_disconnect: bool,
    /// Whether management policies are honoured.
    pub has_policies: bool,
    /// Where back-off and waits are kept over a restart, on our own stores.
    pub work: Option<Arc<dyn Work>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: None,
            poll: None,
            timeout: None,
            // What providers call `--sync`.
            relist: Duration::from_secs(60 * 60),
            restarts_on_disconnect: true,
            has_policies: true,
            work: None,
        }
    }
}

/// Reconciles of one kind at a time, unless somebody knows better.
pub const CONCURRENCY: usize = 10;

/// A provider, as somebody declares it.
#[derive(Clone)]
pub struct Declaration {
    /// By which people know it.
    pub name: Arc<str>,
    /// The way to it.
    pub connector: Arc<dyn Connector>,
    /// The kinds it is to serve; all that it names if empty.
    pub kinds: Vec<Wanted>,
    /// How often it may be called.
    pub allowance: Allowance,
    /// Where it stands among the others.
    pub rank: Rank,
    /// What it said when it was last heard of, as far as whoever declares it remembers. Until it answers it
    /// is in charge of that, unless it is declared for certain kinds.
    pub last: Option<Arc<Handshake>>,
}

/// Which of two providers keeps a kind that both claim: the lesser. It depends on what was declared and not
/// on who was heard of first. A restart changes nothing as long as it is known what the lesser claims: it is
/// declared for it, it answers, or it is remembered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The configuration names it, in this place.
    Configured(usize),
    /// An object declares it, since then; names decide between those of one moment.
    Declared(Timestamp),
}

/// The name is taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is a provider called {0} already")]
pub struct TakenError(pub Arc<str>);

/// What is not as it should be, for people.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// `provider NAME` or a kind.
    pub subject: String,
    /// In words.
    pub why: String,
}

/// All providers and the controllers of what they serve. Cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    parts: Parts,
    publisher: Arc<Publisher>,
    configurations: Arc<Configurations>,
    tasks: Tasks,
    state: Mutex<Desk>,
}

/// What changes.
#[derive(Default)]
struct Desk {
    /// By rank: who comes first keeps what two claim.
    providers: Vec<(Arc<str>, Provider)>,
    claims: Claims,
    /// Definitions by the kind they define.
    definitions: BTreeMap<GroupKind, ObjectKey>,
    /// What runs, by the definition that it runs for.
    running: BTreeMap<ObjectKey, Running>,
    /// Why something does not run, by definition.
    idle: BTreeMap<GroupKind, String>,
    /// Kinds that had a provider at some time.
    had_provider: BTreeSet<GroupKind>,
    handle: Option<Handle>,
}

struct Provider {
    known: Known,
    connector: Arc<dyn Connector>,
    tasks: Tasks,
    epochs: u64,
    rank: Rank,
    /// It does not answer although its controllers run.
    outage: Option<Outage>,
}

/// Controllers run whose provider does not answer.
struct Outage {
    /// In words.
    why: String,
    /// Whether that has gone on for so long that its objects should say so.
    is_long: bool,
}

impl Provider {
    /// What it said of itself; why it cannot be asked, if it cannot.
    fn standing(&self) -> Result<&Arc<Handshake>, &str> {
        match (&self.known.state, &self.outage) {
            (State::Down { why, .. }, _) | (_, Some(Outage { why, .. })) => Err(why),
            (State::Up { handshake, .. }, None) => Ok(handshake),
        }
    }
}

/// A controller that runs for a kind.
struct Running {
    kind: GroupKind,
    name: Arc<str>,
    want: Want,
    handle: Handle,
    /// What pushes changes to it.
    tasks: Tasks,
    /// Kinds that it would watch if they were there.
    missing: BTreeSet<GroupKind>,
}

impl Running {
    /// Whether it runs for the provider of this name.
    fn is_of(&self, name: &str) -> bool {
        matches!(&self.want, Want::Managed { provider, .. } if provider == name)
    }
}

impl Registry {
    /// Starts to watch definitions. Providers are to follow.
    pub fn start(parts: Parts) -> Self {
        let environment = parts.environment.clone();
        let inner = Inner {
            publisher: Arc::new(Publisher::new(parts.store.clone())),
            configurations: Arc::new(Configurations::new(
                parts.store.clone(),
                parts.clock.clone(),
                move |name: &str| environment(name),
            )),
            tasks: parts.tasks.group(),
            state: Mutex::default(),
            parts,
        };
        let registry = Self(Arc::new(inner));
        let definitions = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        let reconciler = Arc::new(definitions::Definitions::new(&registry));
        let controller = Controller::builder(DEFINITIONS, reconciler)
            .objects(Objects::new(Query::all(definitions)))
            .concurrency(2)
            .relist(Some(registry.0.parts.settings.relist))
            .authority(registry.0.parts.authority.everywhere())
            .build();
        match registry.0.parts.engine.start(controller) {
            Ok(handle) => registry.lock().handle = Some(handle),
            Err(error) => tracing::error!(%error, "cannot watch definitions"),
        }
        registry
    }

    /// What a provider said of itself, if it is up; why not, if it is down.
    pub fn provider(&self, name: &str) -> Option<Result<Arc<Handshake>, String>> {
        let desk = self.lock();
        let (_, provider) = desk.providers.iter().find(|(it, _)| **it == *name)?;
        Some(provider.standing().cloned().map_err(str::to_owned))
    }

    /// What a provider was declared for and does not get, in words.
    pub fn complaints(&self, name: &str) -> Vec<String> {
        let desk = self.lock();
        let of_it = desk.claims.problems.iter().filter(|it| *it.provider == *name);
        of_it.map(|it| it.why.clone()).collect()
    }

    /// The connector of the provider in charge of a kind, and what that says of it.
    pub fn in_charge_of(&self, kind: &GroupKind) -> Option<(Arc<dyn Connector>, Charge)> {
        let desk = self.lock();
        let charge = desk.claims.kinds.get(kind)?.clone();
        let Charge::Managed { provider: name, .. } = &charge else { return None };
        let (_, provider) = desk.providers.iter().find(|(it, _)| it == name)?;
        Some((provider.connector.clone(), charge.clone()))
    }

    /// Everything that is not as it should be.
    pub fn problems(&self) -> Vec<Problem> {
        let desk = self.lock();
        let mut problems = Vec::new();
        for (name, provider) in &desk.providers {
            if let Err(why) = provider.standing() {
                problems.push(Problem { subject: format!("provider {name}"), why: why.to_owned() });
            }
        }
        let conflicts = desk.claims.problems.iter();
        problems.extend(conflicts.map(|it| Problem { subject: "providers".into(), why: it.why.clone() }));
        for (kind, charge) in &desk.claims.kinds {
            if let Charge::Held(why) = charge {
                problems.push(Problem { subject: kind.to_string(), why: why.clone() });
                continue;
            }
            let why = match (desk.definitions.get(kind), desk.idle.get(kind)) {
                (None, _) => "there is no definition of it".to_owned(),
                (_, Some(why)) => why.clone(),
                (Some(definition), None) => match desk.running.get(definition) {
                    None => "its controller has not started".to_owned(),
                    Some(running) if !running.handle.is_ready() => "its objects are being listed".to_owned(),
                    Some(Running { want: Want::Placeholder(why), .. }) => why.clone(),
                    Some(_) => continue,
                },
            };
            // What only counts users is not worth a failing probe before it is wanted.
            if matches!(charge, Charge::Managed { .. }) {
                problems.push(Problem { subject: kind.to_string(), why });
            }
        }
        problems
    }

    /// What people have set.
    pub fn settings(&self) -> &Settings {
        &self.0.parts.settings
    }

    /// The names of the controllers that run.
    pub fn controllers(&self) -> Vec<Arc<str>> {
        self.lock().running.values().map(|it| it.name.clone()).collect()
    }

    /// Stops everything.
    pub async fn stop(&self, patience: Duration) {
        // First what could start something.
        self.0.parts.engine.stop(DEFINITIONS, patience).await;
        self.0.tasks.stop(patience).await;
        let names = self.controllers();
        let stops = names.iter().map(|name| self.0.parts.engine.stop(name, patience));
        futures_util::future::join_all(stops).await;
        let mut desk = self.lock();
        for running in std::mem::take(&mut desk.running).into_values() {
            self.0.parts.metrics.forget_objects(&running.kind);
        }
        desk.handle = None;
    }

    /// Deals the kinds out anew and looks again at every definition this may concern.
    fn deal(&self) {
        let mut desk = self.lock();
        let dealt = claims(desk.providers.iter().map(|(name, it)| (name, &it.known)));
        for problem in dealt.problems.iter().filter(|it| !desk.claims.problems.contains(it)) {
            tracing::warn!(problem = %problem.why, "a kind cannot be served as declared");
        }
        let changed: Vec<GroupKind> = {
            let kinds: BTreeSet<&GroupKind> = dealt.kinds.keys().chain(desk.claims.kinds.keys()).collect();
            let is_new = |kind: &&&GroupKind| dealt.kinds.get(**kind) != desk.claims.kinds.get(**kind);
            kinds.iter().filter(is_new).map(|kind| (*kind).clone()).collect()
        };
        let managed = dealt.kinds.iter().filter(|(_, it)| matches!(it, Charge::Managed { .. }));
        let managed: Vec<GroupKind> = managed.map(|(kind, _)| kind.clone()).collect();
        desk.had_provider.extend(managed);
        desk.claims = dealt;
        let keys: Vec<ObjectKey> =
            changed.iter().filter_map(|it| desk.definitions.get(it).cloned()).collect();
        let handle = desk.handle.clone();
        drop(desk);
        for key in keys {
            if let Some(handle) = &handle
                && let Err(error) = handle.enqueue(&key, Lane::Event, "provider")
            {
                tracing::debug!(%error, definition = %key, "cannot look at a definition");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Registry").field(&self.controllers()).finish()
    }
}
