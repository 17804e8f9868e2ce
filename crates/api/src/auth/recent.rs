//! Objects that were read before, for as long as nothing of their kind has changed.
//!
//! The store says without waiting when a kind was last changed, so what is answered here is what a read
//! would answer, for the price of looking it up in memory.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use concert_model::{Encoded, GroupKind, ObjectKey, Revision};
use concert_store::{Error, Local, Store};

/// Most objects kept; those who call at the same time are hardly ever more.
const KEPT_MAX: usize = 4_096;

pub(super) struct Recent {
    store: Local,
    /// What was found, and when its kind had last been changed then.
    kept: RwLock<HashMap<ObjectKey, (Revision, Option<Encoded>)>>,
}

impl Recent {
    pub(super) fn new(store: Local) -> Self {
        Self { store, kept: RwLock::default() }
    }

    pub(super) fn store(&self) -> &Local {
        &self.store
    }

    /// The last change of any of `kinds`: everything of theirs that was answered before is in it.
    pub(super) fn touched<'a>(&self, kinds: impl IntoIterator<Item = &'a GroupKind>) -> Revision {
        kinds.into_iter().map(|kind| self.store.touched(kind)).max().unwrap_or_default()
    }

    /// The object; none if there is none.
    pub(super) async fn find(&self, key: &ObjectKey) -> Result<Option<Encoded>, Error> {
        // Before the read: a change during it makes what was read old rather than wrong.
        let touched = self.store.touched(&key.kind);
        if let Some(kept) = self.kept(key, touched) {
            return Ok(kept);
        }
        let found = match self.store.get(key).await {
            Ok(object) => Some(object),
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => None,
            Err(error) => return Err(error),
        };
        self.keep(key, touched, found.clone());
        Ok(found)
    }

    fn kept(&self, key: &ObjectKey, touched: Revision) -> Option<Option<Encoded>> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).filter(|(then, _)| *then == touched).map(|(_, found)| found.clone())
    }

    fn keep(&self, key: &ObjectKey, touched: Revision, found: Option<Encoded>) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        // Keys come from outside, as names in tokens do: the map is bounded, and starting over is cheap.
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(key.clone(), (touched, found));
    }
}
