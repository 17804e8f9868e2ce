//! Has the secrets of claims follow those of their managed resources.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use concert_engine::{Authority, Controller, Objects, Outcome, Reconciler, Request, Source};
use concert_model::{Encoded, FieldSelector, GroupKind, Object};
use concert_store::{Error, Query};
use tracing::debug;

use super::super::Pace;
use super::super::hands::Hands;
use super::decide::{controller_kind, follow, secret_kind, source_of, targets_of};
use crate::managed::vocabulary::connection::SECRET_TYPE;

/// The claim kinds and managed kinds that definitions name, as they come and go.
#[derive(Debug, Default)]
pub struct Players(Mutex<(BTreeSet<GroupKind>, BTreeSet<GroupKind>)>);

/// The players, shared by who follows secrets and who knows the definitions.
pub fn kinds() -> Arc<Players> {
    Arc::default()
}

impl Players {
    /// These are the kinds now.
    pub fn set(&self, claims: BTreeSet<GroupKind>, managed: BTreeSet<GroupKind>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (claims, managed);
    }

    /// Whether `target` is a claim's and `source` a managed resource's.
    fn know(&self, target: &Object, source: &Object) -> bool {
        let players = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is = |kinds: &BTreeSet<GroupKind>, secret| {
            controller_kind(secret).is_some_and(|it| kinds.contains(&it))
        };
        is(&players.0, target) && is(&players.1, source)
    }
}

/// Follows secrets.
pub struct Propagator {
    /// What it works with.
    pub hands: Hands,
    /// Whose secrets.
    pub players: Arc<Players>,
}

impl Propagator {
    async fn pass(&self, request: &Request) -> Result<(), Error> {
        let Some(target) = self.hands.find(&request.key).await? else { return Ok(()) };
        let Some((from, _)) = source_of(&target) else { return Ok(()) };
        let Some(source) = self.hands.find(&from).await? else { return Ok(()) };
        if !self.players.know(&target, &source) {
            return Ok(());
        }
        match follow(&target, &source) {
            Ok(None) => {}
            Ok(Some(followed)) => drop(self.hands.store.update(followed, &self.hands.by(request)).await?),
            Err(why) => debug!(secret = %request.key, %why, "a secret is not propagated"),
        }
        Ok(())
    }
}

#[async_trait]
impl Reconciler for Propagator {
    async fn reconcile(&self, request: Request) -> Outcome {
        match self.pass(&request).await {
            Ok(()) => Outcome::Done,
            Err(error) => self.hands.missed(&error),
        }
    }
}

/// The controller of all connection secrets.
pub fn controller(propagator: Propagator, pace: Pace, authority: Authority) -> Controller {
    // All have the type that we give them, so that other secrets are not even read.
    let secrets = Query::all(secret_kind()).with_fields(FieldSelector::field("type", SECRET_TYPE));
    let targets = |source: &Encoded| targets_of(&source.decode());
    Controller::builder(propagator.hands.name.clone(), Arc::new(propagator))
        .objects(Objects::new(secrets.clone()))
        .source(Source::mapped(secrets, targets).because("source"))
        .timeout(super::super::TIMEOUT)
        .poll(pace.poll)
        .relist(Some(pace.relist))
        .authority(authority)
        .build()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret_of(group: &str, kind: &str) -> Object {
        let owner = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "name": "o", "uid": "u",
            "controller": true});
        Object::from_value(json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "s", "namespace": "n", "ownerReferences": [owner]}}))
        .unwrap()
    }

    #[test]
    fn only_secrets_of_claims_follow_and_only_those_of_managed_resources() {
        let players = kinds();
        let (claim, managed) = (secret_of("a.dev", "Claim"), secret_of("b.dev", "Managed"));
        assert!(!players.know(&claim, &managed), "nobody plays");
        let kind = |group, kind| BTreeSet::from([GroupKind::new(group, kind)]);
        players.set(kind("a.dev", "Claim"), kind("b.dev", "Managed"));
        assert!(players.know(&claim, &managed));
        assert!(!players.know(&managed, &claim), "the other way round");
        assert!(!players.know(&claim, &secret_of("c.dev", "Managed")), "of another group");
        assert!(!players.know(&secret_of("a.dev", "Pod"), &managed));
        let nobodys = Object::from_value(json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "s", "namespace": "n"}}))
        .unwrap();
        assert!(!players.know(&claim, &nobodys) && !players.know(&nobodys, &managed));
    }
}
