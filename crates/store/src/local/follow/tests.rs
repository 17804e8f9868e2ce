//! A store over a backend that others write to, and that can be out of reach.

use std::sync::Condvar;
use std::sync::atomic::AtomicUsize;

use concert_model::{Object, ObjectKey, Timestamp};
use serde_json::json;

use super::*;
use crate::backend::{
    Attempt, Bell, Bounds, Change, Memory, Past, Payload, Range, Row, Scan, Shelf, Txn, Verdict,
};
use crate::chance::Chance;
use crate::clock::SystemClock;
use crate::conformance::Definition;
use crate::contract::{By, ItemKey, Store as _};
use crate::local::Config;
use crate::work::WorkRow;

/// Whether the backend can be reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    /// Calls wait for another state.
    Hangs,
    Fails,
}

/// A backend behind a door.
struct Door {
    memory: Memory,
    bell: Bell,
    way: Mutex<Way>,
    moved: Condvar,
    /// How many have asked for the bounds, beside the thread that follows.
    looks: AtomicUsize,
}

impl Door {
    fn open() -> Arc<Self> {
        let (memory, bell, moved, looks) = Default::default();
        Arc::new(Self { memory, bell, way: Mutex::new(Way::Open), moved, looks })
    }

    fn set(&self, way: Way) {
        *self.way.lock().unwrap() = way;
        self.moved.notify_all();
    }

    fn enter(&self) -> Result<&Memory, Failure> {
        let way = self.moved.wait_while(self.way.lock().unwrap(), |way| *way == Way::Hangs).unwrap();
        match *way {
            Way::Fails => Err(Failure::broken("nobody answers")),
            _ => Ok(&self.memory),
        }
    }

    fn looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }
}

impl Backend for Door {
    fn bounds(&self) -> Result<Bounds, Failure> {
        if std::thread::current().name() != Some(THREAD) {
            self.looks.fetch_add(1, Ordering::SeqCst);
        }
        self.enter()?.bounds()
    }
    fn get(&self, key: &ObjectKey) -> Result<Option<Row>, Failure> {
        self.enter()?.get(key)
    }
    fn range(&self, scan: &Scan<'_>) -> Result<Range, Failure> {
        self.enter()?.range(scan)
    }
    fn count(&self, kind: &GroupKind, namespace: Option<&str>, after: &ObjectKey) -> Result<usize, Failure> {
        self.enter()?.count(kind, namespace, after)
    }
    fn tail(&self, after: Revision, limit: usize) -> Result<Vec<Change>, Failure> {
        self.enter()?.tail(after, limit)
    }
    fn history(&self, key: &ObjectKey, before: Option<Revision>, limit: usize) -> Result<Vec<Past>, Failure> {
        self.enter()?.history(key, before, limit)
    }
    fn work(&self, item: &ItemKey) -> Result<Option<WorkRow>, Failure> {
        self.enter()?.work(item)
    }
    fn work_of(&self, controller: &str) -> Result<Vec<WorkRow>, Failure> {
        self.enter()?.work_of(controller)
    }
    fn attempts(&self, item: &ItemKey, limit: usize) -> Result<Vec<Attempt>, Failure> {
        self.enter()?.attempts(item, limit)
    }
    fn commit(&self, batch: &[Txn]) -> Result<Vec<Verdict>, Failure> {
        self.enter()?.commit(batch)
    }
    fn compact(&self, floor: Revision, limit: usize) -> Result<Revision, Failure> {
        self.enter()?.compact(floor, limit)
    }
    fn forget(&self, before: Timestamp, limit: usize) -> Result<usize, Failure> {
        self.enter()?.forget(before, limit)
    }
    fn payloads(&self, shelf: Shelf, after: u64, limit: usize) -> Result<Vec<Payload>, Failure> {
        self.enter()?.payloads(shelf, after, limit)
    }
    fn is_local(&self) -> bool {
        false
    }
    fn bell(&self) -> Option<&Bell> {
        Some(&self.bell)
    }
}

fn store(door: &Arc<Door>) -> Local {
    let config = Config::new(Arc::new(SystemClock::new()), Chance::seeded(7));
    Local::open(door.clone(), config).unwrap()
}

/// Waits until `what` is so.
async fn until(what: impl Fn() -> bool) {
    while !what() {
        SystemClock::new().sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn who_waits_for_a_try_that_fails_makes_none_of_its_own() {
    let door = Door::open();
    let store = store(&door);
    store.refresh().await.unwrap();
    let (before, asked) = (door.looks(), Arc::new(AtomicUsize::new(0)));
    door.set(Way::Hangs);
    let mut asking = tokio::task::JoinSet::new();
    let ask = |asking: &mut tokio::task::JoinSet<Result<()>>| {
        let (store, asked) = (store.clone(), asked.clone());
        asking.spawn(async move {
            asked.fetch_add(1, Ordering::SeqCst);
            store.refresh().await
        });
    };
    ask(&mut asking);
    until(|| door.looks() > before).await;
    // All of them ask while the first one hangs.
    (0..100).for_each(|_| ask(&mut asking));
    until(|| asked.load(Ordering::SeqCst) == 101).await;
    door.set(Way::Fails);
    while let Some(result) = asking.join_next().await {
        let Err(Error::Unavailable(source)) = result.unwrap() else { panic!("it cannot be read") };
        assert!(source.to_string().contains("nobody answers"), "{source}");
    }
    let tries = door.looks() - before;
    assert!(tries <= 2, "the one that was under way, and one for all who came meanwhile: {tries}");

    door.set(Way::Open);
    store.refresh().await.unwrap();
}

#[tokio::test]
async fn a_store_knows_for_how_long_it_hears_nothing() {
    let door = Door::open();
    let store = store(&door);
    for way in [Way::Fails, Way::Hangs] {
        door.set(way);
        until(|| store.cut_off_for().is_some_and(|it| it > Duration::from_millis(50))).await;
        door.set(Way::Open);
        until(|| store.cut_off_for().is_none()).await;
    }
}

#[tokio::test]
async fn what_was_heard_is_told_without_asking_again() {
    let door = Door::open();
    let (writer, reader) = (store(&door), store(&door));
    let kind = GroupKind::new("", "ConfigMap");
    let object = Object::new(&kind.at_version("v1"), "default", "a");
    writer.create(object, &By::actor("test")).await.unwrap();
    reader.refresh().await.unwrap();
    let (newest, looks) = (writer.newest().await.unwrap(), door.looks());
    door.set(Way::Hangs);
    assert_eq!(reader.heard(), newest);
    assert_eq!(door.looks(), looks);
    door.set(Way::Open);
}

#[tokio::test]
async fn an_update_is_judged_by_the_definition_that_others_have_written_just_now() {
    let door = Door::open();
    let (here, there) = (store(&door), store(&door));
    let by = By::actor("test");
    let definition = here.create(Definition::usual().object("judged.dev", "widget"), &by).await.unwrap();
    let kind = GroupKind::new("judged.dev", "Widget");
    let mut object = Object::new(&kind.at_version("v1"), "default", "a");
    object.set("spec", json!({"n": 1}));
    let mut object = there.create(object, &by).await.unwrap().decode();

    let mut stricter = definition.decode();
    stricter.get_mut("spec")["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        ["n"]["maximum"] = json!(5);
    // Nobody rings, so that nobody else hears of it for a while.
    here.update(stricter, &by).await.unwrap();
    object.set("spec", json!({"n": 9}));
    let refused = there.update(object.clone(), &by).await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    object.set("spec", json!({"n": 5}));
    assert_eq!(there.update(object, &by).await.unwrap().decode().spec()["n"], 5);
}
