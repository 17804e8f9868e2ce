//! Does what `decide.rs` says about owned objects and their owners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{
    Controller, Engine, Failure, Handle, Lane, Objects, Outcome, Reconciler, Request, StartError, Tasks,
    Watched,
};
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Uid};
use concert_store::local::{DEFINITION_GROUP, DEFINITION_KIND};
use concert_store::{By, Chance, Clock, Delete, Error, Fence, Propagation, Query, Store};
use serde_json::Value;
use tracing::debug;

use super::super::vocabulary::controller::OWNERS;
use super::super::vocabulary::finalizer::{FOREGROUND, ORPHAN};
use super::super::{Kinds, Parts, finalizers};
use super::decide::{Facts, Step, decide};
use super::index::Index;

/// Collects objects by their owners.
pub struct Owners {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) chance: Chance,
    pub(super) tasks: Tasks,
    kinds: Kinds,
    index: Mutex<Index>,
    watches: Mutex<BTreeMap<GroupKind, Tasks>>,
    /// None before the controller has started and after it was stopped.
    handle: Mutex<Option<Handle>>,
    /// Counts lists that were completed.
    pub(super) lists: Watched<u64>,
    /// Itself, for the watches that a run starts.
    me: Weak<Owners>,
}

impl Owners {
    /// Starts to watch all kinds and to collect.
    ///
    /// # Errors
    /// [`StartError::Taken`].
    pub fn start(parts: &Parts) -> Result<Arc<Self>, StartError> {
        let owners = Arc::new_cyclic(|me| Self {
            store: parts.store.clone(),
            clock: parts.clock.clone(),
            chance: parts.chance.fork(),
            tasks: parts.tasks.group(),
            kinds: parts.kinds.clone(),
            index: Mutex::default(),
            watches: Mutex::default(),
            handle: Mutex::default(),
            lists: Watched::default(),
            me: me.clone(),
        });
        let handle = parts.engine.start(owners.controller(parts.fence.clone()))?;
        *owners.lock_handle() = Some(handle);
        // The run of a definition, or nobody where there is none: it starts the watches.
        let first = ObjectKey::cluster(definitions(), "");
        if let Some(handle) = owners.handle()
            && let Err(error) = handle.enqueue(&first, Lane::User, "start")
        {
            debug!(%error, "cannot start to watch");
        }
        Ok(owners)
    }

    /// Definitions are the objects of the controller, so that it notices when kinds come and go. All
    /// other keys are items only while there is something to do about them.
    fn controller(self: &Arc<Self>, fence: Option<Fence>) -> Controller {
        Controller::builder(OWNERS, self.clone())
            .objects(Objects::new(Query::all(definitions())))
            .authority(fence.into())
            .build()
    }

    /// Whether all objects of all kinds have been seen.
    pub fn is_ready(&self) -> bool {
        self.index().is_complete(&self.collected_kinds(), None)
    }

    /// Completes when all objects of all kinds have been seen.
    pub async fn ready(&self) {
        self.lists.wait_for(|_| self.is_ready()).await;
    }

    /// How many objects with owners and how many owners are known.
    pub fn known(&self) -> (usize, usize) {
        self.index().len()
    }

    /// Stops to watch and to collect.
    pub async fn stop(&self, engine: &Engine, patience: Duration) {
        engine.stop(OWNERS, patience).await;
        self.tasks.stop(patience).await;
        self.watches().clear();
        // It leads back here.
        self.lock_handle().take();
    }

    /// Judges everything now that names an owner of `kind`, which is about to go. False if not all that
    /// may has been seen yet.
    ///
    /// # Errors
    /// As the store; some may have been judged.
    pub async fn settle(&self, kind: &GroupKind, by: &By) -> Result<bool, Error> {
        let dependents = {
            let kinds = self.collected_kinds();
            let mut index = self.index();
            if !index.is_complete(&kinds, None) {
                return Ok(false);
            }
            index.dependents_on(kind)
        };
        for key in dependents {
            self.collect(&key, by).await?;
        }
        Ok(true)
    }

    async fn collect(&self, key: &ObjectKey, by: &By) -> Result<(), Error> {
        let object = match self.store.get(key).await {
            Ok(object) => object,
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        match decide(&self.facts(&object).await?) {
            Step::Rest => Ok(()),
            Step::Orphan => self.orphan(&object, by).await,
            Step::Foreground => self.foreground(&object, by).await,
            Step::Untie(owners) => self.untie(&object, &owners, by).await,
            Step::Delete(propagation) => self.delete(&object, propagation, by).await,
        }
    }

    async fn facts(&self, object: &Encoded) -> Result<Facts, Error> {
        let head = object.head();
        let mut facts = Facts { is_deleting: head.deleted_at.is_some(), ..Facts::default() };
        if facts.is_deleting {
            facts.finalizers = finalizers::of(object);
            return Ok(facts);
        }
        for reference in &head.owners {
            facts.owners.push((reference.uid.clone(), self.judge(object.key(), reference).await?));
        }
        facts.has_dependents = self.index().dependents(&object.key().namespace, &head.uid).next().is_some();
        Ok(facts)
    }

    async fn delete(&self, object: &Encoded, propagation: Propagation, by: &By) -> Result<(), Error> {
        let (key, uid) = (object.key(), object.head().uid.clone());
        debug!(%key, ?propagation, "no owner is left");
        // Only in the state that was judged: it may be given another owner at this very moment.
        let resource_version = Some(object.resource_version().clone());
        let options = Delete { uid: Some(uid), resource_version, propagation };
        let by = by.clone().because("its owners are gone");
        missing_is_fine(self.store.delete(key, &options, &by).await.map(drop))
    }

    async fn untie(&self, object: &Encoded, owners: &[Uid], by: &By) -> Result<(), Error> {
        let mut changed = object.decode();
        remove_owners(&mut changed, owners);
        let by = by.clone().because("an owner is gone");
        missing_is_fine(self.store.update(changed, &by).await.map(drop))
    }

    async fn orphan(&self, owner: &Encoded, by: &By) -> Result<(), Error> {
        let (key, uid) = (owner.key(), &owner.head().uid);
        let mut done = BTreeSet::new();
        loop {
            let next: Vec<ObjectKey> = {
                let kinds = self.collected_kinds();
                let mut index = self.index();
                if !index.is_complete(&kinds, Some(key)) {
                    return Ok(());
                }
                index.dependents(&key.namespace, uid).filter(|it| !done.contains(*it)).cloned().collect()
            };
            if next.is_empty() {
                break;
            }
            for dependent in next {
                self.set_free(&dependent, uid, by).await?;
                done.insert(dependent);
            }
        }
        self.release(owner, ORPHAN, by).await
    }

    async fn set_free(&self, dependent: &ObjectKey, owner: &Uid, by: &By) -> Result<(), Error> {
        match self.store.get(dependent).await {
            Ok(dependent) if dependent.head().owners.iter().any(|it| it.uid == *owner) => {
                self.untie(&dependent, std::slice::from_ref(owner), by).await
            }
            other => missing_is_fine(other.map(drop)),
        }
    }

    async fn foreground(&self, owner: &Encoded, by: &By) -> Result<(), Error> {
        let (key, uid) = (owner.key(), &owner.head().uid);
        let wakes = {
            let kinds = self.collected_kinds();
            let mut index = self.index();
            if !index.is_complete(&kinds, Some(key)) {
                return Ok(());
            }
            // Before the question: a dependent that goes after it is noticed.
            let is_first = index.await_dependents(key, uid);
            let is_blocked = index.is_blocked(key, uid);
            // Who comes later looks at its owner anyway.
            let all = index.dependents(&key.namespace, uid).filter(|_| is_first && is_blocked);
            is_blocked.then(|| all.cloned().collect::<Vec<_>>())
        };
        match wakes {
            Some(dependents) => {
                self.wake(dependents, Lane::Event, "owner").await;
                Ok(())
            }
            None => self.release(owner, FOREGROUND, by).await,
        }
    }

    /// Takes a finalizer away: what it stood for is done.
    async fn release(&self, object: &Encoded, finalizer: &str, by: &By) -> Result<(), Error> {
        let mut changed = object.decode();
        changed.remove_finalizer(finalizer);
        let by = by.clone().because("its dependents are seen to");
        missing_is_fine(self.store.update(changed, &by).await.map(drop))
    }

    /// Kinds whose objects are collected. Events expire instead: there are many, and they own nothing.
    pub(super) fn collected_kinds(&self) -> Vec<GroupKind> {
        let all = (self.kinds)();
        let kinds = all.iter().map(|it| it.group_kind.clone());
        kinds.filter(|it| !(it.group.is_empty() && &*it.kind == "Event")).collect()
    }

    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watches(&self) -> MutexGuard<'_, BTreeMap<GroupKind, Tasks>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn handle(&self) -> Option<Handle> {
        self.lock_handle().clone()
    }

    fn lock_handle(&self) -> MutexGuard<'_, Option<Handle>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Reconciler for Owners {
    async fn reconcile(&self, request: Request) -> Outcome {
        if request.key.kind == definitions()
            && let Some(me) = self.me.upgrade()
        {
            me.watch_kinds().await;
        }
        let by = By { fence: request.fence, ..By::actor(OWNERS) };
        match self.collect(&request.key, &by).await {
            Ok(()) => Outcome::Done,
            Err(Error::Conflict { .. }) => Outcome::Requeue("it changed meanwhile".into(), None),
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}

impl std::fmt::Debug for Owners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Owners").field(&self.known()).finish()
    }
}

fn definitions() -> GroupKind {
    GroupKind::new(DEFINITION_GROUP, DEFINITION_KIND)
}

/// What was to be changed and is gone is as good as changed.
fn missing_is_fine(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => Ok(()),
        other => other,
    }
}

/// Takes references away, and leaves the others as they were written.
fn remove_owners(object: &mut Object, owners: &[Uid]) {
    let is_kept = |it: &&Value| !owners.iter().any(|uid| it["uid"] == *uid.0);
    let references = object.metadata("ownerReferences").as_array();
    let kept: Vec<Value> = references.into_iter().flatten().filter(is_kept).cloned().collect();
    let kept = if kept.is_empty() { Value::Null } else { Value::Array(kept) };
    object.set_metadata("ownerReferences", kept);
}
