//! The hands of the binder: goes on with one claim until there is nothing more to do.

use std::sync::Arc;

use async_trait::async_trait;
use concert_engine::{Authority, Controller, Objects, Outcome, Reconciler, Request, Source, source};
use concert_model::{Encoded, FieldSelector, GroupKind, GroupVersionKind, Object, ObjectKey, OwnerReference};
use concert_store::Query;
use tracing::debug;

use super::super::Pace;
use super::super::definition::Implementation;
use super::super::hands::Hands;
use super::super::propagate::decide::secret_kind;
use super::super::reference::Reference;
use super::decide::{Step, concern, decide};
use super::pass::{Pass, Stop};
use super::sources::Sources;
use crate::managed::vocabulary::connection::SECRET_TYPE;

/// Steps in one pass: more than any honest path needs.
const STEPS_MAX: usize = 20;

/// Binds claims of one kind to managed resources of one kind.
pub struct Binder {
    /// The claim kind.
    pub claim: GroupVersionKind,
    /// The class kind, the managed kind, and what they make of a claim.
    pub implementation: Arc<Implementation>,
    /// What it works with.
    pub hands: Hands,
    /// Where the secrets of claims are from.
    pub(super) sources: Arc<Sources>,
}

impl Binder {
    /// One that has seen nothing yet.
    pub fn new(claim: GroupVersionKind, implementation: Arc<Implementation>, hands: Hands) -> Self {
        Self { claim, implementation, hands, sources: Arc::default() }
    }

    async fn pass(&self, claim: Object, request: &Request) -> Outcome {
        let by = self.hands.by(request);
        let mut pass = Pass::begin(self, claim, by.clone());
        for _ in 0..STEPS_MAX {
            let step = decide(&pass.claim, &pass.seen, &self.implementation);
            debug!(?step, "decided");
            if let Step::Rest(verdict) = &step {
                return self.hands.conclude(&pass.claim, verdict, &by).await;
            }
            match pass.take(step).await {
                Ok(()) => {}
                Err(Stop::Gone) => return Outcome::Done,
                Err(Stop::Store(error)) => return self.hands.missed(&error),
            }
        }
        Outcome::Requeue("more steps than any honest path needs".into(), None)
    }
}

#[async_trait]
impl Reconciler for Binder {
    async fn reconcile(&self, request: Request) -> Outcome {
        match self.hands.find(&request.key).await {
            Ok(Some(claim)) if concern(&claim, &self.implementation).is_some() => {
                // Claims are read in their storage version and written in the one that the definition names.
                self.pass(in_version(claim, &self.claim), &request).await
            }
            Ok(_) => {
                self.sources.leave(&request.key);
                Outcome::Done
            }
            Err(error) => self.hands.missed(&error),
        }
    }
}

fn in_version(mut claim: Object, kind: &GroupVersionKind) -> Object {
    claim.set("apiVersion", kind.api_version().into());
    claim
}

/// The controller of one pair.
pub fn controller(binder: Binder, pace: Pace, authority: Authority) -> Controller {
    let claims = binder.claim.group_kind.clone();
    let (implementation, sources) = (binder.implementation.clone(), binder.sources.clone());
    let kind = claims.clone();
    let secrets = Query::all(secret_kind()).with_fields(FieldSelector::field("type", SECRET_TYPE));
    let mut builder = Controller::builder(binder.hands.name.clone(), Arc::new(binder))
        .objects(Objects::new(Query::all(claims.clone())).changed(source::except_status));
    // A kind that is gone has nothing to say; when it comes back, so does another of us.
    if implementation.unusable.as_ref().is_none_or(|it| it.has_managed) {
        let managed = Query::all(implementation.managed.group_kind.clone());
        let source = Source::mapped(managed, move |it: &Encoded| claim_of(it, &kind));
        builder = builder.source(source.because("managed"));
    }
    builder
        // A secret of a claim that somebody deletes or breaks is made whole, and one that a managed resource
        // publishes anew has to agree anew. One watch for both: secrets are watched by type, which nobody
        // shares.
        .source(
            Source::mapped(secrets, move |it: &Encoded| woken_by(it, &claims, &sources)).because("secret"),
        )
        .timeout(super::super::TIMEOUT)
        .poll(pace.poll)
        .relist(Some(pace.relist))
        .authority(authority)
        .build()
}

/// The claim that a secret is controlled by, or that it has yet to agree with.
fn woken_by(secret: &Encoded, claims: &GroupKind, sources: &Sources) -> Vec<ObjectKey> {
    let controller = secret.head().owners.iter().find(|it| it.is_controller());
    let is_claim = |it: &&OwnerReference| {
        let (group, _) = it.api_version.split_once('/').unwrap_or_default();
        *it.kind == *claims.kind && *group == *claims.group
    };
    match controller.filter(is_claim) {
        Some(it) => {
            vec![ObjectKey::namespaced(claims.clone(), secret.key().namespace.clone(), it.name.as_str())]
        }
        None => sources.woken_by(secret),
    }
}

/// The claim that a managed resource says it belongs to.
fn claim_of(managed: &Encoded, kind: &GroupKind) -> Vec<ObjectKey> {
    let reference = Reference::read(managed.decode().spec(), "claimRef");
    let reference = reference.filter(|it| it.kind == *kind);
    reference.map(|it| ObjectKey::namespaced(it.kind, it.namespace, it.name)).into_iter().collect()
}
