//! Watches chosen kinds in target clusters. What happens there only wakes: state is read again by whoever
//! is woken.
//!
//! One item for each entry: it has the watches that its reconcilers want and its credentials allow. A new
//! version of the credentials replaces them, and wakes nobody by itself: what is found then is compared with
//! what was known. What happened while nobody watched is noticed at the next look of the reconciler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{
    Change, Controller, Failure, Follow, Full, Handle, Lane, Objects, OnExit, Outcome, Reconciler, Request,
    Shutdown, source,
};
use concert_model::inventory::{Entry, names};
use concert_model::{GroupKind, ObjectKey, ResourceVersion};
use concert_store::{Error, Query, Store};
use tokio::sync::Notify;
use tracing::{info, warn};

use super::component::Interest;
use super::run::Fleet;

/// The section with the way into a cluster.
pub const CREDENTIALS: &str = "credentials";
/// The controller.
const TARGETS: &str = "mothership/targets";
/// Clusters that are watched from here; the agents of the others tell what happens there.
const TARGETS_MAX: usize = 1_000;
/// When a cluster is tried again that cannot be watched.
const RETRY: Duration = Duration::from_secs(30);
/// How often everything is listed again although watches go on.
const RELIST: Duration = Duration::from_secs(60 * 60);

/// The way to target clusters.
///
/// # Guarantees
/// Never leads to a link-local address, and runs nothing that the credentials name.
#[async_trait]
pub trait Reach: Send + Sync + 'static {
    /// The cluster of an entry, by its credentials as they are now; none if there are none.
    ///
    /// # Errors
    /// [`Unreachable`], without a word of the credentials.
    async fn reach(&self, entry: &str) -> Result<Option<Arc<dyn Store>>, Unreachable>;
}

/// Why a target cluster cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// The credentials are of no use, until there are others.
    #[error("the credentials of the entry cannot be used: {0}")]
    Useless(&'static str),
    /// The cluster is not found now, and may be later by the same credentials.
    #[error("the cluster of the entry cannot be found: {0}")]
    Lost(&'static str),
    /// The inventory does not say.
    #[error("the credentials of the entry cannot be read")]
    Unread(#[source] Error),
}

/// What is watched.
#[derive(Default)]
pub(super) struct Targets {
    handle: Mutex<Option<Handle>>,
    watched: Mutex<BTreeMap<Arc<str>, Watched>>,
    places: Mutex<Places>,
}

/// Who may be watched next.
#[derive(Default)]
struct Places {
    /// Those that are looked at now: each may take a place.
    coming: BTreeSet<Arc<str>>,
    /// Those that nobody looks at until there is a place.
    waiting: BTreeSet<ObjectKey>,
    /// Whether it was said that there is none.
    is_full: bool,
}

/// One cluster that is watched.
struct Watched {
    version: u64,
    wanted: BTreeMap<Interest, BTreeSet<Arc<str>>>,
    end: Shutdown,
    /// What was there, so that whoever watches anew knows what is new.
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    objects: BTreeMap<(Interest, ObjectKey), ResourceVersion>,
    /// What was listed once: from then on everything that is not known is new, also if there was nothing.
    listed: BTreeSet<Interest>,
}

struct Watching(Weak<Fleet>);

impl Fleet {
    /// Starts to watch, if there is a way.
    pub fn start_targets(self: &Arc<Self>) {
        if self.parts.reach.is_none() || self.targets.handle().is_some() {
            return;
        }
        let objects = Objects::new(Query::all(names::entry_kind())).changed(source::generation_or(""));
        let controller = Controller::builder(TARGETS, Arc::new(Watching(Arc::downgrade(self))))
            .objects(objects)
            .relist(Some(self.parts.relist));
        if let Ok(handle) = self.parts.fleet.start(controller.build()) {
            *self.targets.handle() = Some(handle);
        }
    }

    /// Somebody wants other events, or has come or gone.
    pub fn review_targets(&self) {
        let Some(handle) = self.targets.handle().clone() else { return };
        for state in handle.states() {
            handle.wake(&state.key, Lane::Poll, "reconcilers", Duration::ZERO);
        }
    }

    /// There are other credentials.
    pub fn review_target(&self, key: &ObjectKey) {
        if let Some(handle) = self.targets.handle().as_ref() {
            handle.wake(key, Lane::Event, "credentials", Duration::ZERO);
        }
    }

    /// Ends all watches.
    pub async fn stop_targets(&self) {
        // Taken away only afterwards: whoever is interrupted here ends them again.
        let is_watching = self.targets.handle().is_some();
        if is_watching {
            self.parts.fleet.stop(TARGETS, Duration::ZERO).await;
            *self.targets.handle() = None;
        }
        for (_, watched) in std::mem::take(&mut *self.targets.watched()) {
            watched.end.request();
        }
        *self.targets.places() = Places::default();
    }

    /// Which reconcilers want which events of an entry.
    fn wanted(&self, kind: &str) -> BTreeMap<Interest, BTreeSet<Arc<str>>> {
        let mut wanted: BTreeMap<Interest, BTreeSet<Arc<str>>> = BTreeMap::new();
        for (name, crew) in self.crews().iter().filter(|(_, it)| it.component.handles(kind)) {
            for interest in &crew.component.events {
                wanted.entry(interest.clone()).or_default().insert(name.clone());
            }
        }
        wanted
    }

    /// Looks at an entry if its cluster could be watched; whoever cannot waits for a place, at no cost.
    async fn review(self: &Arc<Self>, key: &ObjectKey) -> Result<Outcome, Error> {
        if !self.targets.admit(key) {
            return Ok(Outcome::Done);
        }
        let outcome = self.look_at(key).await;
        // One at a time: it takes the place that is free, or leaves it to the next.
        if let Some(next) = self.targets.leave(&key.name)
            && let Some(handle) = self.targets.handle().as_ref()
        {
            handle.wake(&next, Lane::Poll, "place", Duration::ZERO);
        }
        outcome
    }

    async fn look_at(self: &Arc<Self>, key: &ObjectKey) -> Result<Outcome, Error> {
        let id = &key.name;
        let object = match self.parts.inventory.get(key).await {
            Ok(object) => object.decode(),
            Err(Error::NotFound { .. }) => {
                self.targets.forget(id);
                return Ok(Outcome::Done);
            }
            Err(error) => return Err(error),
        };
        let entry = Entry(&object);
        let wanted = self.wanted(entry.kind());
        let version = self.sections.versions(id, [CREDENTIALS]).get(CREDENTIALS).copied().unwrap_or_default();
        if wanted.is_empty() || entry.is_deleting() {
            self.targets.forget(id);
            return Ok(Outcome::Done);
        }
        if version == 0 || entry.is_paused() {
            self.targets.suspend(id);
            return Ok(Outcome::Done);
        }
        if self.targets.has(id, version, &wanted) {
            return Ok(Outcome::Done);
        }
        let Some(reach) = &self.parts.reach else { return Ok(Outcome::Done) };
        match reach.reach(id).await {
            Ok(Some(store)) => {
                self.watch(id, version, wanted, store);
                Ok(Outcome::Done)
            }
            Ok(None) => Ok(Outcome::Done),
            Err(error @ Unreachable::Useless(_)) => {
                warn!(entry = %id, %error, "cannot watch the cluster of an entry");
                self.targets.suspend(id);
                Ok(Outcome::Done)
            }
            Err(error @ Unreachable::Lost(_)) => Ok(Outcome::Transient(Failure::from_error(&error))),
            Err(Unreachable::Unread(error)) => Err(error),
        }
    }

    fn watch(
        self: &Arc<Self>,
        entry: &Arc<str>,
        version: u64,
        wanted: BTreeMap<Interest, BTreeSet<Arc<str>>>,
        store: Arc<dyn Store>,
    ) {
        let end = self.tasks.shutdown().child();
        let mut watched = self.targets.watched();
        let before = watched.remove(entry);
        let known = before.as_ref().map(|it| it.known.clone()).unwrap_or_default();
        for (interest, reconcilers) in &wanted {
            let (fleet, entry, end) = (Arc::downgrade(self), entry.clone(), end.clone());
            let (interest, reconcilers, known) = (interest.clone(), reconcilers.clone(), known.clone());
            let query = Query::all(GroupKind::new(interest.group.clone(), interest.kind.clone()));
            let query = match &interest.namespace {
                Some(namespace) => query.in_namespace(namespace.clone()),
                None => query,
            };
            let (clock, chance) = (self.parts.clock.clone(), self.parts.chance.fork());
            let follow = Follow { store: store.clone(), clock, chance, query, relist: Some(RELIST) };
            let eye = Eye { fleet, entry, interest, reconcilers, known };
            let name = format!("mothership/targets/{}", eye.entry);
            self.tasks.spawn(name, OnExit::Log, async move {
                if eye.is_served(&follow, &end).await {
                    eye.watch(follow, end).await;
                }
            });
        }
        if let Some(before) = before {
            before.end.request();
        }
        info!(%entry, version, kinds = wanted.len(), "watching the cluster of an entry");
        watched.insert(entry.clone(), Watched { version, wanted, end, known });
    }
}

/// One watch of one kind in one cluster.
struct Eye {
    fleet: Weak<Fleet>,
    entry: Arc<str>,
    interest: Interest,
    reconcilers: BTreeSet<Arc<str>>,
    known: Arc<Mutex<Known>>,
}

impl Eye {
    /// Waits until the cluster has the kind, without a word: most clusters lack most of what somebody may
    /// want to hear of. Says whether it has, or the watch is over.
    async fn is_served(&self, follow: &Follow, end: &Shutdown) -> bool {
        while let Err(Error::UnknownKind { .. }) = follow.store.kind(&follow.query.kind).await {
            // What is not there was listed: whatever comes is new.
            self.known().listed.insert(self.interest.clone());
            tokio::select! {
                biased;
                () = end.requested() => return false,
                () = follow.clock.sleep(RETRY) => {}
            }
        }
        true
    }

    async fn watch(&self, follow: Follow, end: Shutdown) {
        let room = Notify::new();
        // Before the kind was ever listed there is nothing to compare a list with.
        let mut is_first = !self.known().listed.contains(&self.interest);
        let mut listed: BTreeSet<ObjectKey> = BTreeSet::new();
        let tell = |change: &Change| -> Result<(), Full> {
            let is_news = match change {
                Change::ListBegins => {
                    listed.clear();
                    false
                }
                Change::Present { object, is_listed } => {
                    if *is_listed {
                        listed.insert(object.key().clone());
                    }
                    self.note(object.key(), object.resource_version()) && !(*is_listed && is_first)
                }
                Change::Gone(object) => self.forget(|key| key == object.key()),
                Change::ListEnds => {
                    is_first = false;
                    self.known().listed.insert(self.interest.clone());
                    self.forget(|key| !listed.contains(key))
                }
                Change::Unserved => self.forget(|_| true),
            };
            if is_news {
                self.wake();
            }
            Ok(())
        };
        follow.run(&end, &room, tell).await;
    }

    /// Whether this is another state than the one that was known.
    fn note(&self, key: &ObjectKey, version: &ResourceVersion) -> bool {
        let place = (self.interest.clone(), key.clone());
        self.known().objects.insert(place, version.clone()).as_ref() != Some(version)
    }

    fn forget(&self, is_gone: impl Fn(&ObjectKey) -> bool) -> bool {
        let mut known = self.known();
        let before = known.objects.len();
        known.objects.retain(|(interest, key), _| *interest != self.interest || !is_gone(key));
        known.objects.len() < before
    }

    fn wake(&self) {
        let Some(fleet) = self.fleet.upgrade() else { return };
        for reconciler in &self.reconcilers {
            fleet.wake_softly(&self.entry, reconciler);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Targets {
    fn handle(&self) -> MutexGuard<'_, Option<Handle>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, entry: &str, version: u64, wanted: &BTreeMap<Interest, BTreeSet<Arc<str>>>) -> bool {
        self.watched().get(entry).is_some_and(|it| it.version == version && it.wanted == *wanted)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a place for an entry while it is looked at, or notes that it waits for one.
    fn admit(&self, key: &ObjectKey) -> bool {
        let (watched, mut places) = (self.watched(), self.places());
        let has_place = |id: &Arc<str>| watched.get(id).is_some_and(|it| it.version > 0);
        if has_place(&key.name) || taken(&watched, &places) < TARGETS_MAX {
            places.waiting.remove(key);
            places.coming.insert(key.name.clone());
            return true;
        }
        places.waiting.insert(key.clone());
        if !std::mem::replace(&mut places.is_full, true) {
            warn!(
                most = TARGETS_MAX,
                "no more clusters are watched: agents must tell what happens in others"
            );
        }
        false
    }

    /// An entry was looked at; says who can be next, if there is a place.
    fn leave(&self, entry: &str) -> Option<ObjectKey> {
        let (watched, mut places) = (self.watched(), self.places());
        places.coming.remove(entry);
        if taken(&watched, &places) >= TARGETS_MAX {
            return None;
        }
        places.is_full = !places.waiting.is_empty();
        places.waiting.pop_first()
    }

    /// Ends the watches of a cluster for now. What was known of it is kept, so that nothing is missed when
    /// they begin again.
    fn suspend(&self, entry: &str) {
        if let Some(watched) = self.watched().get_mut(entry) {
            watched.end.request();
            (watched.version, watched.wanted) = (0, BTreeMap::new());
        }
    }

    fn forget(&self, entry: &str) {
        if let Some(watched) = self.watched().remove(entry) {
            watched.end.request();
        }
    }
}

/// Places that are taken, or may be in a moment.
fn taken(watched: &BTreeMap<Arc<str>, Watched>, places: &Places) -> usize {
    let has_place = |id: &Arc<str>| watched.get(id).is_some_and(|it| it.version > 0);
    let coming = places.coming.iter().filter(|it| !has_place(it)).count();
    watched.values().filter(|it| it.version > 0).count() + coming
}

#[async_trait]
impl Reconciler for Watching {
    async fn reconcile(&self, request: Request) -> Outcome {
        let Some(fleet) = self.0.upgrade() else { return Outcome::Done };
        match fleet.review(&request.key).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Transient(Failure::from_error(&error).retried_after(RETRY)),
        }
    }
}
