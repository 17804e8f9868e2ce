//! The controller of definitions: makes what runs match what is defined and served.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use concert_engine::{Failure, Outcome, Reconciler, Request};
use concert_model::ObjectKey;
use concert_store::{Error, Store};
use tracing::{info, warn};

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
            let running = desk.running.get(key).map(|it| it.want.clone());
            (wanted, charge, running)
        };
        if running.as_ref() == Some(&wanted) {
            self.lock().idle.remove(&kind);
            return Outcome::Done;
        }
        if running.is_some() {
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
            Ok((name, handle, tasks)) => {
                let mut desk = self.lock();
                desk.idle.remove(&kind);
                let running = Running { kind, name, want: wanted, handle, tasks };
                desk.running.insert(key.clone(), running);
                Outcome::Done
            }
            Err(why) => {
                self.lock().idle.insert(kind, why.clone());
                Outcome::Transient(Failure::new(why))
            }
        }
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
            info!(%kind, "definition is gone");
        }
    }

    pub(super) async fn stop_running(&self, key: &ObjectKey) {
        let stopped = self.lock().running.remove(key);
        if let Some(running) = stopped {
            running.tasks.stop(PATIENCE).await;
            self.0.parts.engine.stop(&running.name, PATIENCE).await;
            info!(kind = %running.kind, "controller stopped");
        }
    }
}
