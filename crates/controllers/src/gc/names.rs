//! Definitions that did not get all the names they ask for: they get them when whoever had them goes.
//!
//! The store decides who gets what whenever a definition is written, and who has a name keeps it. So all
//! there is to do here is to write one that waits again, as it is, when another of its group has changed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use concert_engine::{Controller, Failure, Objects, Outcome, Reconciler, Request, Source, source};
use concert_model::condition::{self, Status};
use concert_model::{Encoded, GroupKind, Object, ObjectKey};
use concert_store::local::{DEFINITION_GROUP, DEFINITION_KIND};
use concert_store::{By, Error, Query, Store};

use super::Parts;
use super::vocabulary::controller::NAMES;

struct Names {
    store: Arc<dyn Store>,
    waiting: Arc<Waiting>,
}

/// Definitions that wait for a name.
#[derive(Default)]
struct Waiting(Mutex<BTreeSet<ObjectKey>>);

impl Waiting {
    fn all(&self) -> MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that a change of `other` may concern: the ones of its group, which ends their names.
    fn beside(&self, other: &ObjectKey) -> Vec<ObjectKey> {
        let group = other.name.split_once('.').map_or("", |(_, group)| group);
        let is_of = |key: &&ObjectKey| {
            key.name.split_once('.').is_some_and(|(_, it)| it == group) && key.name != other.name
        };
        self.all().iter().filter(is_of).cloned().collect()
    }
}

/// The controller of definitions that wait for a name.
pub fn controller(parts: &Parts) -> Controller {
    let all = || Query::all(GroupKind::new(DEFINITION_GROUP, DEFINITION_KIND));
    let waiting = Arc::new(Waiting::default());
    let beside = waiting.clone();
    Controller::builder(NAMES, Arc::new(Names { store: parts.store.clone(), waiting }))
        .objects(Objects::new(all()).changed(source::except_status))
        .source(Source::mapped(all(), move |it: &Encoded| beside.beside(it.key())).because("names"))
        .authority(parts.fence.clone().into())
        .build()
}

fn is_content(definition: &Object) -> bool {
    let accepted = condition::find(definition.status(), "NamesAccepted");
    definition.deleted_at().is_some() || accepted.is_none_or(|it| it.status == Status::True)
}

impl Names {
    async fn pass(&self, key: &ObjectKey, by: &By) -> Result<(), Error> {
        let definition = self.store.get(key).await?.decode();
        if is_content(&definition) {
            self.waiting.all().remove(key);
            return Ok(());
        }
        // Before the try: whoever goes after it wakes us, and who went before it is gone.
        self.waiting.all().insert(key.clone());
        let written = self.store.update(definition, by).await?.decode();
        if is_content(&written) {
            self.waiting.all().remove(key);
        }
        Ok(())
    }
}

#[async_trait]
impl Reconciler for Names {
    async fn reconcile(&self, request: Request) -> Outcome {
        let by = By { fence: request.fence, ..By::actor(NAMES) }.because("a name may be free");
        match self.pass(&request.key, &by).await {
            Ok(()) => Outcome::Done,
            Err(Error::NotFound { .. }) => {
                self.waiting.all().remove(&request.key);
                Outcome::Done
            }
            Err(Error::Conflict { .. }) => Outcome::Requeue("it changed meanwhile".into(), None),
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}
