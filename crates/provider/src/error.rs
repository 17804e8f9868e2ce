//! What can go wrong at a provider, by what the caller can do about it.

use std::time::Duration;

/// Why a call to a provider failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What to do about it.
    pub class: Class,
    /// Whether the call may have had its effect all the same. Matters for mutations only.
    pub effect: Effect,
    /// For people; never holds a secret.
    pub message: String,
    /// Not sooner than this.
    pub retry_after: Option<Duration>,
    /// The budget that is used up, where the provider names one.
    pub budget: Option<String>,
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Try again, with back-off.
    Transient,
    /// Try again after the time given, or with back-off; nothing is wrong with the object.
    Throttled,
    /// The object as it is will never succeed: wait until it changes.
    Terminal,
    /// Somebody else wrote first: read again and decide again, silently.
    Conflict,
    /// A person must act; the message says how.
    NeedsHuman,
    /// The credentials are missing, wrong or too weak.
    Denied,
    /// The provider does not serve the kind.
    NotServed,
    /// The provider cannot be reached.
    Unreachable,
    /// The provider broke the protocol; its answer was thrown away.
    Misbehaved,
}

/// Whether a failed mutation may have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It certainly did not happen and will not.
    None,
    /// It may have happened, or may still happen.
    Unknown,
}

impl Error {
    /// A failure that certainly had no effect.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self { class, effect: Effect::None, message: message.into(), retry_after: None, budget: None }
    }

    /// The same, for a mutation that may have happened.
    #[must_use]
    pub fn in_doubt(mut self) -> Self {
        self.effect = Effect::Unknown;
        self
    }

    /// The same, not to be tried again sooner than this.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }
}
