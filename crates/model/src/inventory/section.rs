//! A section: one named part of what is known of an entry.

use serde::Deserialize;
use serde_json::{Value, json};

use super::entry::Entry;
use super::lease::Lease;
use super::names;
use crate::key::Uid;
use crate::object::Object;
use crate::time::{self, Timestamp};

/// An object read as a section.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a>(pub &'a Object);

impl<'a> Section<'a> {
    /// The entry that it is a part of.
    pub fn entry(self) -> &'a str {
        self.text("entry")
    }

    /// What it is called in its entry.
    pub fn name(self) -> &'a str {
        self.text("section")
    }

    /// Which incarnation of the entry.
    pub fn entry_uid(self) -> Option<Uid> {
        self.0.owners().into_iter().find(|it| it.kind == "Cluster").map(|it| it.uid)
    }

    /// Whether its contents lie in a secret.
    pub fn is_secret(self) -> bool {
        self.0.spec()["secret"].as_bool().unwrap_or_default()
    }

    /// Its contents; null if they lie in a secret.
    pub fn data(self) -> &'a Value {
        &self.0.spec()["data"]
    }

    /// The name of the secret with its contents; none if they do not lie in one.
    pub fn secret_name(self) -> Option<&'a str> {
        self.0.spec()["secretRef"]["name"].as_str()
    }

    /// Rises with each write that changes the contents.
    pub fn version(self) -> u64 {
        self.0.spec()["version"].as_u64().unwrap_or_default()
    }

    /// Of the contents.
    pub fn hash(self) -> &'a str {
        self.text("hash")
    }

    /// Who wrote the contents.
    pub fn writer(self) -> &'a str {
        self.text("writer")
    }

    /// The newest claim of work that it was written under; none if it never was under one.
    pub fn lease(self) -> Option<Lease> {
        Lease::deserialize(&self.0.spec()["lease"]).ok()
    }

    /// When the contents were written.
    pub fn updated_at(self) -> Option<Timestamp> {
        time::parse(self.text("updatedAt"))
    }

    /// Whether its contents are those of `other`.
    pub fn is_same_as(self, other: Section<'_>) -> bool {
        self.is_secret() == other.is_secret() && self.hash() == other.hash()
    }

    fn text(self, field: &str) -> &'a str {
        self.0.spec()[field].as_str().unwrap_or_default()
    }

    /// A section of `entry` with nothing in it yet.
    pub fn of(entry: Entry<'_>, section: &str) -> Object {
        let kind = names::versioned(&names::section_kind());
        let mut object = Object::new(&kind, "", &names::section_object(entry.id(), section));
        object.set("spec", json!({"entry": entry.id(), "section": section}));
        belong(&mut object, entry, section);
        object
    }
}

/// Gives an object the owner and the labels of a section of `entry`.
pub(super) fn belong(object: &mut Object, entry: Entry<'_>, section: &str) {
    object.set_label(names::ENTRY, entry.id());
    object.set_label(names::SECTION, section);
    object.set_metadata("ownerReferences", json!([entry.owner()]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_belongs_to_its_entry() {
        let mut cluster = Object::new(&names::versioned(&names::entry_kind()), "", "rt-1");
        cluster.set_metadata("uid", json!("u"));
        let object = Section::of(Entry(&cluster), "network");
        let section = Section(&object);
        assert_eq!(object.name(), "rt-1.network");
        assert_eq!((section.entry(), section.name()), ("rt-1", "network"));
        assert_eq!(section.entry_uid(), Some(Uid("u".into())));
        assert_eq!(object.labels()[names::ENTRY], "rt-1");
        assert_eq!((section.version(), section.is_secret()), (0, false));
    }
}
