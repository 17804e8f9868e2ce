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

impl Core {
    pub(super) fn park(&mut self, id: ItemId, key: &ObjectKey, waits: Vec<Wait>, has_gap: bool) {
        self.waits.insert(key, &waits);
        self.queue.note_mut(id).detail_mut().waits = waits;
        *self.unverified.entry(key.clone()).or_default() |= has_gap;
        self.rings.parking = true;
    }

    /// Up to `max` parked items that can be verified: every scope they wait in is watched.
    pub fn take_unverified(&mut self, max: usize) -> Vec<(ObjectKey, bool, Vec<Wait>)> {
        let mut ripe = Vec::new();
        let (queue, waits) = (&self.queue, &self.waits);
        let is_watched = |wait: &Wait| match wait {
            Wait::Object { key, .. } => waits.is_watched(&Scope::of(key)),
            Wait::Label { .. } => true,
        };
        self.unverified.retain(|key, has_gap| {
            let parked_on = queue.find(key).map(|id| queue.note(id).waits()).unwrap_or_default();
            if parked_on.is_empty() {
                return false;
            }
            let is_ripe = ripe.len() < max && parked_on.iter().all(is_watched);
            if is_ripe {
                ripe.push((key.clone(), *has_gap, parked_on.to_vec()));
            }
            !is_ripe
        });
        ripe
    }

    /// The watch of a scope has begun, or begun anew after a gap.
    pub fn scope_watched(&mut self, scope: &Scope) {
        let is_again = self.waits.is_watched(scope);
        self.waits.set_watched(scope, true);
        self.rings.parking = true;
        if is_again {
            self.unverified.extend(self.waits.in_scope(scope).into_iter().map(|item| (item, true)));
        }
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
