//! A map that keeps what was used last, and never more than a bound.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// The most recently used entries.
pub(super) struct Recent<K, V> {
    capacity: usize,
    entries: HashMap<K, (u64, V)>,
    /// By the number of their last use, the oldest first.
    order: BTreeMap<u64, K>,
    uses: u64,
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), entries: HashMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// The entry, which is the most recently used one from now on.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (used, value) = self.entries.get_mut(key)?;
        self.order.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.order.insert(self.uses, key.clone());
        Some(value)
    }

    /// Adds or replaces an entry; the one that was not used for longest makes room.
    pub fn insert(&mut self, key: K, value: V) {
        self.remove(&key);
        if self.entries.len() >= self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.uses += 1;
        self.order.insert(self.uses, key.clone());
        self.entries.insert(key, (self.uses, value));
    }

    pub fn remove(&mut self, key: &K) {
        if let Some((used, _)) = self.entries.remove(key) {
            self.order.remove(&used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_not_used_for_longest_makes_room() {
        let mut recent = Recent::new(2);
        recent.insert("a", 1);
        recent.insert("b", 2);
        assert_eq!(recent.get_mut(&"a"), Some(&mut 1));
        recent.insert("c", 3);
        assert_eq!(recent.get_mut(&"b"), None);
        assert_eq!((recent.get_mut(&"a").copied(), recent.get_mut(&"c").copied()), (Some(1), Some(3)));
        recent.insert("c", 4);
        recent.remove(&"a");
        recent.remove(&"a");
        assert_eq!((recent.entries.len(), recent.order.len()), (1, 1));
    }
}
