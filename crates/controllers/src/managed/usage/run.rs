//! Does what `decide.rs` says about configurations.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{Authority, Controller, Objects, Outcome, Reconciler, Request, Source, source};
use concert_model::{Encoded, GroupVersionKind, LabelSelector, Object, ObjectKey};
use concert_store::{By, Clock, Delete, Error, PageRequest, Query, Store};

use super::super::connection::scope::Scope;
use super::super::event::{Event, Recorder};
use super::super::vocabulary::config::{
    FINALIZER, IN_USE_MESSAGE, LABEL_CONFIG, LABEL_CONFIG_KIND, USAGE_ACCOUNTING, USAGE_FINALIZER,
};
use super::decide::{Step, decide};

/// Until the next try after a failure, or the next look at a usage that is to go.
pub(super) const RETRY: Duration = Duration::from_secs(30);

/// How long one pass may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Shortest time between two counts of the same usages. A hundred thousand objects that appear at once would
/// otherwise mean as many counts of up to a hundred thousand.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest one: as long as whoever waits for the last user to go is kept waiting after a failure.
const PAUSE_MAX: Duration = RETRY;

/// How much longer than a count the pause after it is: while users come all the time, counting them is to be a
/// small part of the work of both sides.
const PAUSE_TIMES: u32 = 20;

/// Usages that are counted in one go.
const PAGE_OBJECTS_MAX: usize = 1000;

/// Steps of one pass: finalizer, status and rest, with one to spare.
const STEPS_MAX: usize = 4;

/// Counts the users of the configurations of one kind.
pub struct UsageReconciler {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    recorder: Arc<dyn Recorder>,
    config: GroupVersionKind,
    usage: GroupVersionKind,
    name: Arc<str>,
    /// Until when the usages of a configuration are left alone.
    pauses: Mutex<HashMap<ObjectKey, Duration>>,
}

impl UsageReconciler {
    /// For configurations of the kind `config`, whose users leave a `usage` each.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        recorder: Arc<dyn Recorder>,
        config: GroupVersionKind,
        usage: GroupVersionKind,
    ) -> Self {
        let name = format!("providerconfig/{}", config.group_kind).to_lowercase().into();
        Self { store, clock, recorder, config, usage, name, pauses: Mutex::default() }
    }

    /// What its controller is called.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    async fn pass(&self, key: &ObjectKey, by: &By) -> Result<Outcome, Error> {
        let started = self.clock.elapsed();
        let until = self.lock().get(key).copied().unwrap_or_default();
        if until > started {
            return Ok(Outcome::After(until.saturating_sub(started)));
        }
        let config = match self.store.get(key).await {
            Ok(config) => Some(config.decode()),
            Err(Error::NotFound { .. }) => None,
            Err(other) => return Err(other),
        };
        let users = match self.count(key, by).await {
            // Where there is no such kind any more, nobody can be using anything.
            Err(Error::UnknownKind { .. }) => Users::default(),
            counted => counted?,
        };
        let now = self.clock.elapsed();
        self.lock().insert(key.clone(), now + pause_after(now.saturating_sub(started)));
        let Some(mut config) = config else {
            // Whoever names a configuration that is not there is on record all the same, and nobody else
            // lets go of what is left of it.
            self.lock().remove(key);
            return Ok(users.rest());
        };
        for _ in 0..STEPS_MAX {
            let written = match decide(&config, users.count, self.clock.now()) {
                Step::AddFinalizer => {
                    config.add_finalizer(FINALIZER);
                    self.store.update(config, by).await?
                }
                Step::RemoveFinalizer => {
                    config.remove_finalizer(FINALIZER);
                    self.store.update(config, by).await?;
                    self.lock().remove(key);
                    return Ok(Outcome::Done);
                }
                Step::Report(status) => {
                    config.set("status", status);
                    self.store.update_status(config, by).await?
                }
                Step::Rest { is_blocked } => {
                    if is_blocked {
                        self.warn(key, &config);
                    }
                    return Ok(users.rest());
                }
            };
            config = written.decode();
        }
        Ok(Outcome::Requeue("configuration does not settle".into(), None))
    }

    /// Counts usages that have a controller. Those that lost it, as in a restored backup, or that are left of
    /// one that went without a word, are deleted: they are stale, or will be made again.
    async fn count(&self, config: &ObjectKey, by: &By) -> Result<Users, Error> {
        let kind = &self.usage.group_kind;
        let mut query =
            Query::all(kind.clone()).with_labels(LabelSelector::label(LABEL_CONFIG, &config.name));
        if !config.namespace.is_empty() && self.store.kind(kind).await?.is_namespaced {
            query = query.in_namespace(&*config.namespace);
        }
        let mut page = PageRequest { limit: Some(PAGE_OBJECTS_MAX), token: None };
        let mut users = Users::default();
        loop {
            let listed = self.store.list(&query, &page).await?;
            for usage in listed.items.iter().filter(|it| self.is_of_kind(it)) {
                if self.has_user(usage).await? {
                    users.count += 1;
                    users.is_leaving |= usage.head().deleted_at.is_some();
                } else {
                    self.delete(usage, by).await?;
                }
            }
            match listed.next {
                Some(token) => page.token = Some(token),
                None => return Ok(users),
            }
        }
    }

    /// Whether a usage has a controller. One that is to go may only say so.
    async fn has_user(&self, usage: &Encoded) -> Result<bool, Error> {
        let mut owners = usage.head().owners.iter();
        let Some(owner) = owners.find(|it| it.is_controller()) else { return Ok(false) };
        let Ok(kind) = GroupVersionKind::parse(&owner.api_version, &owner.kind) else { return Ok(true) };
        if usage.head().deleted_at.is_none() {
            return Ok(true);
        }
        let kind = kind.group_kind;
        let key = match self.store.kind(&kind).await {
            Ok(it) if it.is_namespaced => {
                ObjectKey::namespaced(kind, usage.key().namespace.clone(), owner.name.as_str())
            }
            Ok(_) => ObjectKey::cluster(kind, owner.name.as_str()),
            Err(Error::UnknownKind { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        match self.store.get(&key).await {
            Ok(found) => Ok(found.head().uid == owner.uid),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes a usage that nobody will let go.
    async fn delete(&self, usage: &Encoded, by: &By) -> Result<(), Error> {
        // Only in this state: it may be given its controller back at this very moment.
        let (uid, mut version) = (usage.head().uid.clone(), usage.resource_version().clone());
        let mut freed = usage.decode();
        if freed.remove_finalizer(USAGE_FINALIZER) {
            match self.store.update(freed, by).await {
                Ok(written) => version = written.resource_version().clone(),
                Err(Error::NotFound { .. }) => return Ok(()),
                Err(other) => return Err(other),
            }
        }
        let options = Delete { uid: Some(uid), resource_version: Some(version), ..Delete::default() };
        match self.store.delete(usage.key(), &options, by).await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Usages by objects outside of namespaces name no kind.
    fn is_of_kind(&self, usage: &Encoded) -> bool {
        usage.head().labels.get(LABEL_CONFIG_KIND).is_none_or(|it| **it == *self.config.group_kind.kind)
    }

    fn warn(&self, key: &ObjectKey, config: &Object) {
        let Some(uid) = config.uid() else { return };
        let event = Event {
            object: key.clone(),
            api_version: config.api_version().to_owned(),
            uid,
            resource_version: config.resource_version(),
            is_warning: true,
            reason: USAGE_ACCOUNTING,
            message: IN_USE_MESSAGE.to_owned(),
            annotations: BTreeMap::new(),
        };
        self.recorder.record(&self.name, event);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Duration>> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long to leave usages alone after a count that took so long.
pub(super) fn pause_after(count: Duration) -> Duration {
    (count * PAUSE_TIMES).clamp(PAUSE, PAUSE_MAX)
}

/// Who uses a configuration.
#[derive(Clone, Copy, Default)]
struct Users {
    count: usize,
    /// Whether a usage is to go whose user is still there.
    is_leaving: bool,
}

impl Users {
    /// Nothing more to do now. That the user of a usage has gone is no change of the usage: somebody has to
    /// look.
    fn rest(self) -> Outcome {
        if self.is_leaving { Outcome::After(RETRY) } else { Outcome::Done }
    }
}

#[async_trait]
impl Reconciler for UsageReconciler {
    async fn reconcile(&self, request: Request) -> Outcome {
        let by = By { fence: request.fence, ..By::actor(self.name.clone()) }.because("usage accounting");
        let outcome = self.pass(&request.key, &by).await;
        outcome.unwrap_or_else(|error| {
            // The next try counts at once.
            self.lock().remove(&request.key);
            match error {
                Error::Conflict { .. } => Outcome::Requeue("conflict".into(), None),
                error => Outcome::Requeue(error.to_string().into(), Some(RETRY)),
            }
        })
    }
}

/// The controller of a kind of configuration: it looks when one changes, and when a usage of one comes or
/// goes. It works under `authority`.
pub fn controller(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    recorder: Arc<dyn Recorder>,
    config: GroupVersionKind,
    usage: GroupVersionKind,
    authority: Authority,
) -> Controller {
    let scope = Scope::new(store.clone(), config.group_kind.clone());
    let objects = Objects::new(Query::all(config.group_kind.clone())).changed(source::except_status);
    let usages = Query::all(usage.group_kind.clone());
    let reconciler = Arc::new(UsageReconciler::new(store, clock, recorder, config, usage));
    let labelled = reconciler.clone();
    let map = move |usage: &Encoded| match usage.head().labels.get(LABEL_CONFIG) {
        Some(name) if labelled.is_of_kind(usage) => scope.keys(&usage.key().namespace, name),
        _ => Vec::new(),
    };
    Controller::builder(reconciler.name.clone(), reconciler)
        .objects(objects)
        .source(Source::mapped(usages, map).because("usage"))
        .timeout(TIMEOUT)
        .authority(authority)
        .build()
}
