//! States that were written a moment ago, at hand for whoever updates them next.
//!
//! Most updates follow the write that made their ground. Such a state need not be read and opened again:
//! it is only trusted as far as the commit's precondition holds, so it can be old but never wrong.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use concert_model::{Encoded, ObjectKey, ResourceVersion};

use super::hub::Published;
use crate::backend::Act;

/// States kept: more than can be on their way from a write to the next.
const STATES_MAX: usize = 2_048;
/// A larger state is not kept: two thousand of them would be felt.
const STATE_BYTES_MAX: usize = 4_096;

#[derive(Default)]
pub(super) struct Recent(Mutex<States>);

#[derive(Default)]
struct States {
    by_key: HashMap<ObjectKey, Encoded>,
    /// Each key once, the oldest first.
    order: VecDeque<ObjectKey>,
}

impl Recent {
    /// The state of `key` that was written as `version`.
    pub(super) fn find(&self, key: &ObjectKey, version: &ResourceVersion) -> Option<Encoded> {
        self.lock().by_key.get(key).filter(|state| state.resource_version() == version).cloned()
    }

    /// Takes note of committed changes.
    pub(super) fn learn(&self, published: &[Published]) {
        let mut states = self.lock();
        for Published { act, object, .. } in published {
            let is_kept = *act != Act::Removed && object.body().payload().len() <= STATE_BYTES_MAX;
            states.set(object.key(), is_kept.then_some(object));
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        *self.lock() = States::default();
    }

    fn lock(&self) -> MutexGuard<'_, States> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl States {
    fn set(&mut self, key: &ObjectKey, state: Option<&Encoded>) {
        match (self.by_key.get_mut(key), state) {
            (Some(stored), Some(state)) => *stored = state.clone(),
            // Its place in the order stays until its turn comes.
            (Some(_), None) => drop(self.by_key.remove(key)),
            (None, None) => {}
            (None, Some(state)) => {
                self.by_key.insert(key.clone(), state.clone());
                self.order.push_back(key.clone());
                while self.order.len() > STATES_MAX {
                    let oldest = self.order.pop_front();
                    oldest.map(|oldest| self.by_key.remove(&oldest));
                }
            }
        }
    }
}
