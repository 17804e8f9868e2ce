//! What the leader does: runs the registry with everything that was declared, and the concert of claims.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_controllers::claims;
use concert_controllers::managed::registry::{Declaration, Parts, Registry};
use concert_engine::leader::Duty;
use concert_engine::{Authority, Tasks};
use tracing::error;

use super::objects::{self, Surroundings};
use super::provider::Dial;
use crate::upkeep::Upkeep;

/// The registry of managed resources, while this process leads.
pub(crate) struct Reconciling {
    parts: Parts,
    declarations: Vec<Declaration>,
    /// The way to providers that are declared as objects; none if those are not looked at.
    objects: Option<Dial>,
    patience: Duration,
    /// Of the store, where nobody else sees to it.
    upkeep: Option<Upkeep>,
    live: Mutex<Option<Live>>,
}

#[derive(Clone)]
struct Live {
    registry: Registry,
    /// What looks after claims; none if it could not start.
    claims: Option<claims::registry::Registry>,
    tasks: Tasks,
    /// What starts the controller of Provider objects.
    gate: Tasks,
}

impl Reconciling {
    pub fn new(
        parts: Parts,
        declarations: Vec<Declaration>,
        objects: Option<Dial>,
        patience: Duration,
    ) -> Self {
        Self { parts, declarations, objects, patience, upkeep: None, live: Mutex::default() }
    }

    /// The same, with the upkeep of a store that nobody else looks after.
    pub fn keeping(self, upkeep: Option<Upkeep>) -> Self {
        Self { upkeep, ..self }
    }

    /// What runs, if anything does.
    pub fn registry(&self) -> Option<Registry> {
        self.live().as_ref().map(|it| it.registry.clone())
    }

    /// What looks after claims, if anything does.
    pub fn claims(&self) -> Option<claims::registry::Registry> {
        self.live().as_ref().and_then(|it| it.claims.clone())
    }

    fn live(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Duty for Reconciling {
    fn begin(&self, authority: Authority) {
        let tasks = self.parts.tasks.group();
        let gate = tasks.group();
        let parts = Parts { authority, tasks: tasks.clone(), ..self.parts.clone() };
        let registry = Registry::start(parts.clone());
        for declaration in &self.declarations {
            if let Err(error) = registry.add(declaration.clone()) {
                error!(%error, "cannot add a provider");
            }
        }
        if let Some(dial) = &self.objects {
            let declared = self.declarations.iter().map(|it| it.name.clone()).collect();
            let surroundings = Surroundings { registry: registry.clone(), dial: dial.clone(), declared };
            objects::start(surroundings, &Parts { tasks: gate.clone(), ..parts.clone() });
        }
        if let Some(upkeep) = &self.upkeep {
            upkeep.begin(&parts);
        }
        let claims = claims::registry::start(parts);
        let claims = claims.inspect_err(|error| error!(%error, "cannot look after claims")).ok();
        *self.live() = Some(Live { registry, claims, tasks, gate });
    }

    async fn end(&self, is_lost: bool) {
        // Taken away only afterwards: a lead that is lost while it ends is ended again, at once.
        let Some(live) = self.live().clone() else { return };
        let patience = if is_lost { Duration::ZERO } else { self.patience };
        // First what could add providers.
        live.gate.stop(patience).await;
        self.parts.engine.stop(objects::CONTROLLER, patience).await;
        if let Some(claims) = &live.claims {
            claims.stop(patience).await;
        }
        live.registry.stop(patience).await;
        if let Some(upkeep) = &self.upkeep {
            upkeep.end(patience).await;
        }
        live.tasks.stop(patience).await;
        *self.live() = None;
    }
}

impl std::fmt::Debug for Reconciling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&Arc<str>> = self.declarations.iter().map(|it| &it.name).collect();
        f.debug_tuple("Reconciling").field(&names).finish()
    }
}
