//! What the cloud refuses, and what it loses.

use std::time::Duration;

/// Why a call failed, by what its caller can know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nothing happened; the same call may succeed.
    #[error("the cloud is out of order for the moment")]
    OutOfOrder,
    /// Nothing happened; the account has used up its quota.
    #[error("account {account} has used up its quota")]
    Throttled {
        /// Whose quota.
        account: String,
        /// When there will be one call again.
        retry_after: Duration,
    },
    /// It may have happened: the answer was lost.
    #[error("the connection to the cloud was lost before its answer came")]
    AnswerLost,
    /// Nothing happened and never will: somebody else has the name.
    #[error("{name} exists and belongs to somebody else")]
    Taken {
        /// The name that was asked for.
        name: String,
    },
    /// Nothing happened and never will: a lookup has promised so, or what was made is gone again.
    #[error("the token {token} cannot be used any more")]
    TokenSpent {
        /// The token.
        token: String,
    },
    /// There is no such thing, or it cannot be seen yet.
    #[error("{id} does not exist")]
    Missing {
        /// The id that was asked for.
        id: String,
    },
    /// The field is fixed for the life of a thing.
    #[error("{field} cannot change: it needs a new thing")]
    Immutable {
        /// The property.
        field: String,
    },
    /// The truth could not be written down, so nothing was done.
    #[error("cannot write the truth log: {reason}")]
    Unwritten {
        /// What the file system said.
        reason: String,
    },
}
