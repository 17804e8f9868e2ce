//! How far a resource is.

use std::fmt;
use std::str::FromStr;

/// The one word that REST calls `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nobody has begun.
    Pending,
    /// A worker is at it, or waits for something outside.
    Reconciling,
    /// It is as declared.
    Ready,
    /// The last try did not work; there will be another.
    Failed,
    /// It is to go.
    Deleting,
}

/// A text that is no phase.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a status: it must be pending, reconciling, ready, failed or deleting")]
pub struct UnknownPhase(pub String);

impl Phase {
    /// All of them.
    pub const ALL: [Phase; 5] =
        [Phase::Pending, Phase::Reconciling, Phase::Ready, Phase::Failed, Phase::Deleting];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Pending => "pending",
            Phase::Reconciling => "reconciling",
            Phase::Ready => "ready",
            Phase::Failed => "failed",
            Phase::Deleting => "deleting",
        }
    }
}

impl FromStr for Phase {
    type Err = UnknownPhase;

    fn from_str(text: &str) -> Result<Self, UnknownPhase> {
        Self::ALL.into_iter().find(|it| it.as_str() == text).ok_or_else(|| UnknownPhase(text.to_owned()))
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_back_and_no_other_is() {
        for phase in Phase::ALL {
            assert_eq!(phase.to_string().parse(), Ok(phase));
        }
        for bad in ["", "Ready", "done"] {
            assert!(bad.parse::<Phase>().unwrap_err().to_string().contains("reconciling"), "{bad}");
        }
    }
}
