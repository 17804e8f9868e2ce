//! Copies of a store that is in use: made, and taken back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use concert_model::{GroupKind, Object, ObjectKey, ResourceVersion};
use concert_store::backend::sqlite::Options;
use concert_store::backend::{Memory, Sqlite};
use concert_store::conformance::{Own, Widgets};
use concert_store::seal::{Keyring, SealedElsewhere};
use concert_store::{
    By, Chance, Config, Error, Event, ItemKey, Local, PageRequest, Store, SystemClock, Work,
};
use serde_json::json;

struct Place {
    folder: tempfile::TempDir,
    own: Own,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let own = Own::new(move || Arc::new(Sqlite::open(&path, &Options::default()).unwrap()));
        Self { folder, own }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Another store, in a file of its own, with the same keys.
    fn other(&self, name: &str) -> Local {
        self.sealed_with(name, self.own.keyring.clone())
    }

    fn sealed_with(&self, name: &str, keyring: Keyring) -> Local {
        let backend = Arc::new(Sqlite::open(self.path(name), &Options::default()).unwrap());
        let config = Config::new(Arc::new(SystemClock::new()), Chance::from_system()).sealed(keyring);
        Local::open(backend, config).unwrap()
    }
}

fn causes(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |it| it.source())
}

async fn names(widgets: &Widgets) -> Vec<String> {
    widgets.names().await
}

#[tokio::test]
async fn a_store_goes_back_to_what_it_was() {
    let place = Place::new();
    let (store, widgets) = (&place.own.store, place.own.subject.widgets().await);
    let kept = widgets.create("kept", json!({"n": 1})).await;
    widgets.create("lost", json!({"n": 1})).await;
    store.backup_to(&place.path("copy.db")).await.unwrap();
    widgets.delete("lost").await;
    widgets.set_n(&kept, 2).await;
    widgets.create("later", json!({"n": 1})).await;
    let newest = store.newest().await.unwrap();

    store.restore_from(&place.path("copy.db"), None).await.unwrap();
    assert_eq!(names(&widgets).await, ["kept", "lost"]);
    let back = widgets.get("kept").await;
    assert_eq!((back.decode().spec(), &back.head().uid), (&json!({"n": 1}), &kept.head().uid));
    assert!(store.newest().await.unwrap().0 > newest.0 + 1_000_000_000);
    assert!(back.resource_version().0.parse::<u64>().unwrap() > newest.0);
    widgets.set_n(&back, 3).await;
    assert!(store.history(&widgets.key("kept"), None, 10).await.unwrap().len() >= 2);
    store.verify().await.unwrap();
    let left: Vec<_> = std::fs::read_dir(place.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("restore") || name.contains(".new"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn nobody_goes_on_from_a_position_of_before() {
    let place = Place::new();
    let (store, widgets) = (&place.own.store, place.own.subject.widgets().await);
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.create("b", json!({"n": 1})).await;
    store.backup_to(&place.path("copy.db")).await.unwrap();
    let half = PageRequest { limit: Some(1), token: None };
    let page = store.list(&widgets.query(), &half).await.unwrap();
    let mut running = widgets.watch().await;
    let mut fresh = store.watch(&widgets.query(), None).await.unwrap();

    store.restore_from(&place.path("copy.db"), None).await.unwrap();
    assert!(matches!(running.next().await, Some(Err(Error::Expired))));
    while let Some(event) = fresh.next().await {
        match event {
            Ok(Event::Added(_) | Event::Bookmark { .. }) => {}
            Ok(event) => panic!("told of {event:?}"),
            Err(error) => assert!(matches!(error, Error::Expired)),
        }
    }
    let newest = store.newest().await.unwrap();
    for position in [1, page.position.0.parse().unwrap(), newest.0 - 1] {
        let position = ResourceVersion(position.to_string().into());
        let refusal = store.watch(&widgets.query(), Some(&position)).await;
        assert!(matches!(refusal, Err(Error::Expired)), "{position}");
    }
    let rest = PageRequest { limit: Some(1), token: page.next };
    assert!(matches!(store.list(&widgets.query(), &rest).await, Err(Error::Expired)));
    // What was read before is not what is there, though it looks the same.
    let refusal = widgets.try_update(&created, |object| object.get_mut("spec")["n"] = json!(2)).await;
    assert!(matches!(refusal, Err(Error::Conflict { .. })));
    // From here on all is as always.
    let mut events = widgets.watch().await;
    widgets.create("c", json!({"n": 1})).await;
    assert!(matches!(events.next().await, Some(Ok(Event::Added(_)))));
}

#[tokio::test]
async fn kinds_come_and_go_with_their_definitions() {
    let place = Place::new();
    let (store, early) = (&place.own.store, place.own.subject.widgets().await);
    store.backup_to(&place.path("copy.db")).await.unwrap();
    let late = place.own.subject.widgets().await;
    late.create("a", json!({"n": 1})).await;
    let version = store.cards_version();
    store.restore_from(&place.path("copy.db"), None).await.unwrap();
    assert!(store.cards_version() > version);
    assert!(matches!(store.kind(&late.kind).await, Err(Error::UnknownKind { .. })));
    early.create("a", json!({"n": 1})).await;
}

#[tokio::test]
async fn claims_of_before_are_lost() {
    let place = Place::new();
    let store = &place.own.store;
    let item = ItemKey { controller: "test".into(), item: "a".into() };
    let fence = store.claim(&item, 0, Bytes::from_static(b"row")).await.unwrap();
    store.backup_to(&place.path("copy.db")).await.unwrap();
    store.restore_from(&place.path("copy.db"), None).await.unwrap();
    assert!(matches!(store.save(&fence, Bytes::new()).await, Err(Error::Fenced { .. })));
    let row = store.read(&item).await.unwrap().unwrap();
    assert_eq!(row.body, Bytes::from_static(b"row"));
    let next = store.claim(&item, row.fence, Bytes::new()).await.unwrap();
    assert!(next.number > fence.number);
}

#[tokio::test]
async fn another_store_can_take_it_and_keeps_it() {
    let place = Place::new();
    let (store, widgets) = (&place.own.store, place.own.subject.widgets().await);
    let created = widgets.create("a", json!({"n": 1})).await;
    store.backup_to(&place.path("copy.db")).await.unwrap();
    let other = place.other("other.db");
    let namespace = ObjectKey::cluster(GroupKind::new("", "Namespace"), "default");
    let before = other.get(&namespace).await.unwrap();
    other.restore_from(&place.path("copy.db"), None).await.unwrap();
    assert_ne!(other.get(&namespace).await.unwrap().head().uid, before.head().uid);
    let newest = other.newest().await.unwrap();
    drop(other);
    let other = place.other("other.db");
    assert_eq!(other.newest().await.unwrap(), newest);
    let back = other.get(created.key()).await.unwrap();
    assert_eq!(back.body(), created.body());
}

#[tokio::test]
async fn a_copy_that_comes_with_its_keys_is_sealed_with_those_of_the_store() {
    let place = Place::new();
    let (store, widgets) = (&place.own.store, place.own.subject.widgets().await);
    let created = widgets.create("a", json!({"n": 1})).await;
    let item = ItemKey { controller: "test".into(), item: "a".into() };
    store.claim(&item, 0, Bytes::from_static(b"row")).await.unwrap();
    store.backup_to(&place.path("copy.db")).await.unwrap();
    place.own.keyring.copy_to(&place.path("copy.key")).unwrap();
    assert!(place.own.keyring.copy_to(&place.path("copy.key")).is_err(), "nothing is overwritten");

    let keys = Keyring::in_memory(&Chance::from_system());
    let other = place.sealed_with("other.db", keys.clone());
    let refusal = other.restore_from(&place.path("copy.db"), Some(keys.clone())).await.unwrap_err();
    assert!(causes(&refusal).find_map(|it| it.downcast_ref::<SealedElsewhere>()).is_some(), "{refusal:?}");
    let brought = Keyring::read_from(place.path("copy.key")).unwrap();
    other.restore_from(&place.path("copy.db"), Some(brought)).await.unwrap();
    drop(other);
    let other = place.sealed_with("other.db", keys);
    assert_eq!(other.get(created.key()).await.unwrap().body(), created.body());
    assert_eq!(other.read(&item).await.unwrap().unwrap().body, Bytes::from_static(b"row"));
    other.verify().await.unwrap();
}

#[tokio::test]
async fn a_copy_that_is_cut_off_says_how_much_is_missing() {
    let place = Place::new();
    place.own.store.backup_to(&place.path("cut.db")).await.unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(place.path("cut.db")).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length - 1).unwrap();
    let refusal = place.own.store.restore_from(&place.path("cut.db"), None).await.unwrap_err();
    let said = format!("is cut off: it has {} bytes of {length}", length - 1);
    assert!(causes(&refusal).any(|it| it.to_string().ends_with(&said)), "{refusal:?}");
}

#[tokio::test]
async fn what_is_no_copy_changes_nothing() {
    let place = Place::new();
    let (store, widgets) = (&place.own.store, place.own.subject.widgets().await);
    let created = widgets.create("a", json!({"n": 1})).await;
    std::fs::write(place.path("text.db"), "x".repeat(10_000)).unwrap();
    std::fs::write(place.path("empty.db"), "").unwrap();
    store.backup_to(&place.path("cut.db")).await.unwrap();
    let bytes = std::fs::read(place.path("cut.db")).unwrap();
    std::fs::write(place.path("cut.db"), &bytes[..bytes.len() / 2]).unwrap();
    // Sealed with other keys: nobody could read it.
    let foreign = place.sealed_with("foreign.db", Keyring::in_memory(&Chance::from_system()));
    foreign.backup_to(&place.path("sealed.db")).await.unwrap();
    let mut events = widgets.watch().await;
    let newest = store.newest().await.unwrap();
    for name in ["none.db", "text.db", "empty.db", "cut.db", "sealed.db"] {
        let refusal = store.restore_from(&place.path(name), None).await;
        assert!(matches!(refusal, Err(Error::Unavailable(_))), "{name}");
        assert_eq!(store.newest().await.unwrap(), newest);
        assert_eq!(widgets.get("a").await, created);
    }
    widgets.create("b", json!({"n": 1})).await;
    assert!(matches!(events.next().await, Some(Ok(Event::Added(_)))));
}

#[tokio::test]
async fn a_copy_overwrites_nothing_and_memory_makes_none() {
    let place = Place::new();
    std::fs::write(place.path("mine.txt"), "mine").unwrap();
    assert!(place.own.store.backup_to(&place.path("mine.txt")).await.is_err());
    assert_eq!(std::fs::read_to_string(place.path("mine.txt")).unwrap(), "mine");
    assert!(place.own.store.backup_to(&place.path("no/such/folder.db")).await.is_err());
    let config = Config::new(Arc::new(SystemClock::new()), Chance::from_system());
    let memory = Local::open(Arc::new(Memory::new()), config).unwrap();
    assert!(memory.backup_to(&place.path("copy.db")).await.is_err());
    assert!(memory.restore_from(&place.path("copy.db"), None).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_made_under_load_is_of_one_moment() {
    let place = Place::new();
    let store = place.own.store.clone();
    let writer = {
        let store = store.clone();
        async move {
            for i in 0..300 {
                let kind = GroupKind::new("", "ConfigMap").at_version("v1");
                let object = Object::new(&kind, "default", &format!("m{i:03}"));
                store.create(object, &By::actor("test")).await.unwrap();
            }
        }
    };
    let copier = async {
        for i in 0..5 {
            store.backup_to(&place.path(&format!("copy{i}.db"))).await.unwrap();
        }
    };
    tokio::join!(writer, copier);
    let query = concert_store::Query::all(GroupKind::new("", "ConfigMap"));
    for i in 0..5 {
        let copy = place.other(&format!("copy{i}.db"));
        let items = copy.list(&query, &PageRequest::whole()).await.unwrap().items;
        let found: Vec<String> = items.iter().map(|item| item.key().name.to_string()).collect();
        let expected: Vec<String> = (0..found.len()).map(|i| format!("m{i:03}")).collect();
        assert_eq!(found, expected);
    }
}
