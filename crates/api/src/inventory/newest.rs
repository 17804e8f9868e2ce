//! The newest claim of each item that this process has heard of.
//!
//! Every claim comes with a token, so whoever makes tokens hears of all of them: from then on what is
//! written under an earlier one is refused, whether or not the later one has written anything yet. A claim
//! that changes a section is written down with it; the others are not, since looking must write nothing, and
//! are forgotten with this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concert_model::Uid;
use concert_model::inventory::Lease;

use crate::rest::Error;

/// Items that are remembered: ten thousand entries with five reconcilers each, twice.
const ITEMS_MAX: usize = 100_000;

/// The newest claims, shared by who makes tokens and who takes writes. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Newest(Arc<Mutex<BTreeMap<Uid, Lease>>>);

impl Newest {
    /// Refuses a claim after which another one of its item has been made; `stored` is the one that wrote
    /// last.
    pub fn check(&self, lease: Option<&Lease>, stored: Option<&Lease>) -> Result<(), Error> {
        let Some(lease) = lease else { return Ok(()) };
        let checked = lease.check(stored).and_then(|()| lease.check(self.known().get(&lease.item)));
        checked.map_err(|stale| Error::conflict(stale.to_string()))
    }

    /// There is this claim. Those that come late change nothing.
    pub fn note(&self, lease: Option<&Lease>) {
        let Some(lease) = lease else { return };
        let mut known = self.known();
        if lease.check(known.get(&lease.item)).is_err() {
            return;
        }
        if known.len() >= ITEMS_MAX && !known.contains_key(&lease.item) {
            known.pop_first();
        }
        known.insert(lease.item.clone(), lease.clone());
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Uid, Lease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(item: &str, fence: u64) -> Lease {
        Lease { item: Uid(item.into()), fence }
    }

    #[test]
    fn only_the_newest_claim_of_an_item_may_write() {
        let newest = Newest::default();
        newest.note(Some(&lease("a", 2)));
        newest.note(Some(&lease("a", 1)));
        assert!(newest.check(Some(&lease("a", 1)), None).is_err());
        assert!(newest.check(Some(&lease("a", 2)), None).is_ok());
        assert!(newest.check(Some(&lease("a", 2)), Some(&lease("a", 3))).is_err(), "another process knows");
        assert!(newest.check(Some(&lease("b", 1)), None).is_ok());
        assert!(newest.check(None, Some(&lease("a", 3))).is_ok(), "who is not at work has no claim");
    }

    #[test]
    fn the_items_that_are_remembered_have_a_bound() {
        let newest = Newest::default();
        for item in 0..=ITEMS_MAX {
            newest.note(Some(&lease(&format!("{item:06}"), 2)));
        }
        assert_eq!(newest.known().len(), ITEMS_MAX);
        let last = format!("{ITEMS_MAX:06}");
        assert!(newest.check(Some(&lease(&last, 1)), None).is_err());
    }
}
