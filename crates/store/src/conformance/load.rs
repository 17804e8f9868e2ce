//! Writers that overtake each other, and the checker of what watchers are told meanwhile.
//!
//! Every object counts its own writes in `spec.n`, from 1 in each incarnation. So a watcher can tell
//! from contents alone, on any store, that it missed nothing, saw nothing twice and never went back.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use concert_model::{Encoded, ResourceVersion, Uid};
use serde_json::json;
use tokio::task::JoinSet;

use super::Widgets;
use super::expect::next;
use crate::chance::Chance;
use crate::contract::{Delete, Event, Events, Page};
use crate::error::Error;

/// What writers were told.
#[derive(Clone, Debug, Default)]
pub struct Acknowledged {
    /// The versions of all creations and updates.
    pub versions: HashSet<ResourceVersion>,
    /// How many objects were deleted.
    pub deletions: usize,
}

/// The last object that is written, so that watchers know when they have seen all.
pub(super) const END: &str = "zz-end";

/// `tasks` writers, each with `writes` successful writes to a few shared keys, then [`END`].
pub(super) async fn run(widgets: &Arc<Widgets>, seed: u64, tasks: usize, writes: usize) -> Acknowledged {
    let chance = Chance::seeded(seed);
    let mut writers = JoinSet::new();
    for _ in 0..tasks {
        let (widgets, chance) = (widgets.clone(), chance.fork());
        writers.spawn(async move { write(&widgets, &chance, writes).await });
    }
    let mut all = Acknowledged::default();
    while let Some(one) = writers.join_next().await {
        let one = one.unwrap();
        let versions = all.versions.len() + one.versions.len();
        all.versions.extend(one.versions);
        assert_eq!(all.versions.len(), versions, "a version was given to two writers");
        all.deletions += one.deletions;
    }
    all.versions.insert(widgets.create(END, json!({"n": 1})).await.resource_version().clone());
    all
}

async fn write(widgets: &Widgets, chance: &Chance, writes: usize) -> Acknowledged {
    let mut done = Acknowledged::default();
    while done.versions.len() + done.deletions < writes {
        let name = format!("key-{}", chance.below(5));
        let written = match widgets.store.get(&widgets.key(&name)).await {
            Err(Error::NotFound { .. }) => {
                widgets.try_create(widgets.object(&name, json!({"n": 1}))).await.map(Some)
            }
            Err(error) => panic!("{error}"),
            Ok(read) if chance.is_hit(0.1) => {
                let version = Some(read.resource_version().clone());
                let options = Delete { resource_version: version, ..Delete::default() };
                widgets.try_delete(&name, &options).await.map(|_| None)
            }
            Ok(read) => widgets.try_update(&read, count).await.map(Some),
        };
        match written {
            Ok(Some(object)) => drop(done.versions.insert(object.resource_version().clone())),
            Ok(None) => done.deletions += 1,
            Err(Error::Conflict { .. } | Error::AlreadyExists { .. } | Error::NotFound { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    done
}

fn count(object: &mut concert_model::Object) {
    let n = object.spec()["n"].as_i64().unwrap_or_default();
    object.get_mut("spec")["n"] = json!(n + 1);
}

/// Checks what one watch, or several that continue each other, report.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    objects: BTreeMap<String, Seen>,
    versions: HashSet<ResourceVersion>,
    /// Versions of what was added or modified while watching.
    pub written: HashSet<ResourceVersion>,
    /// How many deletions were seen.
    pub deletions: usize,
    /// Where a later watch could start, in the order of the events.
    pub positions: Vec<ResourceVersion>,
}

#[derive(Clone, Debug, PartialEq)]
struct Seen {
    uid: Uid,
    n: i64,
    version: ResourceVersion,
}

impl Observer {
    /// One that starts from nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that starts from a list.
    pub fn of_list(page: &Page) -> Self {
        let mut observer = Self { positions: vec![page.position.clone()], ..Self::default() };
        for object in &page.items {
            observer.versions.insert(object.resource_version().clone());
            observer.objects.insert(object.key().name.to_string(), seen(object));
        }
        observer
    }

    /// Takes one event, or fails on what no event may be.
    pub fn see(&mut self, event: &Event) {
        self.positions.push(event.position().clone());
        let Some(object) = event.object() else { return };
        let (name, new) = (object.key().name.to_string(), seen(object));
        assert!(self.versions.insert(new.version.clone()), "{name}: {} came twice", new.version);
        let old = self.objects.get(&name);
        match (event, old) {
            (Event::Added(_), None) => assert_eq!(new.n, 1, "{name}: its beginning is missing"),
            (Event::Modified(_), Some(old)) => {
                assert_eq!(
                    (&old.uid, old.n + 1),
                    (&new.uid, new.n),
                    "{name}: a change is missing or repeated"
                );
            }
            (Event::Deleted(_), Some(old)) => {
                assert_eq!((&old.uid, old.n), (&new.uid, new.n), "{name}: not its final state");
            }
            (event, old) => panic!("{name}: {event:?} after {old:?}"),
        }
        if let Event::Deleted(_) = event {
            self.deletions += 1;
            self.objects.remove(&name);
        } else {
            self.written.insert(new.version.clone());
            self.objects.insert(name, new);
        }
    }

    /// True if an object of this name is there, by what was seen.
    pub fn has(&self, name: &str) -> bool {
        self.objects.contains_key(name)
    }

    /// Takes events until the one that adds `name`.
    pub async fn see_until_added(&mut self, name: &str, events: &mut Events) {
        loop {
            let event = next(events).await;
            self.see(&event);
            if matches!(&event, Event::Added(object) if &*object.key().name == name) {
                return;
            }
        }
    }

    /// Fails unless what was seen adds up to `page`.
    pub fn assert_agrees(&self, page: &Page) {
        let listed: BTreeMap<String, Seen> =
            page.items.iter().map(|object| (object.key().name.to_string(), seen(object))).collect();
        assert_eq!(self.objects, listed, "what was watched does not add up to what is listed");
    }

    /// Fails unless exactly what writers were told was seen; for a watch from before the first write.
    pub fn assert_saw(&self, acknowledged: &Acknowledged) {
        let difference: BTreeSet<&str> =
            self.written.symmetric_difference(&acknowledged.versions).map(|version| &*version.0).collect();
        assert!(difference.is_empty(), "told to writers or to watchers, but not to both: {difference:?}");
        assert_eq!(self.deletions, acknowledged.deletions);
    }
}

fn seen(object: &Encoded) -> Seen {
    let n = object.decode().spec()["n"].as_i64().unwrap_or_default();
    Seen { uid: object.head().uid.clone(), n, version: object.resource_version().clone() }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use concert_model::{Body, GroupKind, Head, Object, Timestamp};

    use super::*;

    fn object(name: &str, uid: u128, n: i64, version: &str) -> Encoded {
        let mut object = Object::new(&GroupKind::new("a.dev", "Widget").at_version("v1"), "a", name);
        object.set("spec", json!({"n": n}));
        let head = Head {
            version: "v1".into(),
            uid: Uid::from_random(uid),
            generation: n,
            created_at: Timestamp::UNIX_EPOCH,
            deleted_at: None,
            labels: Default::default(),
            owners: Vec::new(),
            fields: Default::default(),
        };
        let body = Body::encode(object.key().unwrap(), head, &object);
        Encoded::new(Arc::new(body), ResourceVersion(version.into()))
    }

    fn is_taken(events: &[Event]) -> bool {
        let mut observer = Observer::new();
        let see = || events.iter().for_each(|event| observer.see(event));
        catch_unwind(AssertUnwindSafe(see)).is_ok()
    }

    #[test]
    fn a_faithful_watch_is_taken() {
        let (one, two) = (object("a", 1, 1, "1"), object("a", 1, 2, "2"));
        let gone = Event::Deleted(object("a", 1, 2, "3"));
        let again = Event::Added(object("a", 2, 1, "4"));
        assert!(is_taken(&[Event::Added(one), Event::Modified(two), gone, again]));
    }

    #[test]
    fn gaps_repeats_and_time_travel_are_found() {
        let added = Event::Added(object("a", 1, 1, "1"));
        let modified = |n, version| Event::Modified(object("a", 1, n, version));
        let gone = |n, version| Event::Deleted(object("a", 1, n, version));
        for bad in [
            vec![modified(2, "2")],
            vec![Event::Added(object("a", 1, 2, "2"))],
            vec![added.clone(), modified(3, "3")],
            vec![added.clone(), added.clone()],
            vec![added.clone(), modified(2, "2"), modified(2, "2")],
            vec![added.clone(), modified(2, "2"), modified(1, "3")],
            vec![added.clone(), gone(2, "2")],
            vec![added.clone(), gone(1, "1")],
            vec![gone(1, "1")],
            vec![added.clone(), Event::Modified(object("a", 2, 2, "2"))],
        ] {
            assert!(!is_taken(&bad), "{bad:?}");
        }
    }
}
