//! Starts and stops the controllers that `decide.rs` casts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{
    Controller, Failure, Lane, Objects, Outcome, Reconciler, Request, Source, StartError, source,
};
use concert_model::condition::{self, Status};
use concert_model::{Condition, Encoded, FieldSelector, GroupKind, Object, ObjectKey};
use concert_store::{By, Error, PageRequest, Query};
use tracing::{debug, info};

use super::super::bind::{self, Binder};
use super::super::definition::{self, Kinds, Known, parse};
use super::super::ensemble::Ensemble;
use super::super::hands::Hands;
use super::super::policy::{self, DefaultClass};
use super::super::propagate::{self, Propagator};
use super::super::schedule::{self, Scheduler};
use super::super::{POLL, Pace};
use super::decide::{Cast, Declared, Part, cast};
use crate::managed::registry::Parts;

/// Watches whether there are definitions at all.
const GATE: &str = "claims/gate";
/// Looks at all definitions together.
const DEFINITIONS: &str = "claims/definitions";
/// Follows secrets.
const PROPAGATOR: &str = "claims/secretpropagator";
/// The definition of definitions.
const DEFINITION_OF_DEFINITIONS: &str = "claimdefinitions.concert.dev";
/// How long what runs may take to end when its definition goes.
const PATIENCE: Duration = Duration::from_secs(10);

/// All controllers of claims. Cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    parts: Parts,
    players: Arc<propagate::Players>,
    running: Mutex<BTreeMap<Arc<str>, Part>>,
}

/// Starts to look for definitions: at once if their kind is there, and otherwise when it comes.
///
/// # Errors
/// [`StartError::Taken`] if it runs already.
pub fn start(parts: Parts) -> Result<Registry, StartError> {
    let inner = Inner { parts, players: propagate::kinds(), running: Mutex::default() };
    let registry = Registry(Arc::new(inner));
    let name = FieldSelector::field("metadata.name", DEFINITION_OF_DEFINITIONS);
    let gate = Gate(Arc::downgrade(&registry.0));
    let controller = Controller::builder(GATE, Arc::new(gate))
        .objects(Objects::new(Query::all(crd()).with_fields(name)))
        .concurrency(1)
        .poll(registry.pace().poll)
        .relist(Some(registry.pace().relist))
        .fence(registry.0.parts.fence.clone())
        .build();
    registry.0.parts.engine.start(controller)?;
    Ok(registry)
}

fn crd() -> GroupKind {
    GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition")
}

/// The one item of the controller of definitions: all of them together.
fn item() -> ObjectKey {
    ObjectKey::cluster(definition::kind(), "all")
}

impl Registry {
    /// The names of the controllers that run.
    pub fn controllers(&self) -> Vec<Arc<str>> {
        self.lock().keys().cloned().collect()
    }

    /// All that play for a claim kind; none if nobody does.
    pub fn ensemble_of(&self, claim: &GroupKind) -> Option<Arc<Ensemble>> {
        self.lock().values().find_map(|part| match part {
            Part::DefaultClass(ensemble) if ensemble.claim.group_kind == *claim => Some(ensemble.clone()),
            _ => None,
        })
    }

    /// Stops everything.
    pub async fn stop(&self, patience: Duration) {
        // First what could start something.
        self.0.parts.engine.stop(GATE, patience).await;
        self.close(patience).await;
    }

    /// Starts to look at definitions, whose kind is there; says whether it could.
    fn open(&self) -> bool {
        let engine = &self.0.parts.engine;
        if engine.controller(DEFINITIONS).is_some() {
            return true;
        }
        let all = |_: &_| vec![item()];
        let controller = Controller::builder(DEFINITIONS, Arc::new(Definitions(Arc::downgrade(&self.0))))
            .source(Source::mapped(Query::all(definition::kind()), all).changed(source::except_status))
            .source(Source::mapped(Query::all(crd()), all))
            .concurrency(1)
            .poll(self.pace().poll)
            .relist(Some(self.pace().relist))
            .fence(self.0.parts.fence.clone())
            .build();
        match engine.start(controller) {
            Ok(handle) => {
                if let Err(error) = handle.enqueue(&item(), Lane::Event, "start") {
                    debug!(%error, "cannot look at definitions");
                }
                true
            }
            Err(error) => {
                debug!(%error, "cannot look at definitions yet");
                false
            }
        }
    }

    /// Stops to look at definitions, and what runs for them.
    async fn close(&self, patience: Duration) {
        let engine = &self.0.parts.engine;
        engine.stop(DEFINITIONS, patience).await;
        let mut names = self.controllers();
        names.push(PROPAGATOR.into());
        let stops = names.iter().map(|name| engine.stop(name, patience));
        futures_util::future::join_all(stops).await;
        self.lock().clear();
    }

    /// Makes what runs match what is declared, and says on each definition how it stands.
    async fn pass(&self, request: &Request) -> Result<bool, Error> {
        let definitions = self.definitions().await?;
        let declared: Vec<Declared> = definitions.iter().map(declared).collect();
        let kinds = self.kinds(&declared).await?;
        let cast = cast(&declared, &kinds);
        self.0.players.set(cast.claims.clone(), cast.managed.clone());
        self.stop_outdated(&cast).await;
        let is_whole = self.begin(&cast);
        for definition in definitions {
            if let Some(condition) = cast.reports.get(definition.name()) {
                self.report(definition, condition.clone(), request).await?;
            }
        }
        Ok(is_whole)
    }

    async fn definitions(&self) -> Result<Vec<Object>, Error> {
        let page = self.0.parts.store.list(&Query::all(definition::kind()), &PageRequest::whole()).await?;
        Ok(page.items.iter().map(Encoded::decode).collect())
    }

    /// What is known of all kinds that the definitions name.
    async fn kinds(&self, declared: &[Declared]) -> Result<Kinds, Error> {
        let mut kinds = Kinds::new();
        for definition in declared.iter().filter_map(|it| it.definition.as_ref()) {
            let implementations = definition.implementations.iter().flat_map(|it| [&it.class, &it.managed]);
            for kind in [Some(&definition.claim), definition.policy.as_ref()]
                .into_iter()
                .flatten()
                .chain(implementations)
            {
                let kind = &kind.group_kind;
                if !kinds.contains_key(kind)
                    && let Some(known) = self.known(kind).await?
                {
                    kinds.insert(kind.clone(), known);
                }
            }
        }
        Ok(kinds)
    }

    async fn known(&self, kind: &GroupKind) -> Result<Option<Known>, Error> {
        let store = &self.0.parts.store;
        let served = match store.kind(kind).await {
            Ok(served) => served,
            Err(Error::UnknownKind { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let key = ObjectKey::cluster(crd(), format!("{}.{}", served.plural, kind.group));
        match store.get(&key).await {
            Ok(definition) => Ok(Some(Known::of(&definition.decode()))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn stop_outdated(&self, cast: &Cast) {
        let outdated: Vec<Arc<str>> = {
            let running = self.lock();
            running
                .iter()
                .filter(|(name, part)| cast.parts.get(*name) != Some(part))
                .map(|(name, _)| name.clone())
                .collect()
        };
        for name in outdated {
            self.0.parts.engine.stop(&name, PATIENCE).await;
            self.lock().remove(&name);
        }
    }

    /// Starts what does not run yet; says whether all of it could be started.
    fn begin(&self, cast: &Cast) -> bool {
        let mut all = true;
        for (name, part) in &cast.parts {
            if self.lock().contains_key(name) {
                continue;
            }
            let is_started = self.launch(self.controller(name, part));
            if is_started {
                self.lock().insert(name.clone(), part.clone());
            }
            all &= is_started;
        }
        let engine = &self.0.parts.engine;
        if !cast.parts.is_empty() && engine.controller(PROPAGATOR).is_none() {
            let propagator =
                Propagator { hands: self.hands(PROPAGATOR.into()), players: self.0.players.clone() };
            all &= self.launch(propagate::controller(propagator, self.pace(), self.0.parts.fence.clone()));
        }
        all
    }

    fn pace(&self) -> Pace {
        let settings = &self.0.parts.settings;
        Pace { poll: settings.poll.unwrap_or(POLL), relist: settings.relist }
    }

    fn launch(&self, controller: Controller) -> bool {
        match self.0.parts.engine.start(controller) {
            Ok(_) => true,
            Err(error) => {
                info!(%error, "cannot start yet");
                false
            }
        }
    }

    fn controller(&self, name: &Arc<str>, part: &Part) -> Controller {
        let hands = self.hands(name.clone());
        let (pace, fence) = (self.pace(), self.0.parts.fence.clone());
        match part.clone() {
            Part::DefaultClass(ensemble) => {
                policy::controller(DefaultClass::new(ensemble, hands), pace, fence)
            }
            Part::Schedule(manner, ensemble, implementation) => {
                let scheduler = Scheduler::new(manner, ensemble, implementation, hands);
                schedule::controller(scheduler, pace, fence)
            }
            Part::Bind(claim, implementation) => {
                bind::controller(Binder { claim, implementation, hands }, pace, fence)
            }
        }
    }

    fn hands(&self, name: Arc<str>) -> Hands {
        let parts = &self.0.parts;
        Hands {
            name,
            store: parts.store.clone(),
            clock: parts.clock.clone(),
            chance: parts.chance.fork(),
            recorder: parts.recorder.clone(),
        }
    }

    /// Writes only what is new.
    async fn report(&self, mut definition: Object, ready: Condition, request: &Request) -> Result<(), Error> {
        let generation = definition.generation();
        let now = self.0.parts.clock.now();
        if !condition::set(definition.get_mut("status"), ready.observed(generation), now) {
            return Ok(());
        }
        let by = By { fence: request.fence.clone(), manager: DEFINITIONS.into(), ..By::actor(DEFINITIONS) };
        match self.0.parts.store.update_status(definition, &by).await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Part>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn declared(object: &Object) -> Declared {
    let (definition, errors) = parse(object);
    Declared { name: object.name().into(), definition, errors }
}

/// Opens and closes with the definition of definitions. Weak, because the registry owns the controller
/// that owns this.
struct Gate(Weak<Inner>);

#[async_trait]
impl Reconciler for Gate {
    async fn reconcile(&self, request: Request) -> Outcome {
        let Some(registry) = self.0.upgrade().map(Registry) else { return Outcome::Done };
        match registry.0.parts.store.get(&request.key).await {
            Ok(definition) => {
                let established = condition::find(definition.decode().status(), "Established");
                let is_there = established.is_some_and(|it| it.status == Status::True);
                if is_there && !registry.open() {
                    return Outcome::Requeue("the controller of definitions has not ended yet".into(), None);
                }
                Outcome::Done
            }
            Err(Error::NotFound { .. }) => {
                info!("the kind ClaimDefinition is gone, and its objects with it");
                registry.close(PATIENCE).await;
                Outcome::Done
            }
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}

/// Looks at all definitions.
struct Definitions(Weak<Inner>);

#[async_trait]
impl Reconciler for Definitions {
    async fn reconcile(&self, request: Request) -> Outcome {
        let Some(registry) = self.0.upgrade().map(Registry) else { return Outcome::Done };
        match registry.pass(&request).await {
            Ok(true) => Outcome::Done,
            // One of that name has not ended yet.
            Ok(false) => Outcome::Requeue("a controller cannot start yet".into(), None),
            Err(Error::UnknownKind { .. }) => Outcome::Done,
            Err(Error::Conflict { .. }) => Outcome::Requeue("a definition changed meanwhile".into(), None),
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.controllers()).finish()
    }
}
