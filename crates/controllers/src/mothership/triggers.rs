//! Turns what happens to sections into wake-ups of exactly those who care.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use concert_engine::{Change, Follow, Full, Lane, OnExit, Reason};
use concert_model::inventory::{Item, names};
use concert_model::{GroupKind, ObjectKey, Uid};
use concert_store::Query;
use tokio::sync::Notify;

use super::run::Fleet;
use super::sections::Moved;
use super::targets::CREDENTIALS;

/// Sections that have a word of their own for why; the rest are `section`.
const WORDS_MAX: usize = 128;
/// Why an item runs whose cluster has changed.
const CLUSTER_EVENT: Reason = "cluster-event";

/// Items that are remembered because they could not be woken: those of a hundred reconcilers in all clusters
/// that are watched. More than that wait for their next look.
const MISSED_MAX: usize = 100_000;

/// Who was to be woken and could not be yet: of each reconciler the entries.
#[derive(Debug, Default)]
pub(super) struct Missed(BTreeMap<Arc<str>, BTreeSet<Arc<str>>>);

impl Missed {
    fn note(&mut self, entry: &str, reconciler: &str) {
        if self.0.values().map(BTreeSet::len).sum::<usize>() < MISSED_MAX {
            self.0.entry(reconciler.into()).or_default().insert(entry.into());
        }
    }

    fn take(&mut self, reconciler: &str) -> BTreeSet<Arc<str>> {
        self.0.remove(reconciler).unwrap_or_default()
    }

    /// Forgets those that nobody will ask for.
    pub fn keep_only(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.0.retain(|reconciler, _| is_wanted(reconciler));
    }
}

/// Starts to follow entries, sections and items.
pub(super) fn start(fleet: &Arc<Fleet>) {
    let tasks = &fleet.tasks;
    let it = fleet.clone();
    tasks.spawn("mothership/sections", OnExit::Log, async move { it.follow_sections().await });
    let it = fleet.clone();
    tasks.spawn("mothership/revisions", OnExit::Log, async move { it.follow_entries().await });
    let it = fleet.clone();
    tasks.spawn("mothership/items", OnExit::Log, async move { it.follow_items().await });
}

impl Fleet {
    fn follow(&self, kind: GroupKind, is_ours: bool) -> Follow {
        let store = if is_ours { &self.parts.store } else { &self.parts.inventory };
        let (clock, chance) = (self.parts.clock.clone(), self.parts.chance.fork());
        let query = Query::all(kind);
        Follow { store: store.clone(), clock, chance, query, relist: Some(self.parts.relist) }
    }

    async fn follow_sections(&self) {
        let mut is_first = true;
        let room = Notify::new();
        while !self.tasks.shutdown().is_requested() {
            let follow = self.follow(names::section_kind(), false);
            let tell = |change: &Change| -> Result<(), Full> {
                match change {
                    Change::ListBegins => self.sections.list_begins(),
                    Change::Present { object, .. } => {
                        self.sections.note(&object.decode()).iter().for_each(|it| self.moved(it));
                    }
                    Change::Gone(object) => {
                        self.sections.gone(&object.decode()).iter().for_each(|it| self.moved(it));
                    }
                    Change::ListEnds => {
                        let is_first = std::mem::take(&mut is_first);
                        self.sections.list_ends(is_first).iter().for_each(|it| self.moved(it));
                    }
                    // Whoever defines the kind defines it again.
                    Change::Unserved => {}
                }
                Ok(())
            };
            tokio::select! {
                biased;
                () = follow.run(self.tasks.shutdown(), &room, tell) => {}
                // Somebody cares for values that nobody has told apart so far.
                () = self.relist.notified() => {}
            }
        }
    }

    /// For what entries say of sections that have gone, and for items whose entry has.
    async fn follow_entries(&self) {
        let (mut is_first, room) = (true, Notify::new());
        let mut listed: BTreeSet<Arc<str>> = BTreeSet::new();
        let tell = |change: &Change| -> Result<(), Full> {
            match change {
                Change::ListBegins => listed.clear(),
                Change::Present { object, is_listed } => {
                    if *is_listed {
                        listed.insert(object.key().name.clone());
                    }
                    self.sections.note_entry(&object.decode());
                }
                Change::Gone(object) => self.sections.entry_gone(&object.decode()),
                Change::ListEnds => {
                    if std::mem::take(&mut is_first) {
                        self.sections.entries_listed();
                    }
                    self.review_lost(&std::mem::take(&mut listed));
                }
                Change::Unserved => {}
            }
            Ok(())
        };
        self.follow(names::entry_kind(), false).run(self.tasks.shutdown(), &room, tell).await;
    }

    /// Has those looked at that have items and were not in a list of all entries.
    fn review_lost(&self, listed: &BTreeSet<Arc<str>>) {
        for entry in self.items.entries().iter().filter(|it| !listed.contains(*it)) {
            self.summarise_soon(entry);
        }
    }

    async fn follow_items(&self) {
        let room = Notify::new();
        let mut listed: BTreeMap<ObjectKey, Uid> = BTreeMap::new();
        let tell = |change: &Change| -> Result<(), Full> {
            match change {
                Change::ListBegins => listed.clear(),
                Change::Present { object, is_listed } => {
                    if *is_listed {
                        listed.insert(object.key().clone(), object.head().uid.clone());
                    }
                    let object = object.decode();
                    if self.items.note(&object) {
                        self.wake(Item(&object).entry(), Item(&object).reconciler(), Lane::User, "asked");
                    }
                }
                Change::Gone(object) => {
                    let (uid, object) = (&object.head().uid, object.decode());
                    self.items.gone(Item(&object).entry(), Item(&object).reconciler(), uid);
                }
                Change::ListEnds => {
                    self.items.keep_only(&std::mem::take(&mut listed));
                    self.items.set_listed();
                }
                Change::Unserved => {}
            }
            Ok(())
        };
        self.follow(names::item_kind(), true).run(self.tasks.shutdown(), &room, tell).await;
    }

    /// A section has changed: wakes who waits for it, and who watches it.
    fn moved(&self, moved: &Moved) {
        let now = self.parts.clock.elapsed();
        let key = names::entry_key(&moved.entry);
        if *moved.section == *CREDENTIALS {
            self.review_target(&key);
        }
        let labels = moved.labels();
        let mut crews = self.crews();
        for crew in crews.values_mut() {
            for (label, version) in &labels {
                crew.handle.signal(label, version.as_deref());
            }
            let watches = crew.component.watches.iter().filter(|it| it.section == moved.section);
            if watches.into_iter().any(|it| moved.concerns(it.path.as_deref())) {
                let delay = crew.debounce.delay(&moved.entry, now);
                crew.handle.wake(&key, Lane::Event, self.word_for(&moved.section), delay);
            }
        }
    }

    /// Wakes one item now. Says whether there is one.
    pub fn wake(&self, entry: &str, reconciler: &str, lane: Lane, reason: Reason) -> bool {
        let crews = self.crews();
        let crew = crews.get(reconciler);
        crew.is_some_and(|it| it.handle.wake(&names::entry_key(entry), lane, reason, Duration::ZERO))
    }

    /// Wakes an item because of something in its target cluster, unless it was woken a moment ago. If its
    /// reconciler has not been told yet what there is, or is being replaced, the item is woken once it has:
    /// one that is ready would not run by itself.
    pub fn wake_softly(&self, entry: &str, reconciler: &str) -> bool {
        let now = self.parts.clock.elapsed();
        let mut crews = self.crews();
        let is_told = match crews.get_mut(reconciler).filter(|it| !it.is_leaving) {
            None => false,
            Some(crew) => {
                // Asked before: what comes in between is an item that was not there to be woken.
                let is_told = crew.handle.is_ready();
                let delay = crew.debounce.delay(&entry.into(), now);
                if crew.handle.wake(&names::entry_key(entry), Lane::Event, CLUSTER_EVENT, delay) {
                    return true;
                }
                is_told
            }
        };
        // Before the lock is given back: whoever catches up finds it.
        if !is_told {
            self.missed().note(entry, reconciler);
        }
        false
    }

    /// Wakes the items of a reconciler that could not be woken so far.
    pub fn wake_missed(&self, reconciler: &str) {
        let missed = {
            let _crews = self.crews();
            self.missed().take(reconciler)
        };
        for entry in missed {
            self.wake_softly(&entry, reconciler);
        }
    }

    /// `section:NAME`. Reasons live as long as the process, so there is a bound to them.
    fn word_for(&self, section: &str) -> Reason {
        let mut words = self.words();
        if let Some(word) = words.get(section) {
            return word;
        }
        if words.len() >= WORDS_MAX {
            return "section";
        }
        let word: Reason = Box::leak(format!("section:{section}").into_boxed_str());
        words.insert(section.into(), word);
        word
    }
}
