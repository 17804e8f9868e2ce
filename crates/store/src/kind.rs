//! How a kind is served.
//!
//! Kinds are objects: a CustomResourceDefinition registers one; a few are built in.

use std::sync::Arc;

use concert_model::metadata::NameRule;
use concert_model::{GroupKind, GroupVersionKind};

/// One kind, as the store enforces it.
#[derive(Debug)]
pub struct Kind {
    /// Group and kind.
    pub group_kind: GroupKind,
    /// The version objects are stored in.
    pub storage_version: Arc<str>,
    /// All versions that are served, the storage version among them.
    pub versions: Vec<Arc<str>>,
    /// Plural, lower case: `widgets`.
    pub plural: Arc<str>,
    /// Whether objects live in namespaces.
    pub is_namespaced: bool,
    /// Whether status is written apart from the rest.
    pub has_status: bool,
    /// Whether objects count generations.
    pub has_generation: bool,
    /// How names are spelt.
    pub name_rule: NameRule,
    /// Fields that clients may select by, besides `metadata.name` and `metadata.namespace`.
    pub selectable_fields: Vec<String>,
}

impl Kind {
    /// The kind in its storage version.
    pub fn gvk(&self) -> GroupVersionKind {
        self.group_kind.at_version(self.storage_version.clone())
    }
}
