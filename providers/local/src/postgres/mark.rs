//! The comment by which a role is known to be ours.

use serde::{Deserialize, Serialize};

use crate::owner::Owner;

/// How a comment of ours starts.
pub(super) const PREFIX: &str = "concert:";

/// For whom a role and its database were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) owner: Owner,
    pub(super) token: String,
    pub(super) database: String,
}

impl Mark {
    pub(super) fn read(comment: &str) -> Option<Self> {
        serde_json::from_str(comment.strip_prefix(PREFIX)?).ok()
    }

    pub(super) fn write(&self) -> String {
        format!("{PREFIX}{}", serde_json::to_string(self).unwrap_or_default())
    }
}
