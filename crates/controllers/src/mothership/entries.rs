//! Has each entry say what its reconcilers say together, and forgets what is left of one that has gone.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use concert_engine::{Failure, Outcome, Reconciler, Request};
use concert_model::inventory::{Entry, State};
use concert_model::{Object, Uid};
use concert_store::{By, Error};
use serde_json::Value;

use super::aggregate::{Part, aggregate};
use super::items::Known;
use super::run::Fleet;
use super::vocabulary::ENTRIES;

/// One item for each entry.
pub(super) struct Entries(pub Weak<Fleet>);

impl Fleet {
    /// What each reconciler says of an entry: those that handle it, and those that did.
    pub fn parts_of(&self, entry: &Object) -> Vec<Part> {
        let (mut items, uid) = (self.items.of_entry(entry.name()), Entry(entry).uid());
        items.retain(|_, it| it.is_of(&uid));
        let crews = self.crews();
        let handled = crews.iter().filter(|(_, it)| it.component.concerns(entry));
        let handled: BTreeSet<&Arc<str>> = handled.map(|(name, _)| name).collect();
        let all: BTreeSet<&Arc<str>> = handled.iter().copied().chain(items.keys()).collect();
        let part = |name: &Arc<str>| {
            let known = items.get(name);
            Part {
                reconciler: name.clone(),
                state: known.map_or(State::Pending, |it| it.state),
                status: known.map_or(Value::Null, Known::status),
                is_registered: handled.contains(name),
            }
        };
        let mut parts: Vec<Part> = all.into_iter().map(part).collect();
        // Of one that goes only those count that have something to undo.
        parts.retain(|it| !Entry(entry).is_deleting() || items.contains_key(&it.reconciler));
        parts
    }

    async fn summarise(&self, request: &Request) -> Result<(), Error> {
        let inventory = &self.parts.inventory;
        let by = By::actor(ENTRIES).because("summary");
        let mut object = match inventory.get(&request.key).await {
            Ok(object) => object.decode(),
            Err(Error::NotFound { .. }) => return self.forget(&request.key.name, None).await,
            Err(error) => return Err(error),
        };
        self.forget(&request.key.name, Some(&Entry(&object).uid())).await?;
        let parts = self.parts_of(&object);
        let status = aggregate(&object, &parts, self.parts.clock.now());
        if *object.status() != status {
            object.set("status", status);
            match inventory.update_status(object, &by).await {
                Err(Error::NotFound { .. }) => return self.forget(&request.key.name, None).await,
                written => drop(written?),
            }
        }
        Ok(())
    }

    /// Every entry of this name but `uid` is gone: of what was done to them nothing is left, or nobody
    /// asked us.
    async fn forget(&self, entry: &str, uid: Option<&Uid>) -> Result<(), Error> {
        let by = By::actor(ENTRIES).because("entry gone");
        for (reconciler, known) in self.items.of_entry(entry) {
            if !uid.is_some_and(|it| known.is_of(it)) {
                self.items.remove(entry, &reconciler, &known.uid, &by).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Reconciler for Entries {
    async fn reconcile(&self, request: Request) -> Outcome {
        let Some(fleet) = self.0.upgrade() else { return Outcome::Done };
        match fleet.summarise(&request).await {
            Ok(()) | Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => Outcome::Done,
            // Somebody else wrote it: whatever that was, it is to be looked at anew.
            Err(Error::Conflict { .. }) => Outcome::After(std::time::Duration::from_millis(10)),
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}
