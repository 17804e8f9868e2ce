//! Who there is: the uid of each object that was worked on, by its key.
//!
//! What is remembered of an object is kept by its uid. Of one that was torn away, finalizers or not, all that
//! is heard is that nothing is there by its key any more.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use concert_model::{ObjectKey, Uid};

/// Uids by keys, of one kind.
#[derive(Default)]
pub struct Roll {
    hasher: RandomState,
    /// By the hash of a key, since there may be a million: two of one hash would cost a number in a metric.
    uids: Mutex<HashMap<u64, Uid>>,
}

impl Roll {
    /// This object was listed; whether nobody was known by its key. If somebody was, a list may be the older
    /// news.
    pub fn meet(&self, key: &ObjectKey, uid: &Uid) -> bool {
        let mut uids = self.lock();
        let hash = self.hasher.hash_one(key);
        let is_new = !uids.contains_key(&hash);
        if is_new {
            uids.insert(hash, uid.clone());
        }
        is_new
    }

    /// This object is there; the one that was there before by its key, if that is another.
    pub fn note(&self, key: &ObjectKey, uid: &Uid) -> Option<Uid> {
        let mut uids = self.lock();
        match uids.get_mut(&self.hasher.hash_one(key)) {
            Some(known) if known == uid => None,
            Some(known) => Some(std::mem::replace(known, uid.clone())),
            None => uids.insert(self.hasher.hash_one(key), uid.clone()),
        }
    }

    /// Nothing is there by this key; what was.
    pub fn strike(&self, key: &ObjectKey) -> Option<Uid> {
        self.lock().remove(&self.hasher.hash_one(key))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Uid>> {
        self.uids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use concert_model::GroupKind;

    use super::*;

    #[test]
    fn an_object_is_known_until_it_is_struck_or_another_has_its_name() {
        let roll = Roll::default();
        let key = ObjectKey::cluster(GroupKind::new("example.com", "Thing"), "a");
        let (old, new) = (Uid("old".into()), Uid("new".into()));
        assert_eq!(roll.note(&key, &old), None);
        assert_eq!(roll.note(&key, &old), None);
        assert_eq!(roll.note(&key, &new), Some(old));
        assert_eq!(roll.strike(&key), Some(new));
        assert_eq!(roll.strike(&key), None);
    }

    #[test]
    fn a_list_makes_nobody_known_whose_key_another_has() {
        let roll = Roll::default();
        let key = ObjectKey::cluster(GroupKind::new("example.com", "Thing"), "a");
        let (old, new) = (Uid("old".into()), Uid("new".into()));
        assert!(roll.meet(&key, &new));
        assert!(!roll.meet(&key, &new) && !roll.meet(&key, &old));
        assert_eq!(roll.strike(&key), Some(new));
    }
}
