//! On which keys a controller works, and under which claim.

use concert_model::ObjectKey;
use concert_store::Fence;

use super::{Shares, Stay};

/// On which keys a controller works, and under which claim.
#[derive(Clone, Debug, Default)]
pub enum Authority {
    /// On all. A durable controller makes a claim of its own when it starts.
    #[default]
    Alone,
    /// On all, under one claim: that of whoever leads.
    Seat(Fence),
    /// On all, in this term of whoever leads. The store does not know of terms: they are for others, who refuse
    /// a lower one than they have seen. A durable controller makes a claim of its own when it starts.
    Term(u64),
    /// On those that this member holds, each under the claim of its share.
    Shared(Shares),
    /// On all, on every member. Runs of keys that another member holds only look on, and write nothing.
    Everywhere(Shares),
}

/// What a run of a key may do here.
pub(crate) enum Leave {
    /// It runs, under this claim, and is counted among those in its share until it ends.
    Run(Option<Fence>, Option<Stay>),
    /// It runs and looks on.
    LookOn,
    /// It is somebody else's.
    Not,
}

impl Authority {
    /// The same for a controller that every member must run on all keys, such as one that starts others.
    #[must_use]
    pub fn everywhere(&self) -> Self {
        match self {
            Self::Shared(shares) => Self::Everywhere(shares.clone()),
            other => other.clone(),
        }
    }

    /// What is held here of all keys, where they are shared.
    pub fn shares(&self) -> Option<&Shares> {
        match self {
            Self::Shared(shares) | Self::Everywhere(shares) => Some(shares),
            Self::Alone | Self::Seat(_) | Self::Term(_) => None,
        }
    }

    /// The term of whoever leads, where that is all there is.
    pub fn term(&self) -> Option<u64> {
        match self {
            Self::Term(term) => Some(*term),
            Self::Alone | Self::Seat(_) | Self::Shared(_) | Self::Everywhere(_) => None,
        }
    }

    /// Whether `key` is an item here.
    pub(crate) fn has(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Shared(shares) => shares.holds(key),
            Self::Alone | Self::Seat(_) | Self::Term(_) | Self::Everywhere(_) => true,
        }
    }

    pub(crate) fn leave_for(&self, key: &ObjectKey) -> Leave {
        match self {
            Self::Alone | Self::Term(_) => Leave::Run(None, None),
            Self::Seat(fence) => Leave::Run(Some(fence.clone()), None),
            Self::Shared(shares) | Self::Everywhere(shares) => match (shares.enter(key), self) {
                (Some(stay), _) => Leave::Run(Some(stay.fence().clone()), Some(stay)),
                (None, Self::Everywhere(_)) => Leave::LookOn,
                (None, _) => Leave::Not,
            },
        }
    }
}

impl From<Option<Fence>> for Authority {
    fn from(fence: Option<Fence>) -> Self {
        fence.map_or(Self::Alone, Self::Seat)
    }
}
