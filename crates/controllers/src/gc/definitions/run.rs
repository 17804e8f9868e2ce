//! Does what `decide.rs` says about definitions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{Controller, Objects, Outcome, source};
use concert_model::{GroupKind, Object, Timestamp};
use concert_store::local::{CLEANUP_FINALIZER, DEFINITION_GROUP, DEFINITION_KIND};
use concert_store::{By, Error, Query, Store};

use super::super::Parts;
use super::super::contents::{Remains, sweep};
use super::super::leaving::{Container, Leaving, Step};
use super::super::owners::Owners;
use super::super::vocabulary::controller::DEFINITIONS;
use super::decide::{decide, is_terminating, kind};

/// Until another look, where not all owned objects have been seen: right after a start.
const UNSEEN_RETRY: Duration = Duration::from_millis(250);

struct Definitions {
    store: Arc<dyn Store>,
    owners: Arc<Owners>,
}

/// The controller of definitions that are being deleted.
pub fn controller(parts: &Parts, owners: Arc<Owners>) -> Controller {
    let definitions = Objects::new(Query::all(GroupKind::new(DEFINITION_GROUP, DEFINITION_KIND)));
    let container = Definitions { store: parts.store.clone(), owners };
    let reconciler = Leaving::new(container, parts.store.clone(), parts.clock.clone());
    Controller::builder(DEFINITIONS, Arc::new(reconciler))
        .objects(definitions.changed(source::except_status))
        .concurrency(4)
        .authority(parts.fence.clone().into())
        .build()
}

#[async_trait]
impl Container for Definitions {
    const NAME: &'static str = DEFINITIONS;
    const REASON: &'static str = "the definition is deleted";

    fn is_terminating(&self, definition: &Object) -> bool {
        is_terminating(definition)
    }

    /// Nothing new can come: the store refuses it from the moment the deletion was asked for.
    async fn sweep(&self, definition: &Object, by: &By) -> Remains {
        let mut remains = Remains::default();
        if let Some(kind) = kind(definition) {
            sweep(&*self.store, &Query::all(kind), definition.name(), by, &mut remains).await;
        }
        remains
    }

    fn decide(&self, definition: &Object, remains: &Remains, now: Timestamp) -> Step {
        decide(definition, remains, now)
    }

    async fn finish(&self, mut definition: Object, by: &By) -> Result<Outcome, Error> {
        // What its objects owned is judged while they can still be read for: of a kind that is not
        // served nobody can say what is absent.
        if let Some(kind) = kind(&definition)
            && !self.owners.settle(&kind, by).await?
        {
            return Ok(Outcome::Requeue("not all owned objects have been seen".into(), Some(UNSEEN_RETRY)));
        }
        definition.remove_finalizer(CLEANUP_FINALIZER);
        self.store.update(definition, by).await?;
        Ok(Outcome::Done)
    }
}
