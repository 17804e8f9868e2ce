//! What holds of revisions whatever is written.

use proptest::prelude::*;
use serde_json::json;

use super::{Changed, Entry, Expected, Kept, Ledger, Section, decide, names};
use crate::key::Uid;
use crate::object::Object;

/// One entry as a store would keep it.
struct World {
    entry: Object,
    sections: std::collections::BTreeMap<String, Object>,
}

impl World {
    fn new() -> Self {
        let mut entry = Object::new(&names::versioned(&names::entry_kind()), "", "rt-1");
        entry.set_metadata("uid", json!("u"));
        Self { entry, sections: Default::default() }
    }

    /// Writes contents; the section if that changed it.
    fn write(&mut self, name: &str, hash: &str) -> Option<Object> {
        let entry = Entry(&self.entry);
        let kept = Kept::of(self.sections.get(name).map(Section), entry.floor(name));
        let Ok(Changed::To(version)) = decide(kept, Expected::Anything, hash, false) else { return None };
        let mut section = Section::of(entry, name);
        section.get_mut("spec")["version"] = json!(version);
        section.get_mut("spec")["hash"] = json!(hash);
        self.sections.insert(name.to_owned(), section.clone());
        Some(section)
    }

    /// Writes the floor, as is done before a section is removed.
    fn lower(&mut self, name: &str) {
        let Some(section) = self.sections.get(name) else { return };
        let floor = Section(section).version() + 1;
        if let Some(floors) = Entry(&self.entry).with_floor(name, floor) {
            self.entry.set_annotation(names::FLOORS, &floors);
        }
    }

    /// What somebody counts who has just come, and heard of the entry first or last.
    fn read(&self, is_entry_first: bool) -> Ledger {
        let mut ledger = Ledger::new();
        if is_entry_first {
            ledger.note_entry(&self.entry);
        }
        self.sections.values().for_each(|it| ledger.note_section(it));
        ledger.note_entry(&self.entry);
        ledger.settle();
        ledger
    }
}

proptest! {
    #[test]
    fn the_revision_rises_with_each_change_and_everybody_counts_the_same(
        steps in prop::collection::vec((0_u8..4, 0_usize..3, 0_u8..3), 0..60)
    ) {
        let (mut world, mut follower, uid) = (World::new(), Ledger::new(), Uid("u".into()));
        follower.note_entry(&world.entry);
        for (what, section, hash) in steps {
            let name = ["network", "cluster", "credentials"][section];
            let before = follower.revision(&uid);
            let changed = match what {
                // The floor is written, and the removal may not follow.
                0 => {
                    world.lower(name);
                    follower.note_entry(&world.entry);
                    false
                }
                1 => {
                    world.lower(name);
                    follower.note_entry(&world.entry);
                    let gone = world.sections.remove(name);
                    gone.iter().for_each(|it| follower.remove_section(it));
                    gone.is_some()
                }
                _ => {
                    let written = world.write(name, &hash.to_string());
                    written.iter().for_each(|it| follower.note_section(it));
                    written.is_some()
                }
            };
            let after = follower.revision(&uid);
            prop_assert_eq!(after > before, changed);
            prop_assert_eq!(follower.has_changed(&uid, name, before), changed);
            prop_assert!(!follower.has_changed(&uid, name, after));
            let newcomer = world.read(what == 1);
            prop_assert_eq!(newcomer.revision(&uid), after);
            prop_assert!(!newcomer.has_changed(&uid, name, after));
            prop_assert!(newcomer.sections(&uid).eq(world.sections.keys().map(String::as_str)));
        }
    }
}

#[test]
fn an_entry_of_the_same_name_counts_anew() {
    let mut world = World::new();
    let mut ledger = Ledger::new();
    ledger.note_entry(&world.entry);
    let section = world.write("network", "a").unwrap();
    ledger.note_section(&section);
    ledger.remove_entry(&Uid("u".into()));
    // Its sections go after it.
    assert_eq!(ledger.revision(&Uid("u".into())), 1);
    ledger.remove_section(&section);
    assert_eq!(ledger.revision(&Uid("u".into())), 0);
    assert_eq!(ledger.revision(&Uid("v".into())), 0);
}

#[test]
fn late_news_change_nothing() {
    let mut world = World::new();
    let mut ledger = Ledger::new();
    ledger.note_entry(&world.entry);
    let old = world.write("network", "a").unwrap();
    let new = world.write("network", "b").unwrap();
    ledger.note_section(&new);
    ledger.note_section(&old);
    assert_eq!(ledger.revision(&Uid("u".into())), 2);
    ledger.remove_section(&new);
    ledger.note_section(&new);
    assert_eq!(ledger.revision(&Uid("u".into())), 3);
    assert_eq!(ledger.sections(&Uid("u".into())).count(), 0);
}
