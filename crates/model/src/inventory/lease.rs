//! Under which claim of work something is written.

use serde::{Deserialize, Serialize};

use crate::key::Uid;

/// A claim of one item: the mothership lends it to one host at a time, and counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Which incarnation of the item. Whoever counts anew, because its own data were lost, has others.
    pub item: Uid,
    /// The number of the claim: a later one is higher.
    pub fence: u64,
}

/// The item was claimed again since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stale fence: the item was claimed again, fence {given} is older than {newest}")]
pub struct Stale {
    /// The one that came too late.
    pub given: u64,
    /// The newest that is known.
    pub newest: u64,
}

impl Lease {
    /// Whether this one may still write where `newest` wrote before.
    ///
    /// # Errors
    /// [`Stale`] if that was a later claim of the same item.
    pub fn check(&self, newest: Option<&Lease>) -> Result<(), Stale> {
        match newest {
            Some(newest) if newest.item == self.item && newest.fence > self.fence => {
                Err(Stale { given: self.fence, newest: newest.fence })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(item: &str, fence: u64) -> Lease {
        Lease { item: Uid(item.into()), fence }
    }

    #[test]
    fn an_older_claim_of_the_same_item_is_refused() {
        let newest = lease("a", 7);
        assert_eq!(lease("a", 6).check(Some(&newest)), Err(Stale { given: 6, newest: 7 }));
        assert_eq!(lease("a", 7).check(Some(&newest)), Ok(()));
        assert_eq!(lease("a", 8).check(Some(&newest)), Ok(()));
        assert_eq!(lease("a", 1).check(None), Ok(()));
        // One that is counted elsewhere cannot be compared.
        assert_eq!(lease("b", 1).check(Some(&newest)), Ok(()));
    }
}
