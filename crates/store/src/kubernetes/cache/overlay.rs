//! What this store was answered and its watch has not told yet.

use std::collections::BTreeMap;

use concert_model::{Encoded, ObjectKey, Uid};

use super::Order;

/// Most keys remembered. A watch that is so far behind is not worth reading from.
const KEYS_MAX: usize = 4_096;

/// What is known better than the watch knows it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Newer {
    /// This state, which was written or read.
    State(Encoded, Order),
    /// This incarnation is gone; `at` was its last state known.
    Gone { uid: Uid, at: Order },
    /// Whatever it is, it is not what the watch told: ask.
    Stale,
}

/// By key, everything that the watch has yet to catch up with.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    keys: BTreeMap<ObjectKey, Newer>,
    /// There was no room for something: only a list makes good for that.
    has_lost: bool,
}

impl Overlay {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Newer> {
        self.keys.get(key)
    }

    pub(super) fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// A list is about to be asked for: it will show all that was lost so far.
    pub(super) fn will_list(&mut self) {
        self.has_lost = false;
    }

    /// True if the watch has yet to tell something that was answered.
    pub(super) fn is_ahead(&self) -> bool {
        self.keys.values().any(|newer| *newer != Newer::Stale)
    }

    fn insert(&mut self, key: &ObjectKey, newer: Newer) {
        if self.keys.len() < KEYS_MAX || self.keys.contains_key(key) {
            self.keys.insert(key.clone(), newer);
        } else {
            self.has_lost = true;
        }
    }

    /// Takes a state that was answered, unless something newer is known already.
    pub(super) fn answered(&mut self, object: &Encoded, order: Order) {
        let is_newer = match self.keys.get(object.key()) {
            Some(Newer::State(_, known)) => order > *known,
            Some(Newer::Gone { uid, at }) => order > *at && object.head().uid != *uid,
            Some(Newer::Stale) | None => true,
        };
        if is_newer {
            self.insert(object.key(), Newer::State(object.clone(), order));
        }
    }

    /// Takes the answer that an object is gone.
    pub(super) fn gone(&mut self, last: &Encoded, at: Order) {
        let is_newer = match self.keys.get(last.key()) {
            Some(Newer::State(known, order)) => at >= *order || known.head().uid == last.head().uid,
            Some(Newer::Gone { at: known, .. }) => at > *known,
            Some(Newer::Stale) | None => true,
        };
        if is_newer {
            self.insert(last.key(), Newer::Gone { uid: last.head().uid.clone(), at });
        }
    }

    /// Takes a sign that whatever is known of `key` may be old, what was answered included.
    pub(super) fn stale(&mut self, key: &ObjectKey) {
        self.insert(key, Newer::Stale);
    }

    /// The server was asked for a state that the watch has told already: no more doubt.
    pub(super) fn confirmed(&mut self, key: &ObjectKey) {
        if self.keys.get(key) == Some(&Newer::Stale) {
            self.keys.remove(key);
        }
    }

    /// The server was asked, and there is no such object. `is_cached` if the watch has told of one.
    pub(super) fn absent(&mut self, key: &ObjectKey, is_cached: bool) {
        match self.keys.get(key) {
            Some(Newer::State(object, at)) => {
                let newer = Newer::Gone { uid: object.head().uid.clone(), at: *at };
                self.insert(key, newer);
            }
            Some(Newer::Gone { .. }) => {}
            Some(Newer::Stale) | None if is_cached => self.insert(key, Newer::Stale),
            Some(Newer::Stale) | None => drop(self.keys.remove(key)),
        }
    }

    /// The watch told a state of `object`.
    pub(super) fn told(&mut self, object: &Encoded, order: Order) {
        let is_past = match self.keys.get(object.key()) {
            Some(Newer::Gone { uid, at }) => object.head().uid != *uid && order > *at,
            Some(Newer::State(..) | Newer::Stale) | None => false,
        };
        if is_past {
            self.keys.remove(object.key());
        }
        self.passed(order);
    }

    /// The watch told that `object` is gone.
    pub(super) fn told_gone(&mut self, object: &Encoded, order: Order) {
        let is_past = match self.keys.get(object.key()) {
            Some(Newer::Gone { uid, at }) => object.head().uid == *uid || order > *at,
            Some(Newer::Stale) => true,
            Some(Newer::State(..)) | None => false,
        };
        if is_past {
            self.keys.remove(object.key());
        }
        self.passed(order);
    }

    /// The watch has told everything up to `order`.
    pub(super) fn passed(&mut self, order: Order) {
        self.keys.retain(|_, newer| !matches!(newer, Newer::State(_, at) if *at <= order));
    }

    /// Everything was listed at `order`; `uid_of` says who has a key now.
    pub(super) fn listed<'a>(&mut self, order: Order, uid_of: impl Fn(&ObjectKey) -> Option<&'a Uid>) {
        self.passed(order);
        self.keys.retain(|key, newer| match newer {
            // Known to the list, and not in it: the watch will have nothing to say of it.
            Newer::Gone { uid, at } => *at > order || uid_of(key) == Some(uid),
            Newer::State(..) | Newer::Stale => true,
        });
    }
}
