//! The revision of each entry, from the versions of its sections.
//!
//! The revision is the sum over all sections that the entry has or had: the version of one that is there,
//! the floor of one that is not. Each write and each removal raises exactly one summand, so the revision
//! rises with each, and no row exists that all writers of an entry would meet at. It follows from sections
//! alone: whoever hears of their changes in the order in which they were made counts the same.

use std::collections::{BTreeMap, HashMap};

use super::entry::Entry;
use super::section::Section;
use crate::key::Uid;
use crate::object::Object;

/// What is known of the sections of all entries. An entry is known by its uid: one of the same name that
/// comes later counts anew.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: HashMap<Uid, Tally>,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    /// Whether the entry itself was seen, and not only sections of it.
    is_known: bool,
    revision: u64,
    sections: BTreeMap<String, Mark>,
}

#[derive(Clone, Debug, Default)]
struct Mark {
    /// The newest version that was heard of.
    version: u64,
    is_there: bool,
    /// What it counts when it is not there: by those who heard it go, or by what its entry says.
    floor: u64,
    /// Versions below are late news: the section has gone since.
    gone: u64,
    /// The revision that its last change made.
    changed_at: u64,
}

impl Mark {
    /// What it adds to the revision.
    fn counts(&self) -> u64 {
        if self.is_there { self.version } else { self.floor }
    }
}

impl Tally {
    /// Changes what is known of a section, and the revision with it.
    fn change(&mut self, section: &str, change: impl FnOnce(&mut Mark)) {
        if !self.sections.contains_key(section) {
            self.sections.insert(section.to_owned(), Mark::default());
        }
        let Some(mark) = self.sections.get_mut(section) else { return };
        let before = mark.counts();
        change(mark);
        if mark.counts() != before {
            self.revision = self.revision - before + mark.counts();
            mark.changed_at = self.revision;
        }
    }
}

impl Ledger {
    /// One that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Hears of an entry as it is.
    pub fn note_entry(&mut self, entry: &Object) {
        let entry = Entry(entry);
        let tally = self.entries.entry(entry.uid()).or_default();
        tally.is_known = true;
        // A floor is written before its section goes, and counts from when it has gone.
        for (section, floor) in entry.floors() {
            tally.change(&section, |mark| mark.floor = mark.floor.max(floor));
        }
    }

    /// Hears of a section as it is. What is older than what is known changes nothing.
    pub fn note_section(&mut self, section: &Object) {
        let section = Section(section);
        let Some(uid) = section.entry_uid() else { return };
        let version = section.version();
        self.entries.entry(uid).or_default().change(section.name(), |mark| {
            if version >= mark.gone && version >= mark.version {
                (mark.version, mark.is_there) = (version, true);
            }
        });
    }

    /// Hears that a section has gone; `last` is what it was.
    pub fn remove_section(&mut self, last: &Object) {
        let last = Section(last);
        if let Some(uid) = last.entry_uid() {
            self.lose_section(&uid, last.name(), last.version());
        }
    }

    /// Finds that a section is not there any more, of which `version` is the last that was heard of.
    pub fn lose_section(&mut self, entry: &Uid, section: &str, version: u64) {
        let Some(tally) = self.entries.get_mut(entry) else { return };
        tally.change(section, |mark| {
            mark.gone = mark.gone.max(version + 1);
            mark.floor = mark.floor.max(mark.gone);
            mark.is_there &= mark.version > version;
        });
        if !tally.is_known && !tally.sections.values().any(|it| it.is_there) {
            self.entries.remove(entry);
        }
    }

    /// Hears that an entry has gone.
    pub fn remove_entry(&mut self, entry: &Uid) {
        if let Some(tally) = self.entries.get_mut(entry) {
            tally.is_known = false;
            if !tally.sections.values().any(|it| it.is_there) {
                self.entries.remove(entry);
            }
        }
    }

    /// The revision of an entry: rises with every change of its sections. 0 if it has none.
    pub fn revision(&self, entry: &Uid) -> u64 {
        self.entries.get(entry).map_or(0, |it| it.revision)
    }

    /// The sections that are there.
    pub fn sections<'a>(&'a self, entry: &Uid) -> impl Iterator<Item = &'a str> {
        let marks = self.entries.get(entry).map(|it| it.sections.iter()).into_iter().flatten();
        marks.filter(|(_, mark)| mark.is_there).map(|(name, _)| name.as_str())
    }

    /// Whether a section has changed, come or gone after `revision` of its entry. In doubt it has.
    pub fn has_changed(&self, entry: &Uid, section: &str, revision: u64) -> bool {
        let mark = self.entries.get(entry).and_then(|it| it.sections.get(section));
        mark.is_some_and(|it| it.changed_at > revision)
    }

    /// Says that everything that is was heard of once, in whichever order. When each section was changed
    /// is not known from that: at the latest, at the revision as it is now.
    pub fn settle(&mut self) {
        for tally in self.entries.values_mut() {
            for mark in tally.sections.values_mut() {
                mark.changed_at = tally.revision;
            }
        }
    }
}
