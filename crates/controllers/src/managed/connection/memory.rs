//! What is known of connection secrets, so that a pass that changes nothing reads nothing.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use concert_model::{Object, ObjectKey, ResourceVersion, Uid};
use concert_provider::Details;

use super::stored_entries;

/// Publications that trust what is known before the store is asked again. A watch that lost the end of a
/// secret over a gap says nothing of it; at a poll each minute this finds out within the hour.
const TRUST: u16 = 60;

/// What is known of the secrets of all objects.
#[derive(Default)]
pub(super) struct Memory {
    known: HashMap<Uid, Known>,
    owners: HashMap<ObjectKey, Uid>,
    /// Keyed at random: what is remembered says nothing about a secret to who reads our memory.
    hasher: RandomState,
}

struct Known {
    secret: ObjectKey,
    stored: Option<Stored>,
    /// The last change that was heard of while the store was being asked.
    heard: Option<ResourceVersion>,
}

/// What a secret held in one state.
struct Stored {
    resource_version: ResourceVersion,
    /// Hashes of its entries, in order.
    entries: Box<[u64]>,
    uses: u16,
}

impl Memory {
    /// Whether `secret` is known to hold `details`.
    pub fn holds(&mut self, uid: &Uid, secret: &ObjectKey, details: &Details) -> bool {
        let Some(known) = self.known.get_mut(uid).filter(|it| it.secret == *secret) else { return false };
        let Some(stored) = known.stored.as_mut().filter(|it| it.uses < TRUST) else { return false };
        stored.uses += 1;
        let mut hashes = details.iter().map(|entry| self.hasher.hash_one(entry));
        hashes.all(|hash| stored.entries.binary_search(&hash).is_ok())
    }

    /// The store is about to be asked: what is heard from now on is newer than what was known.
    pub fn asking(&mut self, uid: &Uid, secret: &ObjectKey) {
        self.forget(uid);
        self.owners.insert(secret.clone(), uid.clone());
        self.known.insert(uid.clone(), Known { secret: secret.clone(), stored: None, heard: None });
    }

    /// The store answered that the secret is in this state.
    pub fn learn(&mut self, uid: &Uid, secret: &Object) {
        let Some(resource_version) = secret.resource_version() else { return };
        let Some(known) = self.known.get_mut(uid) else { return };
        // Another state was heard of meanwhile. Which of the two is newer nobody can tell: ask again.
        if known.heard.as_ref().is_some_and(|it| *it != resource_version) {
            return;
        }
        let entries = stored_entries(secret);
        let hashes =
            entries.iter().map(|(name, bytes)| self.hasher.hash_one((name.as_str(), bytes.as_slice())));
        let mut entries: Box<[u64]> = hashes.collect();
        entries.sort_unstable();
        known.stored = Some(Stored { resource_version, entries, uses: 0 });
    }

    /// A change of a secret was heard of. Its end also comes with a version of its own.
    pub fn hear(&mut self, secret: &ObjectKey, resource_version: &ResourceVersion) {
        let Some(known) = self.owners.get(secret).and_then(|uid| self.known.get_mut(uid)) else { return };
        known.heard = Some(resource_version.clone());
        if known.stored.as_ref().is_some_and(|it| it.resource_version != *resource_version) {
            known.stored = None;
        }
    }

    pub fn forget(&mut self, uid: &Uid) {
        let Some(known) = self.known.remove(uid) else { return };
        if self.owners.get(&known.secret) == Some(uid) {
            self.owners.remove(&known.secret);
        }
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.owners.is_empty()
    }
}
