//! Items that wait for something else, and what wakes them.
//!
//! An item is entered here before what it read is compared with what is, and the compare comes after
//! the watch has begun: a change before the compare is seen by it, a later one by the watch.

use std::time::Duration;

use concert_model::{Encoded, ObjectKey};

use crate::outcome::Wait;
use crate::queue::{ItemId, Lane, Reason};

use super::core::Core;
use super::waits::Scope;

const DEPENDENCY: Reason = "dependency";

/// What is known of an item whose waits are still to be compared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unverified {
    /// Whether changes may have been missed since they were read.
    pub has_gap: bool,
    /// Tries to compare that failed, in a row.
    pub failures: u32,
}

impl Unverified {
    fn merge(&mut self, other: Unverified) {
        self.has_gap |= other.has_gap;
        self.failures = self.failures.max(other.failures);
    }
}

impl Core {
    pub(super) fn park(&mut self, id: ItemId, key: &ObjectKey, waits: Vec<Wait>, has_gap: bool) {
        self.waits.insert(key, &waits);
        self.queue.note_mut(id).detail_mut().waits = waits;
        self.verify(key.clone(), Unverified { has_gap, failures: 0 });
    }

    /// `key` runs, and so waits no more.
    pub(super) fn unpark(&mut self, key: &ObjectKey, waits: &[Wait]) {
        self.waits.remove(key, waits);
        for scope in waits.iter().filter_map(|wait| self.waits.missing_watch(wait)) {
            if let Some(items) = self.unwatched.get_mut(&scope) {
                items.remove(key);
            }
        }
        self.rings.parking = true;
    }

    /// Has the waits of a parked item compared with what is.
    pub fn verify(&mut self, key: ObjectKey, unverified: Unverified) {
        self.unverified.entry(key).or_default().merge(unverified);
        self.rings.parking = true;
    }

    /// Up to `max` parked items that can be verified: every scope they wait in is watched. Looks at each
    /// item once; those that must wait for a watch are looked at again when it has begun.
    pub fn take_unverified(&mut self, max: usize) -> Vec<(ObjectKey, Unverified, Vec<Wait>)> {
        let mut ripe = Vec::new();
        while ripe.len() < max {
            let Some((key, unverified)) = self.unverified.pop_first() else { break };
            let parked_on = self.queue.find(&key).map(|id| self.queue.note(id).waits()).unwrap_or_default();
            if parked_on.is_empty() {
                continue;
            }
            match parked_on.iter().find_map(|wait| self.waits.missing_watch(wait)) {
                Some(scope) => {
                    self.unwatched.entry(scope).or_default().entry(key).or_default().merge(unverified);
                }
                None => ripe.push((key, unverified, parked_on.to_vec())),
            }
        }
        ripe
    }

    /// The watch of a scope has begun, or begun anew after a gap.
    pub fn scope_watched(&mut self, scope: &Scope) {
        let is_again = self.waits.is_watched(scope);
        self.waits.set_watched(scope, true);
        self.rings.parking = true;
        for (item, unverified) in self.unwatched.remove(scope).unwrap_or_default() {
            self.verify(item, unverified);
        }
        if is_again {
            for item in self.waits.in_scope(scope) {
                self.verify(item, Unverified { has_gap: true, failures: 0 });
            }
        }
    }

    /// The watch of a scope has ended, since nobody waits there.
    pub fn scope_unwatched(&mut self, scope: &Scope) {
        self.waits.set_watched(scope, false);
        self.unwatched.remove(scope);
    }

    /// Wakes who waits for this change of an object; none if it is gone.
    pub fn object_changed(&mut self, key: &ObjectKey, object: Option<&Encoded>, now: Duration) {
        self.wake(self.waits.on_object(key), now, |wait| {
            matches!(wait, Wait::Object { key: it, .. } if it == key) && wait.is_woken_by(object)
        });
    }

    /// Wakes who waits for another version of a label.
    pub fn signal(&mut self, label: &str, version: Option<&str>, now: Duration) {
        self.wake(self.waits.on_label(label), now, |wait| {
            matches!(wait, Wait::Label { label: it, seen } if **it == *label && seen.as_deref() != version)
        });
    }

    fn wake(&mut self, items: Vec<ObjectKey>, now: Duration, is_it: impl Fn(&Wait) -> bool) {
        for item in items {
            let Some(id) = self.queue.find(&item) else { continue };
            if self.queue.note(id).waits().iter().any(&is_it) {
                self.wake_item(&item, now);
            }
        }
    }

    /// Wakes a parked item.
    pub fn wake_item(&mut self, item: &ObjectKey, now: Duration) {
        if self.queue.find(item).is_some() {
            // A known key is never refused.
            self.add(item, Lane::Event, DEPENDENCY, now, now).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use concert_store::Chance;
    use prometheus_client::metrics::counter::Counter;

    use super::super::core::Policy;
    use super::*;
    use crate::backoff::Backoff;
    use crate::fixtures::{config_map, seconds, widget};

    #[test]
    fn no_more_items_are_looked_at_than_can_be_verified() {
        let backoff = Backoff::new(seconds(1), seconds(1));
        let policy = Policy {
            capacity: 10,
            backoff,
            poll: None,
            keeps_unknown: true,
            has_related: false,
            is_durable: false,
        };
        let mut core = Core::new(policy, Chance::seeded(1), Counter::default());
        let absent = Wait::existence_of(config_map("dependency"));
        for (name, wait) in [("a", absent), ("b", Wait::label("x", None)), ("c", Wait::label("x", None))] {
            let id = core.queue.meet(&widget(name)).unwrap();
            core.park(id, &widget(name), vec![wait], false);
        }
        // Is not parked any more.
        core.verify(widget("d"), Unverified::default());
        let names = |core: &mut Core, max| -> Vec<String> {
            core.take_unverified(max).iter().map(|it| it.0.name.to_string()).collect()
        };
        assert_eq!(names(&mut core, 0).len(), 0);
        assert_eq!((core.unverified.len(), core.unwatched.len()), (4, 0));
        assert_eq!(names(&mut core, 1), ["b"]);
        assert_eq!((core.unverified.len(), core.unwatched.len()), (2, 1));
        assert_eq!(names(&mut core, 9), ["c"]);
        assert_eq!(core.unverified.len(), 0, "nothing is looked at twice");
        core.scope_watched(&Scope::of(&config_map("dependency")));
        assert_eq!(names(&mut core, 9), ["a"]);
        assert_eq!((core.unverified.len(), core.unwatched.len()), (0, 0));
    }
}
