//! Starts and stops what reconcilers that come and go need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::workers::Offers;
use concert_engine::{
    Breakers, Controller, Durability, EnqueueError, Failure, Handle, Lane, Objects, OnExit, Outcome, Reason,
    Reconciler, Request, Source, StartError, Tasks, breaker, source,
};
use concert_model::inventory::names;
use concert_model::{Encoded, ObjectKey};
use concert_store::{Error, PageRequest, Query};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;
use tracing::{debug, info};

use super::Parts;
use super::component::Component;
use super::debounce::Debounce;
use super::entries::Entries;
use super::items::Items;
use super::lending::Lending;
use super::metrics::Metrics;
use super::sections::Sections;
use super::targets::Targets;
use super::triggers::{self, Missed};
use super::vocabulary::{CONTROLLER, ENTRIES, RECONCILE_AT, controller_of};
use crate::plugins::worker_kind;

/// A run lasts as long as its lease, which the board ends; this only bounds what went wrong.
const RUN_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long what runs may take to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// What runs for a fleet. Cheap to clone.
#[derive(Clone)]
pub struct Running(pub(super) Arc<Fleet>);

/// All that is known of a fleet.
pub(super) struct Fleet {
    pub parts: Parts,
    pub tasks: Tasks,
    pub sections: Arc<Sections>,
    pub items: Items,
    pub metrics: Metrics,
    pub breakers: Breakers,
    /// Has sections listed again.
    pub relist: Notify,
    pub targets: Targets,
    entries: Arc<OnceLock<Handle>>,
    crews: Mutex<BTreeMap<Arc<str>, Crew>>,
    missed: Mutex<Missed>,
    is_listening: AtomicBool,
    words: Mutex<BTreeMap<Arc<str>, Reason>>,
}

/// A reconciler that is registered.
pub(super) struct Crew {
    pub component: Arc<Component>,
    pub handle: Handle,
    pub debounce: Debounce,
    /// Another one comes in its place, which whatever this one is told does not reach.
    pub is_leaving: bool,
}

/// Starts what is there, and from then on what comes.
///
/// # Errors
/// [`StartError::Taken`] if it runs already.
pub fn start(parts: Parts) -> Result<Running, StartError> {
    let entries: Arc<OnceLock<Handle>> = Arc::default();
    let told = entries.clone();
    let changed = move |entry: &str| {
        if let Some(handle) = told.get() {
            handle.enqueue(&names::entry_key(entry), Lane::Event, "item").ok();
        }
    };
    let fleet = Arc::new(Fleet {
        tasks: parts.tasks.group(),
        sections: Arc::new(Sections::new()),
        items: Items::new(parts.store.clone(), Arc::new(changed)),
        metrics: Metrics::default(),
        breakers: Breakers::new(breaker::Config::default()),
        relist: Notify::new(),
        targets: Targets::default(),
        entries,
        crews: Mutex::default(),
        missed: Mutex::default(),
        is_listening: AtomicBool::new(false),
        words: Mutex::default(),
        parts,
    });
    let all = |_: &_| vec![item()];
    let controller = Controller::builder(CONTROLLER, Arc::new(Registry(fleet.clone())))
        .source(Source::mapped(Query::all(worker_kind()), all).changed(source::except_status))
        .relist(Some(fleet.parts.relist))
        .concurrency(1);
    let handle = fleet.parts.engine.start(controller.build())?;
    triggers::start(&fleet);
    if let Err(error @ EnqueueError::Stopped { .. }) = handle.enqueue(&item(), Lane::Event, "start") {
        debug!(%error, "cannot look for reconcilers");
    }
    Ok(Running(fleet))
}

/// The one item of the controller: all reconcilers together.
fn item() -> ObjectKey {
    ObjectKey::cluster(worker_kind(), "all")
}

impl Running {
    /// The reconcilers that are registered.
    pub fn reconcilers(&self) -> Vec<Arc<Component>> {
        self.0.crews().values().map(|it| it.component.clone()).collect()
    }

    /// Stops everything, at once if it is lost. Leases end without a word: after the next start their items are
    /// due again, but for those that were ready and have seen all there is, which are looked at some time.
    pub async fn stop(&self, is_lost: bool) {
        let Parts { engine, fleet, .. } = &self.0.parts;
        let patience = if is_lost { Duration::ZERO } else { PATIENCE };
        self.0.set_listening(false);
        engine.stop(CONTROLLER, patience).await;
        self.0.stop_targets().await;
        self.0.tasks.stop(patience).await;
        // First: without reconcilers it would tell every entry that there are none.
        fleet.stop(ENTRIES, patience).await;
        // Taken away only afterwards: whoever is interrupted here stops them again.
        let crews: Vec<Arc<str>> = self.0.crews().keys().cloned().collect();
        for name in &crews {
            fleet.stop(&controller_of(name), Duration::ZERO).await;
        }
        self.0.crews().clear();
    }
}

/// The reconciler of reconcilers.
struct Registry(Arc<Fleet>);

impl Registry {
    async fn pass(&self) -> Result<(), Error> {
        let fleet = &self.0;
        fleet.items.ready().await;
        fleet.sections.ready().await;
        let page = fleet.parts.store.list(&Query::all(worker_kind()), &PageRequest::whole()).await?;
        let components = page.items.iter().filter_map(|it| Component::of(&it.decode()));
        let wanted: BTreeMap<Arc<str>, Component> = components.map(|it| (it.name.clone(), it)).collect();
        let is_right = |crew: &Crew| wanted.get(&crew.component.name) == Some(&*crew.component);
        let outdated: BTreeSet<Arc<str>> =
            fleet.crews().iter().filter(|(_, it)| !is_right(it)).map(|(name, _)| name.clone()).collect();
        fleet.leave(&outdated);
        for name in &outdated {
            fleet.parts.fleet.stop(&controller_of(name), Duration::ZERO).await;
            fleet.crews().remove(name);
            if !wanted.contains_key(name) {
                fleet.parts.board.remove(name);
            }
        }
        fleet.missed().keep_only(|name| wanted.contains_key(name));
        let mut has_changed = !outdated.is_empty();
        for (name, component) in wanted {
            if !fleet.crews().contains_key(&name) {
                fleet.begin(component);
                has_changed = true;
            }
        }
        fleet.set_listening(true);
        fleet.summarise_all(has_changed);
        fleet.start_targets();
        if has_changed {
            fleet.review_targets();
        }
        Ok(())
    }
}

#[async_trait]
impl Reconciler for Registry {
    async fn reconcile(&self, _: Request) -> Outcome {
        match self.pass().await {
            Ok(()) => Outcome::Done,
            // Nobody can have registered.
            Err(Error::UnknownKind { .. }) => {
                self.0.set_listening(true);
                Outcome::Done
            }
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}

/// As much of an entry as the queue needs.
#[derive(Default, Deserialize)]
struct Rest {
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    tenant: String,
}

fn rest(entry: &Encoded) -> Spec {
    serde_json::from_slice::<Rest>(entry.body().rest()).unwrap_or_default().spec
}

/// Tenants take turns. Two that fall together share one turn, which is fair enough.
fn share(tenant: &str) -> u32 {
    tenant.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl Fleet {
    pub fn crews(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Crew>> {
        self.crews.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn words(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Reason>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn missed(&self) -> MutexGuard<'_, Missed> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is known who works on entries, and nobody is being replaced.
    pub fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Acquire)
    }

    fn set_listening(&self, is_listening: bool) {
        self.is_listening.store(is_listening, Ordering::Release);
    }

    /// These are about to go, perhaps for others of their names: nothing is told to them any more.
    fn leave(&self, names: &BTreeSet<Arc<str>>) {
        if names.is_empty() {
            return;
        }
        self.set_listening(false);
        for (_, crew) in self.crews().iter_mut().filter(|(name, _)| names.contains(*name)) {
            crew.is_leaving = true;
        }
    }

    fn begin(self: &Arc<Self>, component: Component) {
        let (parts, component) = (&self.parts, Arc::new(component));
        parts.board.set_terms(&component.name, component.terms);
        let paths = component.watches.iter().filter_map(|it| Some((&*it.section, it.path.as_deref()?)));
        if self.sections.care_for(paths) {
            self.relist.notify_one();
        }
        match parts.fleet.start(self.controller(&component)) {
            Ok(handle) => {
                info!(reconciler = %component.name, "component reconciler is in charge");
                let (name, debounce) = (component.name.clone(), Debounce::default());
                let crew = Crew { component, handle: handle.clone(), debounce, is_leaving: false };
                self.crews().insert(name.clone(), crew);
                let fleet = Arc::downgrade(self);
                self.tasks.spawn(format!("mothership/catch-up/{name}"), OnExit::Log, async move {
                    handle.ready().await;
                    if let Some(fleet) = fleet.upgrade() {
                        fleet.catch_up(&name);
                    }
                });
            }
            // One of that name has not ended yet: the next look starts it.
            Err(error) => debug!(%error, "cannot start yet"),
        }
    }

    fn controller(self: &Arc<Self>, component: &Arc<Component>) -> Controller {
        let (parts, name) = (&self.parts, component.name.clone());
        let lending = Lending {
            fleet: self.clone(),
            component: component.clone(),
            fence: Mutex::default(),
            in_vain: Mutex::default(),
        };
        let offers =
            Offers::new(parts.board.clone(), name.clone(), Arc::new(lending), parts.work.clone()).sparing();
        let (kinds, settled) = (component.clone(), (Arc::downgrade(self), component.clone()));
        let objects = Objects::new(Query::all(names::entry_kind()))
            .changed(source::generation_or(RECONCILE_AT))
            .only(move |entry| {
                let is_going = entry.head().deleted_at.is_some();
                kinds.handles(&rest(entry).kind) || is_going && kinds.concerns(&entry.decode())
            })
            .shared(|entry| share(&rest(entry).tenant))
            .settled(move |entry| {
                settled.0.upgrade().is_some_and(|fleet| fleet.is_settled(&settled.1, entry))
            });
        Controller::builder(controller_of(&name), Arc::new(offers))
            .objects(objects)
            .demand(parts.board.demand(name, "Cluster"))
            .concurrency(component.concurrency)
            .parallelism(1)
            .poll(component.resync())
            .durability(Durability::Outcomes(parts.work.clone()))
            .versions(self.sections.clone())
            .breakers(self.breakers.clone())
            .authority(parts.fence.clone().into())
            .relist(Some(parts.relist))
            .timeout(RUN_MAX)
            .build()
    }

    /// Whether an item is ready for its entry as it is: then it is only looked at, some time.
    fn is_settled(&self, component: &Component, entry: &Encoded) -> bool {
        let head = entry.head();
        let known = self.items.get(&entry.key().name, &component.name);
        let Some(known) = known.filter(|it| it.is_of(&head.uid)) else { return false };
        let status = known.status();
        known.state == concert_model::inventory::State::Ready
            && !known.is_stopped
            && head.deleted_at.is_none()
            && status["observedGeneration"] == json!(head.generation)
            && self.has_observed(component, &entry.key().name, &status)
    }

    fn has_observed(&self, component: &Component, entry: &str, status: &serde_json::Value) -> bool {
        status["observedSections"] == json!(self.sections.versions(entry, component.sections()))
    }

    /// Wakes all items whose sections have changed while nobody listened, and those that could not be woken.
    fn catch_up(&self, reconciler: &str) {
        let Some(component) = self.crews().get(reconciler).map(|it| it.component.clone()) else { return };
        for (entry, name, known) in self.items.all() {
            if *name == *reconciler && !self.has_observed(&component, &entry, &known.status()) {
                self.wake(&entry, reconciler, Lane::Event, "missed");
            }
        }
        self.wake_missed(reconciler);
    }

    /// Has one entry summed up.
    pub fn summarise_soon(&self, entry: &str) {
        if let Some(handle) = self.entries.get() {
            handle.enqueue(&names::entry_key(entry), Lane::Event, "item").ok();
        }
    }

    /// Has all entries summed up, as soon as it is known who works on them, and again when that changes.
    fn summarise_all(self: &Arc<Self>, has_changed: bool) {
        let Some(handle) = self.entries.get() else {
            let entries = Entries(Arc::downgrade(self));
            // Every write counts: whoever else writes a status does not have the last word.
            let objects = Objects::new(Query::all(names::entry_kind()));
            let controller = Controller::builder(ENTRIES, Arc::new(entries)).objects(objects);
            let controller = controller.relist(Some(self.parts.relist));
            if let Ok(handle) = self.parts.fleet.start(controller.build()) {
                self.entries.set(handle).ok();
            }
            // Those too that are gone: of them something may be left.
            self.items.entries().iter().for_each(|it| self.summarise_soon(it));
            return;
        };
        if has_changed {
            for state in handle.states() {
                handle.wake(&state.key, Lane::Poll, "reconcilers", Duration::ZERO);
            }
        }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.crews().keys()).finish()
    }
}
