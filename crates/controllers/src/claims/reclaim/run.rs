//! The hands: looks after each managed resource of one kind that is bound to a claim of another.

use std::sync::Arc;

use async_trait::async_trait;
use concert_engine::{Authority, Controller, Objects, Outcome, Reconciler, Request, Source, source};
use concert_model::condition::{self, Status};
use concert_model::{Encoded, FieldSelector, GroupKind, GroupVersionKind, Object, ObjectKey};
use concert_store::{By, Delete, Deleted, Error, Query};
use tracing::info;

use super::super::Pace;
use super::super::definition::Implementation;
use super::super::hands::Hands;
use super::super::parting::{self, Parting};
use super::super::reference::Reference;
use super::super::verdict::Told;
use super::super::vocabulary::{event, phase};
use super::decide::{Sight, Step, bond, decide};

/// Steps in one pass: more than any honest path needs.
const STEPS_MAX: usize = 10;

/// Looks after what claims have left behind.
pub struct Reclaimer {
    /// The claim kind.
    pub claim: GroupVersionKind,
    /// The managed kind, and what else belongs to it.
    pub implementation: Arc<Implementation>,
    /// What it works with.
    pub hands: Hands,
}

impl Reclaimer {
    async fn pass(&self, request: &Request) -> Result<Outcome, Error> {
        let Some(mut managed) = self.hands.find(&request.key).await? else { return Ok(Outcome::Done) };
        let by = self.hands.by(request);
        let mut seen = None;
        for _ in 0..STEPS_MAX {
            match decide(&managed, &self.claim.group_kind, seen.as_ref()) {
                Step::Rest => return Ok(Outcome::Done),
                Step::Look(claim) => seen = Some(self.look(&claim).await?),
                Step::Confirm(claim) => seen = Some(self.confirm(&claim).await?),
                Step::Part(parting) => {
                    info!(key = %request.key, ?parting, "its claim is gone and has not let go of it");
                    match self.part(managed, parting, &by).await? {
                        Some(written) => managed = written,
                        None => return Ok(Outcome::Done),
                    }
                }
            }
        }
        Ok(Outcome::Requeue("more steps than any honest path needs".into(), None))
    }

    async fn look(&self, claim: &ObjectKey) -> Result<Sight, Error> {
        match self.hands.store.get(claim).await {
            Ok(found) => Ok(Sight::Perhaps(Some(found.head().uid.clone()))),
            Err(Error::NotFound { .. }) => Ok(Sight::Perhaps(None)),
            Err(Error::UnknownKind { .. }) => Ok(Sight::Untold),
            Err(error) => Err(error),
        }
    }

    /// Asks for a list, which comes from the server itself also where single objects are remembered. The kind
    /// is asked for last: claims that went with it are gone before it is.
    async fn confirm(&self, claim: &ObjectKey) -> Result<Sight, Error> {
        let named = FieldSelector::field("metadata.name", &claim.name);
        let query = Query::all(claim.kind.clone()).in_namespace(claim.namespace.clone()).with_fields(named);
        let found = match self.hands.list(&query).await {
            Ok(found) => found,
            Err(Error::UnknownKind { .. }) => return Ok(Sight::Untold),
            Err(error) => return Err(error),
        };
        if !self.is_kind_to_stay(&claim.kind).await? {
            return Ok(Sight::Untold);
        }
        Ok(Sight::Certainly(found.first().and_then(Object::uid)))
    }

    /// Whether the kind of claims is defined, and not about to go.
    async fn is_kind_to_stay(&self, kind: &GroupKind) -> Result<bool, Error> {
        let served = match self.hands.store.kind(kind).await {
            Ok(served) => served,
            Err(Error::UnknownKind { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let name = format!("{}.{}", served.plural, kind.group);
        let definitions = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        let named = FieldSelector::field("metadata.name", &name);
        let found = self.hands.list(&Query::all(definitions).with_fields(named)).await?;
        Ok(found.first().is_some_and(|it| {
            let established = condition::find(it.status(), "Established");
            it.deleted_at().is_none() && established.is_some_and(|it| it.status == Status::True)
        }))
    }

    /// Takes one step, which fails if the managed resource is no longer as it was read. None if it is gone.
    async fn part(&self, mut managed: Object, parting: Parting, by: &By) -> Result<Option<Object>, Error> {
        let store = &self.hands.store;
        let written = match parting {
            Parting::Release => {
                parting::mark(&mut managed, phase::RELEASED);
                store.update_status(managed, by).await
            }
            Parting::Delete => {
                let Ok(key) = managed.key() else { return Ok(None) };
                let (uid, resource_version) = (managed.uid(), managed.resource_version());
                let options = Delete { uid, resource_version, ..Delete::default() };
                store.delete(&key, &options, by).await.map(Deleted::into_object)
            }
            Parting::Forget => {
                parting::forget(&mut managed);
                store.update(managed, by).await
            }
        };
        let written = match written {
            Ok(written) => written.decode(),
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if parting == Parting::Release {
            let told = Told::normal(event::UNBOUND, "its claim is gone and has not let go of it");
            self.hands.tell(&written, &told);
        }
        Ok(Some(written))
    }
}

#[async_trait]
impl Reconciler for Reclaimer {
    async fn reconcile(&self, request: Request) -> Outcome {
        match self.pass(&request).await {
            Ok(outcome) => outcome,
            Err(error) => self.hands.missed(&error),
        }
    }
}

/// The controller of one pair.
pub fn controller(reclaimer: Reclaimer, pace: Pace, authority: Authority) -> Controller {
    let claims = reclaimer.claim.group_kind.clone();
    let managed = reclaimer.implementation.managed.group_kind.clone();
    let (kind, of) = (managed.clone(), claims.clone());
    let bound = Objects::new(Query::all(managed)).only(move |it: &Encoded| bond(&it.decode(), &of).is_some());
    // A claim that goes wakes what it was bound to.
    let claims = Source::mapped(Query::all(claims), move |it: &Encoded| managed_of(it, &kind));
    Controller::builder(reclaimer.hands.name.clone(), Arc::new(reclaimer))
        .objects(bound)
        .source(claims.changed(source::except_status).because("claim"))
        .timeout(super::super::TIMEOUT)
        .poll(pace.poll)
        .relist(Some(pace.relist))
        .authority(authority)
        .build()
}

/// The managed resource that a claim names.
fn managed_of(claim: &Encoded, kind: &GroupKind) -> Vec<ObjectKey> {
    let reference = Reference::read(claim.decode().spec(), "resourceRef");
    reference.filter(|it| it.kind == *kind).map(|it| it.cluster_key()).into_iter().collect()
}
