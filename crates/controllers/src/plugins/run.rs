//! Starts and stops the controllers that `decide.rs` wants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::workers::Offers;
use concert_engine::{
    Controller, Engine, EnqueueError, Failure, Lane, Objects, Outcome, Reconciler, Request, Source,
    StartError, source,
};
use concert_model::no8s::{Resource, Rules, names};
use concert_model::{Encoded, GroupKind, Object, ObjectKey};
use concert_store::local::{DEFINITION_GROUP, DEFINITION_KIND};
use concert_store::{By, Error, PageRequest, Query};
use serde_json::{Value, json};
use tracing::{debug, info};

use super::Parts;
use super::decide::{Target, wanted};
use super::lifecycle::{Lifecycle, lane, owner};
use super::worker::{Worker, worker_kind};

/// The controller that starts and stops those of workers.
pub const CONTROLLER: &str = "plugins";

/// A run lasts as long as its lease, which the board ends; this only bounds what went wrong.
const RUN_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long what starts and stops controllers may take to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it is looked whether hosts came or fell silent.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// What runs for workers.
#[derive(Clone)]
pub struct Running(Arc<Registry>);

struct Registry {
    parts: Parts,
    running: Mutex<BTreeMap<Target, Settings>>,
}

/// What a controller was started with.
#[derive(Clone, Debug, PartialEq)]
struct Settings {
    concurrency: usize,
    rules: Rules,
}

/// Starts what is there, and from then on what comes.
///
/// # Errors
/// [`StartError::Taken`] if it runs already.
pub fn start(parts: Parts) -> Result<Running, StartError> {
    let registry = Arc::new(Registry { parts, running: Mutex::default() });
    let all = |_: &_| vec![item()];
    let definitions = Query::all(GroupKind::new(DEFINITION_GROUP, DEFINITION_KIND));
    let controller = Controller::builder(CONTROLLER, registry.clone())
        .source(Source::mapped(Query::all(worker_kind()), all).changed(source::except_status))
        .source(Source::mapped(definitions, all).changed(source::except_status))
        .concurrency(1);
    let handle = registry.parts.engine.start(controller.build())?;
    if let Err(error @ EnqueueError::Stopped { .. }) = handle.enqueue(&item(), Lane::Event, "start") {
        debug!(%error, "cannot look for workers");
    }
    Ok(Running(registry))
}

/// What was there before is lent in the same order as what comes.
fn by_phase(object: &Encoded) -> Lane {
    lane(Resource(&object.decode()).shown_phase())
}

/// What wakes a resource: another generation, a run that is asked for, and, once it is to go, that nobody
/// but who is in charge holds it any more. It may have been done with it while others still were not.
fn wakes(worker: Arc<str>) -> impl Fn(&Encoded) -> u64 + Send + Sync + 'static {
    let generation = source::generation_or(names::RECONCILE_AT);
    move |object| {
        let is_left = object.head().deleted_at.is_some() && is_left_to_owner(&worker, &object.decode());
        generation(object) ^ u64::from(is_left)
    }
}

fn is_left_to_owner(worker: &str, object: &Object) -> bool {
    object.finalizers() == [owner(worker, object)]
}

/// The one item of the controller: all workers together.
fn item() -> ObjectKey {
    ObjectKey::cluster(worker_kind(), "all")
}

impl Running {
    /// The controllers of workers that run, by name.
    pub fn controllers(&self) -> Vec<String> {
        self.0.lock().keys().map(Target::name).collect()
    }

    /// Stops everything, at once if it is lost. Leases end without a word: their items are due again after
    /// the next start.
    pub async fn stop(&self, is_lost: bool) {
        let engine = self.0.parts.engine.clone();
        engine.stop(CONTROLLER, if is_lost { Duration::ZERO } else { PATIENCE }).await;
        self.0.parts.board.close();
        for name in self.controllers() {
            engine.stop(&name, Duration::ZERO).await;
        }
        self.0.lock().clear();
    }
}

impl Registry {
    async fn pass(&self) -> Result<(), Error> {
        let page = self.parts.store.list(&Query::all(worker_kind()), &PageRequest::whole()).await?;
        let objects: Vec<Object> = page.items.iter().map(Encoded::decode).collect();
        let workers: Vec<Worker> = objects.iter().map(Worker::of).collect();
        let targets = wanted(&workers, &(self.parts.kinds)());
        let known: BTreeMap<&str, &Worker> = workers.iter().map(|it| (&*it.name, it)).collect();
        for worker in &workers {
            self.parts.board.set_terms(&worker.name, worker.terms);
        }
        let gone = self.outdated(&targets, &known);
        for target in &gone {
            self.parts.engine.stop(&target.name(), Duration::ZERO).await;
            self.lock().remove(target);
        }
        let left: BTreeSet<Arc<str>> = gone.into_iter().map(|it| it.worker).collect();
        for worker in left.iter().filter(|it| !known.contains_key(&***it)) {
            self.parts.board.remove(worker);
        }
        for target in targets {
            if let Some(worker) = known.get(&*target.worker).filter(|_| !self.lock().contains_key(&target)) {
                self.begin(target, worker);
            }
        }
        for (object, worker) in objects.into_iter().zip(&workers) {
            self.tell_hosts(object, &worker.name).await?;
        }
        Ok(())
    }

    /// Has the status of a worker say which hosts it has, if that is not what it says.
    async fn tell_hosts(&self, mut object: Object, worker: &str) -> Result<(), Error> {
        let view = self.parts.board.view(worker);
        let hosts: Vec<Value> =
            view.hosts.iter().map(|it| json!({"name": it.host, "phase": it.phase()})).collect();
        let status = json!({"phase": view.phase(), "hosts": hosts});
        if *object.status() == status {
            return Ok(());
        }
        object.set("status", status);
        match self.parts.store.update_status(object, &By::actor(CONTROLLER).because("hosts")).await {
            // It was registered anew, or is gone: the next look is at what is.
            Ok(_) | Err(Error::Conflict { .. } | Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What runs and should not, or not like this.
    fn outdated(&self, targets: &BTreeSet<Target>, known: &BTreeMap<&str, &Worker>) -> Vec<Target> {
        let is_right = |target: &Target, settings: &Settings| {
            let worker = known.get(&*target.worker);
            targets.contains(target) && worker.is_some_and(|it| self.settings(it) == *settings)
        };
        self.lock()
            .iter()
            .filter(|(target, it)| !is_right(target, it))
            .map(|(target, _)| target.clone())
            .collect()
    }

    fn begin(&self, target: Target, worker: &Worker) {
        let settings = self.settings(worker);
        let parts = &self.parts;
        let meaning = Lifecycle {
            store: parts.store.clone(),
            history: parts.history.clone(),
            clock: parts.clock.clone(),
            chance: parts.chance.fork(),
            rules: settings.rules,
            worker: worker.name.clone(),
        };
        let (name, board) = (worker.name.clone(), parts.board.clone());
        let offers = Offers::new(board.clone(), name.clone(), Arc::new(meaning), parts.work.clone());
        let objects = Objects::new(target.query()).changed(wakes(worker.name.clone()));
        let controller = Controller::builder(target.name(), Arc::new(offers))
            .objects(objects.first(|it| it.head().deleted_at.is_some()).listed_in(by_phase))
            .demand(board.demand(name, target.kind.kind.clone()))
            .concurrency(settings.concurrency)
            .parallelism(1)
            .timeout(RUN_MAX);
        match parts.engine.start(controller.build()) {
            Ok(_) => {
                info!(worker = %worker.name, kind = %target.kind, "worker is in charge");
                self.lock().insert(target, settings);
            }
            // One of that name has not ended yet: the next look starts it.
            Err(error) => debug!(%error, "cannot start yet"),
        }
    }

    fn settings(&self, worker: &Worker) -> Settings {
        let rules = self.parts.rules;
        let rules = Rules { drift: worker.terms.resync.unwrap_or(rules.drift), ..rules };
        Settings { concurrency: worker.concurrency, rules }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Target, Settings>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Reconciler for Registry {
    async fn reconcile(&self, _: Request) -> Outcome {
        match self.pass().await {
            Ok(()) => Outcome::Poll(LOOK_EVERY),
            // Their kind is served before anybody can register.
            Err(Error::UnknownKind { .. }) => Outcome::Done,
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.controllers()).finish()
    }
}

/// The engine that it all runs in.
impl Running {
    /// For whoever asks about an item.
    pub fn engine(&self) -> &Engine {
        &self.0.parts.engine
    }
}
