//! Groups, kinds, labels, and how sections, secrets and items are called.

use crate::key::{GroupKind, GroupVersionKind, ObjectKey};
use crate::name::{self, SyntaxError};

/// The group of entries, sections, their types, and grants.
pub const GROUP: &str = "inventory.concert.dev";
/// The group of items.
pub const MOTHERSHIP: &str = "mothership.concert.dev";
/// The version of all kinds of both groups.
pub const VERSION: &str = "v1alpha1";
/// The namespace of the contents of secret sections.
pub const NAMESPACE: &str = "concert-inventory";

/// Label of sections, secrets and items: the id of the entry.
pub const ENTRY: &str = "inventory.concert.dev/entry";
/// Label of sections and secrets: the name of the section.
pub const SECTION: &str = "inventory.concert.dev/section";
/// Label of items: the name of the reconciler's object.
pub const RECONCILER: &str = "mothership.concert.dev/reconciler";
/// Annotation of entries: which versions sections had that are no longer there, as a JSON object.
pub const FLOORS: &str = "inventory.concert.dev/floors";
/// The type of secrets that hold the contents of a section.
pub const SECRET_TYPE: &str = "inventory.concert.dev/section";
/// The field of such a secret with the contents, as JSON.
pub const CONTENT: &str = "content";

/// Entries.
pub fn entry_kind() -> GroupKind {
    GroupKind::new(GROUP, "Cluster")
}

/// Sections of entries.
pub fn section_kind() -> GroupKind {
    GroupKind::new(GROUP, "Section")
}

/// What is known of all sections of one name.
pub fn section_type_kind() -> GroupKind {
    GroupKind::new(GROUP, "SectionType")
}

/// What reconcilers may read and write.
pub fn grant_kind() -> GroupKind {
    GroupKind::new(GROUP, "Grant")
}

/// One reconciler on one entry.
pub fn item_kind() -> GroupKind {
    GroupKind::new(MOTHERSHIP, "Item")
}

/// What holds the contents of secret sections.
pub fn secret_kind() -> GroupKind {
    GroupKind::new("", "Secret")
}

/// `kind` in the version that all of ours have.
pub fn versioned(kind: &GroupKind) -> GroupVersionKind {
    kind.at_version(VERSION)
}

/// Where an entry is.
pub fn entry_key(entry: &str) -> ObjectKey {
    ObjectKey::cluster(entry_kind(), entry)
}

/// Where a section of an entry is.
pub fn section_key(entry: &str, section: &str) -> ObjectKey {
    ObjectKey::cluster(section_kind(), section_object(entry, section))
}

/// Where the type of all sections of a name is.
pub fn section_type_key(section: &str) -> ObjectKey {
    ObjectKey::cluster(section_type_kind(), section)
}

/// Where the grant of a reconciler is. Reconcilers are called as workers are.
pub fn grant_key(reconciler: &str) -> ObjectKey {
    ObjectKey::cluster(grant_kind(), crate::no8s::names::worker_object(reconciler))
}

/// Where the item of a reconciler on an entry is.
pub fn item_key(entry: &str, reconciler: &str) -> ObjectKey {
    ObjectKey::cluster(item_kind(), item_object(entry, reconciler))
}

/// What a section of an entry is called as an object.
pub fn section_object(entry: &str, section: &str) -> String {
    format!("{entry}.{section}")
}

/// Entry and section, by the name of the object.
pub fn parse_section_object(name: &str) -> Option<(&str, &str)> {
    let (entry, section) = name.split_once('.')?;
    (check_entry(entry).is_ok() && check_section(section).is_ok()).then_some((entry, section))
}

/// What the secret of one version of a secret section is called, before the part that chance adds: two that
/// write the same version at once must not write the same object.
pub fn secret_prefix(entry: &str, section: &str, version: u64) -> String {
    format!("{entry}.{section}.{version}-")
}

/// What a reconciler on an entry is called as an object.
pub fn item_object(entry: &str, reconciler: &str) -> String {
    format!("{entry}.{}", crate::no8s::names::worker_object(reconciler))
}

/// The id of an entry must be a label, so that a dot ends it wherever it is part of a name.
///
/// # Errors
/// What would be right.
pub fn check_entry(text: &str) -> Result<(), SyntaxError> {
    name::check_label(text)
}

/// The name of a section must be a label as well.
///
/// # Errors
/// What would be right.
pub fn check_section(text: &str) -> Result<(), SyntaxError> {
    name::check_label(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_of_a_section_says_which_it_is() {
        assert_eq!(parse_section_object(&section_object("rt-1", "network")), Some(("rt-1", "network")));
        for name in ["network", "a.", ".a", "a.b.c", "A.b"] {
            assert_eq!(parse_section_object(name), None, "{name}");
        }
    }

    #[test]
    fn the_longest_names_make_names_of_objects() {
        let long = "a".repeat(63);
        let secret = format!("{}abcdefgh", secret_prefix(&long, &long, u64::MAX));
        for name in [section_object(&long, &long), secret] {
            assert!(name::check_subdomain(&name).is_ok(), "{name}");
        }
        assert_eq!(item_object("rt-1", "shoot"), "rt-1.shoot");
        assert!(name::check_subdomain(&item_object("rt-1", "a_b")).is_ok());
    }
}
