//! From a key to its slot, in a few bytes per key.
//!
//! Open addressing over slot numbers: the keys themselves stand in the slots, so a standard map
//! would hold each of them twice.

const SMALLEST: usize = 16;

/// Slot numbers by the hash of what is in the slot.
#[derive(Default)]
pub(super) struct Index {
    /// Slot number plus one; 0 is a free place. The length is a power of two.
    places: Vec<u32>,
    len: usize,
}

impl Index {
    /// The slot with this hash that `is_it` recognises.
    pub fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        while let Some(slot) = self.places[at].checked_sub(1) {
            if is_it(slot) {
                return Some(slot);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Adds a slot that is not in it. `hash_of` tells the hash of those that are.
    pub fn insert(&mut self, hash: u32, slot: u32, hash_of: impl Fn(u32) -> u32) {
        // At most three quarters full: beyond that, runs of taken places get long.
        if (self.len + 1) * 4 > self.places.len() * 3 {
            self.grow(hash_of);
        }
        self.put(hash, slot);
        self.len += 1;
    }

    /// Takes a slot out that is in it.
    pub fn remove(&mut self, hash: u32, slot: u32, hash_of: impl Fn(u32) -> u32) {
        let mask = self.places.len() - 1;
        let mut hole = hash as usize & mask;
        while self.places[hole] != slot + 1 {
            hole = (hole + 1) & mask;
        }
        let mut at = (hole + 1) & mask;
        // Moves back what a search would no longer reach past the hole.
        while let Some(other) = self.places[at].checked_sub(1) {
            let home = hash_of(other) as usize & mask;
            let from_home = at.wrapping_sub(home) & mask;
            let from_hole = at.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.places[hole] = self.places[at];
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.places[hole] = 0;
        self.len -= 1;
    }

    fn grow(&mut self, hash_of: impl Fn(u32) -> u32) {
        let length = (self.places.len() * 2).max(SMALLEST);
        let old = std::mem::replace(&mut self.places, vec![0; length]);
        for slot in old.into_iter().filter_map(|place| place.checked_sub(1)) {
            self.put(hash_of(slot), slot);
        }
    }

    fn put(&mut self, hash: u32, slot: u32) {
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        while self.places[at] != 0 {
            at = (at + 1) & mask;
        }
        self.places[at] = slot + 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Few hashes, so that most of them collide.
    fn hash_of(slot: u32) -> u32 {
        slot % 7
    }

    proptest! {
        #[test]
        fn finds_exactly_what_is_in_it(steps in prop::collection::vec((any::<bool>(), 0u32..40), 0..200)) {
            let (mut index, mut naive) = (Index::default(), std::collections::BTreeSet::new());
            for (is_insert, slot) in steps {
                if is_insert && naive.insert(slot) {
                    index.insert(hash_of(slot), slot, hash_of);
                } else if !is_insert && naive.remove(&slot) {
                    index.remove(hash_of(slot), slot, hash_of);
                }
                for slot in 0..40 {
                    let found = index.find(hash_of(slot), |it| it == slot);
                    prop_assert_eq!(found.is_some(), naive.contains(&slot));
                }
            }
        }
    }
}
