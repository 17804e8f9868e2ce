//! Owner references: who an object lives and dies with.

use serde::{Deserialize, Serialize};

use crate::key::Uid;

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// `group/version` of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner, in the same namespace or cluster-scoped.
    pub name: String,
    /// The one incarnation meant.
    pub uid: Uid,
    /// At most one owner may be the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether a foreground deletion of the owner waits for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// True for the owner that controls the object.
    pub fn is_controller(&self) -> bool {
        self.controller == Some(true)
    }
}
