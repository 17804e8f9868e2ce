//! Does what `decide.rs` says about configurations.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{Controller, Objects, Outcome, Reconciler, Request, Source, source};
use concert_model::{Encoded, GroupVersionKind, LabelSelector, Object, ObjectKey};
use concert_store::{By, Clock, Delete, Error, Fence, PageRequest, Query, Store};

use super::super::connection::scope::Scope;
use super::super::event::{Event, Recorder};
use super::super::vocabulary::config::{
    FINALIZER, IN_USE_MESSAGE, LABEL_CONFIG, LABEL_CONFIG_KIND, USAGE_ACCOUNTING,
};
use super::decide::{Step, decide};

/// Until the next try after a failure.
const RETRY: Duration = Duration::from_secs(30);

/// How long one pass may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Between two counts of the same usages. A hundred thousand objects that appear at once would otherwise
/// mean as many counts of up to a hundred thousand.
const PAUSE: Duration = Duration::from_secs(1);

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
    counted: Mutex<HashMap<ObjectKey, Duration>>,
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
        Self { store, clock, recorder, config, usage, name, counted: Mutex::default() }
    }

    /// What its controller is called.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    async fn pass(&self, key: &ObjectKey, by: &By) -> Result<Outcome, Error> {
        let mut config = match self.store.get(key).await {
            Ok(config) => config.decode(),
            Err(Error::NotFound { .. }) => {
                self.lock().remove(key);
                return Ok(Outcome::Done);
            }
            Err(other) => return Err(other),
        };
        if let Some(wait) = self.pause(key) {
            return Ok(Outcome::After(wait));
        }
        let users = self.count(&config, by).await?;
        for _ in 0..STEPS_MAX {
            let written = match decide(&config, users, self.clock.now()) {
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
                    return Ok(Outcome::Done);
                }
            };
            config = written.decode();
        }
        Ok(Outcome::Requeue("configuration does not settle".into(), None))
    }

    /// How long to leave the usages of a configuration alone; none if they may be counted now.
    fn pause(&self, key: &ObjectKey) -> Option<Duration> {
        let now = self.clock.elapsed();
        let mut counted = self.lock();
        let since = counted.get(key).map(|at| now.saturating_sub(*at));
        if let Some(since) = since.filter(|it| *it < PAUSE) {
            return Some(PAUSE.saturating_sub(since));
        }
        counted.insert(key.clone(), now);
        None
    }

    /// Counts usages that have a controller. Those that lost it, as in a restored backup, are deleted: they
    /// are stale, or will be made again.
    async fn count(&self, config: &Object, by: &By) -> Result<usize, Error> {
        let kind = &self.usage.group_kind;
        let mut query =
            Query::all(kind.clone()).with_labels(LabelSelector::label(LABEL_CONFIG, config.name()));
        if !config.namespace().is_empty() && self.store.kind(kind).await?.is_namespaced {
            query = query.in_namespace(config.namespace());
        }
        let mut page = PageRequest { limit: Some(PAGE_OBJECTS_MAX), token: None };
        let mut users = 0;
        loop {
            let listed = self.store.list(&query, &page).await?;
            for usage in listed.items.iter().filter(|it| self.is_of_kind(it)) {
                if usage.head().owners.iter().any(concert_model::OwnerReference::is_controller) {
                    users += 1;
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

    async fn delete(&self, usage: &Encoded, by: &By) -> Result<(), Error> {
        // Only in this state: it may be given its controller back at this very moment.
        let (uid, version) = (usage.head().uid.clone(), usage.resource_version().clone());
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
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
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
/// goes. Its writes carry `fence`.
pub fn controller(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    recorder: Arc<dyn Recorder>,
    config: GroupVersionKind,
    usage: GroupVersionKind,
    fence: Option<Fence>,
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
        .fence(fence)
        .build()
}
