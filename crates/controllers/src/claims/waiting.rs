//! Who waits for a class or a policy that is not there, so that one that comes wakes exactly them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use concert_model::ObjectKey;

/// The claims that a controller has found nothing for.
///
/// # Assumptions
/// A claim is entered before what it waits for is read, so that what comes in between wakes it.
#[derive(Debug, Default)]
pub struct Waiting(Mutex<BTreeSet<ObjectKey>>);

impl Waiting {
    /// From here on `key` is woken.
    pub fn enter(&self, key: &ObjectKey) {
        self.lock().insert(key.clone());
    }

    /// From here on it is not.
    pub fn leave(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    /// All who wait, in one namespace or in all.
    pub fn all(&self, namespace: Option<&str>) -> Vec<ObjectKey> {
        let is_there = |key: &&ObjectKey| namespace.is_none_or(|it| *key.namespace == *it);
        self.lock().iter().filter(is_there).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
