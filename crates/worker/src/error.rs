//! What can go wrong on the way to a server.

use std::fmt::Write as _;
use std::time::Duration;

/// What a caller can act on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address, the token or the certificate cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// No answer. Whether the request had an effect is open.
    #[error("cannot reach {server}")]
    Unreachable {
        /// Who does not answer.
        server: String,
        /// Why.
        #[source]
        why: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A section is no longer at the version that was read: read again and decide again.
    #[error("section {section} has changed since it was read")]
    Moved {
        /// Which.
        section: String,
    },
    /// A refusal, in the words of the server.
    #[error("{detail} (HTTP {status})")]
    Refused {
        /// The code.
        status: u16,
        /// The reason.
        detail: String,
        /// After what time it wishes to be asked again.
        retry_after: Option<Duration>,
    },
    /// The answer is not what the protocol says.
    #[error("{server} answered something else than the protocol says")]
    Odd {
        /// Who did.
        server: String,
    },
}

impl Error {
    /// Whether the same request may work in a moment.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => *status == 429 || *status >= 500,
            Self::Unusable(_) | Self::Moved { .. } | Self::Odd { .. } => false,
        }
    }

    /// Whether the server has too much to do, and not whoever asks something wrong.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Refused { status: 429, .. } => true,
            Self::Refused { status, retry_after, .. } => *status == 503 && retry_after.is_some(),
            _ => false,
        }
    }

    /// After what time the server wishes to be asked again, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The code of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The whole chain of causes in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        text
    }
}
