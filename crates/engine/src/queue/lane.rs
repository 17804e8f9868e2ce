//! Lanes: who goes first.

use serde::{Deserialize, Serialize};

/// Why a key is in a hurry. Fresh changes overtake polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// Somebody changed what is wanted.
    User,
    /// Something else happened.
    Event,
    /// It is to be tried again.
    Retry,
    /// It is time for a look.
    Poll,
}

impl Lane {
    /// All lanes, best first.
    pub const ALL: [Lane; 4] = [Lane::User, Lane::Event, Lane::Retry, Lane::Poll];

    /// The lane in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Lane::User => "user",
            Lane::Event => "event",
            Lane::Retry => "retry",
            Lane::Poll => "poll",
        }
    }
}

impl std::fmt::Display for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
