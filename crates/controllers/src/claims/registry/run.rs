//! Starts and stops the controllers that `decide.rs` casts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{
    Controller, Failure, Lane, Objects, Outcome, Reconciler, Request, Source, StartError, Wait, source,
};
use concert_model::condition::{self, Status};
use concert_model::{Condition, Encoded, FieldSelector, GroupKind, Object, ObjectKey};
use concert_store::{By, Error, Query};
use serde_json::Value;
use tracing::{debug, info};

use super::super::bind::{self, Binder};
use super::super::definition::served::{self, Served};
use super::super::definition::{self, Implementation};
use super::super::ensemble::Ensemble;
use super::super::hands::Hands;
use super::super::policy::{self, DefaultClass};
use super::super::propagate::{self, Propagator};
use super::super::reclaim::{self, Reclaimer};
use super::super::schedule::{self, Scheduler};
use super::super::vocabulary::DEFINITION_FINALIZER;
use super::super::{POLL, Pace};
use super::decide::{Cast, Declared, Part, cast};
use super::defined::Defined;
use super::hold::{Held, bound_by, hold, let_go};
use super::read::{self, crd};
use crate::managed::registry::Parts;

/// Watches whether there are definitions at all.
const GATE: &str = "claims/gate";
/// Looks at all definitions together.
const DEFINITIONS: &str = "claims/definitions";
/// Follows secrets.
const PROPAGATOR: &str = "claims/secretpropagator";
/// The definition of definitions.
const DEFINITION_OF_DEFINITIONS: &str = "claimdefinitions.concert.dev";
/// Between looks of a member that waits for another to hold a definition.
const ONLOOKER_PAUSE: Duration = Duration::from_secs(1);
/// Between looks for a kind that is defined and not served yet, which is a matter of a moment.
const UNSERVED_PAUSE: Duration = Duration::from_secs(1);
/// How long what runs may take to end when its definition goes.
const PATIENCE: Duration = Duration::from_secs(10);

/// All controllers of claims. Cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    parts: Parts,
    players: Arc<propagate::Players>,
    defined: Arc<Defined>,
    running: Mutex<BTreeMap<Arc<str>, Part>>,
}

/// Starts to look for definitions: at once if their kind is there, and otherwise when it comes.
///
/// # Errors
/// [`StartError::Taken`] if it runs already.
pub fn start(parts: Parts) -> Result<Registry, StartError> {
    let (players, defined) = (propagate::kinds(), Arc::default());
    let inner = Inner { parts, players, defined, running: Mutex::default() };
    let registry = Registry(Arc::new(inner));
    let name = FieldSelector::field("metadata.name", DEFINITION_OF_DEFINITIONS);
    let gate = Gate(Arc::downgrade(&registry.0));
    let controller = Controller::builder(GATE, Arc::new(gate))
        .objects(Objects::new(Query::all(crd()).with_fields(name)))
        .concurrency(1)
        .poll(registry.pace().poll)
        .relist(Some(registry.pace().relist))
        .authority(registry.0.parts.authority.everywhere())
        .build();
    registry.0.parts.engine.start(controller)?;
    Ok(registry)
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
        self.lock().values().find_map(|part| part.plays_for(claim))
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
        let all = |_: &Encoded| vec![item()];
        let defined = self.0.defined.clone();
        let seen = move |it: &Encoded| {
            defined.see(it);
            vec![item()]
        };
        let controller = Controller::builder(DEFINITIONS, Arc::new(Definitions(Arc::downgrade(&self.0))))
            .source(Source::mapped(Query::all(definition::kind()), all).changed(source::except_status))
            .source(Source::mapped(Query::all(crd()), seen))
            .concurrency(1)
            .poll(self.pace().poll)
            .relist(Some(self.pace().relist))
            .authority(self.0.parts.authority.everywhere())
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
    async fn pass(&self, request: &Request) -> Result<Outcome, Error> {
        let by = By { fence: request.fence.clone(), manager: DEFINITIONS.into(), ..By::actor(DEFINITIONS) };
        let store = &*self.0.parts.store;
        let definitions = read::definitions(store).await?;
        let declared: Vec<Declared> = definitions.iter().map(read::declared).collect();
        let kinds = read::kinds(store, &declared).await?;
        let cast = cast(&declared, &kinds);
        let unserved = self.0.defined.unserved(store, &declared, &kinds).await?;
        if request.is_onlooker {
            return Ok(self.look_on(&definitions, &declared, &cast, unserved.as_ref()).await);
        }
        let (mut failed, mut unheld) = (None, BTreeSet::new());
        let (mut living, mut leaving) = (Vec::new(), Vec::new());
        // Each is held, and remembers whom it serves, before anything can be bound by it.
        for (mut object, declared) in definitions.into_iter().zip(&declared) {
            if declared.is_leaving {
                leaving.push((object, declared));
                continue;
            }
            match self.attend(&mut object, declared, &cast, &by).await {
                Ok(()) => living.push((object, declared)),
                // One that cannot be written harms nobody else.
                Err(error) => {
                    unheld.insert(declared.name.clone());
                    failed = Some(error);
                }
            }
        }
        self.0.players.set(cast.claims.clone(), cast.managed.clone());
        self.stop_outdated(&cast).await;
        // What runs goes on; nothing begins for one that is not held.
        let is_whole = self.begin(&cast.without(&unheld, &declared, &kinds));
        // From here on nobody takes on a claim for what is leaving.
        let (mut waits, mut is_over) = (Vec::new(), false);
        for (object, declared) in leaving {
            waits.extend(self.part_with(object, declared, &cast, &by).await?);
        }
        for (object, declared) in living.into_iter().filter(|(_, it)| !it.former.is_empty()) {
            let (wait, is_shorter) = self.forget(object, declared, &cast, &by).await?;
            waits.extend(wait);
            is_over |= is_shorter;
        }
        if let Some(error) = failed {
            return Err(error);
        }
        Ok(match (is_whole, is_over) {
            // One of that name has not ended yet.
            (false, _) => Outcome::Requeue("a controller cannot start yet".into(), None),
            (true, true) => Outcome::Requeue("nothing is bound by a former implementation".into(), None),
            (true, false) => rest(waits, unserved.as_ref()),
        })
    }

    /// Every member runs the controllers; one of them writes, and is waited for: a definition is held before
    /// anything can be bound by it.
    async fn look_on(
        &self,
        definitions: &[Object],
        declared: &[Declared],
        cast: &Cast,
        unserved: Option<&GroupKind>,
    ) -> Outcome {
        let is_attended = |(object, declared): (&Object, &Declared)| {
            let is_held = object.finalizers().iter().any(|it| it == DEFINITION_FINALIZER);
            let ready = condition::find(object.status(), "Ready");
            let is_told = ready.is_some_and(|it| it.observed_generation == Some(object.generation()));
            declared.is_leaving || is_told && (is_held || declared.definition.is_none())
        };
        if !definitions.iter().zip(declared).all(is_attended) {
            return Outcome::Requeue(
                "another member has not held a definition yet".into(),
                Some(ONLOOKER_PAUSE),
            );
        }
        self.0.players.set(cast.claims.clone(), cast.managed.clone());
        self.stop_outdated(cast).await;
        match self.begin(cast) {
            true => rest(Vec::new(), unserved),
            false => Outcome::Requeue("a controller cannot start yet".into(), None),
        }
    }

    /// Holds a definition, and says how it stands.
    async fn attend(
        &self,
        object: &mut Object,
        declared: &Declared,
        cast: &Cast,
        by: &By,
    ) -> Result<(), Error> {
        if declared.definition.is_some() {
            hold(&*self.0.parts.store, object, by).await?;
        }
        let memory = served::to_remember(declared.definition.as_ref(), &declared.former);
        let report = cast.reports.get(&declared.name).cloned();
        self.report(object, report, Some(memory), by).await
    }

    /// Lets a definition go that is to be deleted, or says what it waits for.
    async fn part_with(
        &self,
        mut object: Object,
        declared: &Declared,
        cast: &Cast,
        by: &By,
    ) -> Result<Option<Wait>, Error> {
        let now = declared.definition.iter().flat_map(|it| {
            let served = move |by: &Arc<Implementation>| Served {
                claim: it.claim.clone(),
                implementation: (**by).clone(),
            };
            it.implementations.iter().map(served)
        });
        // What another definition makes now is safe with that.
        let is_ours = |it: &Served| !cast.makes(&it.claim.group_kind, &it.implementation.managed.group_kind);
        let serves: Vec<Served> = now.chain(declared.former.iter().cloned()).filter(is_ours).collect();
        match let_go(&*self.0.parts.store, &mut object, &serves, by).await? {
            Held::Bound(wait, report) => {
                self.report(&mut object, Some(*report), None, by).await?;
                Ok(Some(wait))
            }
            Held::Gone => Ok(None),
        }
    }

    /// Forgets what a definition served before, once nothing is bound by it. Says what it waits for, and
    /// whether something was forgotten.
    async fn forget(
        &self,
        mut object: Object,
        declared: &Declared,
        cast: &Cast,
        by: &By,
    ) -> Result<(Option<Wait>, bool), Error> {
        let (mut wait, mut kept) = (None, Vec::new());
        for former in &declared.former {
            let is_elsewhere =
                cast.makes(&former.claim.group_kind, &former.implementation.managed.group_kind);
            let bound = match is_elsewhere {
                true => Vec::new(),
                false => bound_by(&*self.0.parts.store, former).await?,
            };
            if let Some(first) = bound.first() {
                wait = Some(Wait::change_of(first));
                kept.push(former.clone());
            }
        }
        let memory = served::to_remember(declared.definition.as_ref(), &kept);
        self.report(&mut object, None, Some(memory), by).await?;
        Ok((wait, kept.len() < declared.former.len()))
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
            all &=
                self.launch(propagate::controller(propagator, self.pace(), self.0.parts.authority.clone()));
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
        let (pace, authority) = (self.pace(), self.0.parts.authority.clone());
        match part.clone() {
            Part::DefaultClass(ensemble) => {
                policy::controller(DefaultClass::new(ensemble, hands), pace, authority)
            }
            Part::Schedule(manner, ensemble, implementation) => {
                let scheduler = Scheduler::new(manner, ensemble, implementation, hands);
                schedule::controller(scheduler, pace, authority)
            }
            Part::Bind(claim, implementation) => {
                bind::controller(Binder::new(claim, implementation, hands), pace, authority)
            }
            Part::Reclaim(claim, implementation) => {
                reclaim::controller(Reclaimer { claim, implementation, hands }, pace, authority)
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
    async fn report(
        &self,
        definition: &mut Object,
        ready: Option<Condition>,
        served: Option<Value>,
        by: &By,
    ) -> Result<(), Error> {
        let (before, generation) = (definition.status().clone(), definition.generation());
        let status = definition.get_mut("status");
        if let Some(ready) = ready {
            condition::set(status, ready.observed(generation), self.0.parts.clock.now());
        }
        if let Some(served) = served {
            status[served::FIELD] = served;
        }
        if *status == before {
            return Ok(());
        }
        match self.0.parts.store.update_status(definition.clone(), by).await {
            Ok(written) => *definition = written.decode(),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Part>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When to look again, where nothing is left to do: when what was waited for changes. What is not served yet
/// comes without a change.
fn rest(waits: Vec<Wait>, unserved: Option<&GroupKind>) -> Outcome {
    match (unserved, waits.is_empty()) {
        (None, true) => Outcome::Done,
        (None, false) => Outcome::WaitFor(waits),
        (Some(kind), true) => {
            Outcome::Requeue(format!("{kind} is not served yet").into(), Some(UNSERVED_PAUSE))
        }
        (Some(_), false) => Outcome::WaitAtMost(waits, UNSERVED_PAUSE),
    }
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
            Ok(outcome) => outcome,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_is_not_served_yet_is_looked_for_again_soon() {
        let wait = || vec![Wait::existence_of(item())];
        assert_eq!(rest(Vec::new(), None), Outcome::Done);
        assert_eq!(rest(wait(), None), Outcome::WaitFor(wait()));
        let kind = GroupKind::new("x.dev", "Redis");
        let soon = Outcome::Requeue("Redis.x.dev is not served yet".into(), Some(UNSERVED_PAUSE));
        assert_eq!(rest(Vec::new(), Some(&kind)), soon);
        assert_eq!(rest(wait(), Some(&kind)), Outcome::WaitAtMost(wait(), UNSERVED_PAUSE));
    }
}
