//! The controller of definitions: makes what runs match what is defined and served.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use concert_engine::{Failure, Lane, Outcome, Reconciler, Request};
use concert_model::{GroupKind, ObjectKey};
use concert_store::{Error, Store};
use tracing::{info, warn};

use super::build::Launched;
use super::gate::{Definition, Want, want};
use super::{Inner, PATIENCE, Registry, Running};

/// Looks at one definition at a time.
pub(super) struct Definitions {
    store: Arc<dyn Store>,
    /// Weak, because the registry owns the controller that owns this.
    registry: Weak<Inner>,
}

impl Definitions {
    pub fn new(registry: &Registry) -> Self {
        Self { store: registry.0.parts.store.clone(), registry: Arc::downgrade(&registry.0) }
    }
}

#[async_trait]
impl Reconciler for Definitions {
    async fn reconcile(&self, request: Request) -> Outcome {
        let Some(registry) = self.registry.upgrade().map(Registry) else { return Outcome::Done };
        match self.store.get(&request.key).await {
            Ok(current) => match Definition::of(&current.decode()) {
                Some(definition) => registry.look_at(&request.key, definition).await,
                None => Outcome::Done,
            },
            Err(Error::NotFound { .. }) => {
                registry.gone(&request.key).await;
                Outcome::Done
            }
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}

impl Registry {
    /// Makes what runs for a definition what should.
    async fn look_at(&self, key: &ObjectKey, definition: Definition) -> Outcome {
        let kind = definition.kind.clone();
        let (wanted, charge, running) = {
            let mut desk = self.lock();
            desk.definitions.insert(kind.clone(), key.clone());
            let charge = desk.claims.kinds.get(&kind).cloned();
            let wanted = want(&definition, charge.as_ref(), desk.had_provider.contains(&kind));
            let running = desk.running.get(key).map(|it| (it.want.clone(), it.missing.clone()));
            (wanted, charge, running)
        };
        if definition.is_established
            && let Err(outcome) = self.announce(&kind).await
        {
            return outcome;
        }
        if let Some((want, missing)) = running {
            if want == wanted && !self.has_any(&missing).await {
                self.lock().idle.remove(&kind);
                return Outcome::Done;
            }
            self.stop_running(key).await;
        }
        let started = match (&wanted, charge) {
            (Want::Nothing(why), _) => {
                if !why.is_empty() {
                    info!(%kind, %why, "not reconciled");
                }
                self.lock().idle.insert(kind, why.clone());
                return Outcome::Done;
            }
            (Want::Placeholder(why), _) => {
                warn!(%kind, %why, "nobody works on the objects of a kind");
                self.start_placeholder(&kind, why.clone())
            }
            (Want::Managed { .. } | Want::Config, None) => return Outcome::Done,
            (Want::Managed { .. } | Want::Config, Some(charge)) => self.start_controller(charge).await,
        };
        match started {
            Ok(Launched { handle, tasks, missing }) => {
                let mut desk = self.lock();
                desk.idle.remove(&kind);
                let name = handle.name().clone();
                let running = Running { kind, name, want: wanted, handle, tasks, missing };
                desk.running.insert(key.clone(), running);
                Outcome::Done
            }
            Err(why) => {
                self.lock().idle.insert(kind, why.clone());
                Outcome::Transient(Failure::new(why))
            }
        }
    }

    /// A kind is there: has those controllers looked at that would have watched it.
    async fn announce(&self, kind: &GroupKind) -> Result<(), Outcome> {
        let (keys, handle) = {
            let desk = self.lock();
            let missing = desk.running.iter().filter(|(_, it)| it.missing.contains(kind));
            (missing.map(|(key, _)| key.clone()).collect::<Vec<_>>(), desk.handle.clone())
        };
        if keys.is_empty() {
            return Ok(());
        }
        // A server serves a kind some time after it says so.
        if self.0.parts.store.kind(kind).await.is_err() {
            return Err(Outcome::Requeue(format!("{kind} is not served yet").into(), None));
        }
        for key in keys {
            if let Some(handle) = &handle
                && let Err(error) = handle.enqueue(&key, Lane::Event, "watched kind")
            {
                tracing::debug!(%error, definition = %key, "cannot look at a definition");
            }
        }
        Ok(())
    }

    async fn has_any(&self, kinds: &BTreeSet<GroupKind>) -> bool {
        for kind in kinds {
            if self.0.parts.store.kind(kind).await.is_ok() {
                return true;
            }
        }
        false
    }

    /// A definition is really gone: so are its objects.
    async fn gone(&self, key: &ObjectKey) {
        self.stop_running(key).await;
        let mut desk = self.lock();
        let kinds: Vec<_> =
            desk.definitions.iter().filter(|(_, it)| *it == key).map(|(kind, _)| kind.clone()).collect();
        for kind in kinds {
            desk.definitions.remove(&kind);
            desk.idle.remove(&kind);
            self.0.parts.metrics.remove(&kind);
            info!(%kind, "definition is gone");
        }
    }

    pub(super) async fn stop_running(&self, key: &ObjectKey) {
        let stopped = self.lock().running.remove(key);
        if let Some(running) = stopped {
            running.tasks.stop(PATIENCE).await;
            self.0.parts.engine.stop(&running.name, PATIENCE).await;
            self.0.parts.metrics.forget_objects(&running.kind);
            info!(kind = %running.kind, "controller stopped");
        }
    }
}
