//! Which claim has its secret from where, so that a source that is made anew wakes exactly the claim that
//! it has to agree with again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use concert_model::{Encoded, ObjectKey};

use super::super::propagate::decide::targets_of;

/// The claims and the secrets that theirs are copied from.
///
/// # Assumptions
/// A claim is entered before its source is read, so that one that comes in between wakes it. What is not
/// here has not been looked at since the controller started, which looks at every claim.
#[derive(Debug, Default)]
pub struct Sources(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_claim: BTreeMap<ObjectKey, ObjectKey>,
    by_source: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl Sources {
    /// From here on `claim` is woken by this source, and by no other.
    pub fn enter(&self, claim: &ObjectKey, source: &ObjectKey) {
        let mut known = self.lock();
        if known.by_claim.get(claim) == Some(source) {
            return;
        }
        known.leave(claim);
        known.by_claim.insert(claim.clone(), source.clone());
        known.by_source.entry(source.clone()).or_default().insert(claim.clone());
    }

    /// From here on it is woken by none.
    pub fn leave(&self, claim: &ObjectKey) {
        self.lock().leave(claim);
    }

    /// The claims that a secret has yet to agree with. Once it has, whoever follows secrets sees to it.
    pub fn woken_by(&self, secret: &Encoded) -> Vec<ObjectKey> {
        let woken = self.lock().by_source.get(secret.key()).cloned().unwrap_or_default();
        if woken.is_empty() || !targets_of(&secret.decode()).is_empty() {
            return Vec::new();
        }
        woken.into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn leave(&mut self, claim: &ObjectKey) {
        let Some(source) = self.by_claim.remove(claim) else { return };
        if let Some(claims) = self.by_source.get_mut(&source) {
            claims.remove(claim);
            if claims.is_empty() {
                self.by_source.remove(&source);
            }
        }
    }
}
