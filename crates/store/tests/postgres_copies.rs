//! A store that moves into a database, and a database that is put back from a copy.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod database;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concert_model::Revision;
use concert_store::backend::{Sqlite, sqlite};
use concert_store::local::{AttemptRecord, migrate};
use concert_store::seal::Keyring;
use concert_store::{
    By, Chance, Config, Delete, Error, ItemKey, Local, PageRequest, Query, Store, SystemClock, Work,
};
use concert_testbed::Postgres;
use database::{connect, key, keyring, map, maps, open};
use serde_json::json;

const CONTROLLERS: [&str; 2] = ["one", "two"];

fn by() -> By {
    By::actor("test").because("to have a past")
}

fn item(controller: &str, number: usize) -> ItemKey {
    ItemKey { controller: controller.into(), item: format!("item-{number}").into() }
}

async fn set(store: &Local, name: &str, value: &str) {
    let mut object = store.get(&key(name)).await.unwrap().decode();
    object.set("data", json!({ "value": value }));
    store.update(object, &by()).await.unwrap();
}

async fn attempt(store: &Local, item: &ItemKey, number: u32) {
    let record = AttemptRecord {
        attempt: number,
        generation: 1,
        outcome: "failed".into(),
        message: format!("no luck for the {number}. time"),
        reasons: vec!["retry".into()],
        duration: Duration::from_millis(3),
        details: json!({"number": number}),
    };
    store.record_attempt(item, &record).await.unwrap();
}

/// More than a thousand writes: objects that were made, changed, removed and made again, some of it compacted.
async fn live(store: &Local) {
    for n in 0..400 {
        store.create(map(&format!("m{n}"), "0"), &by()).await.unwrap();
    }
    for round in 0..2 {
        for n in 0..300 {
            set(store, &format!("m{n}"), &format!("round {round}")).await;
        }
    }
    for n in 0..150 {
        store.delete(&key(&format!("m{n}")), &Delete::default(), &by()).await.unwrap();
    }
    store.compact(store.newest().await.unwrap()).await.unwrap();
    for n in 0..60 {
        store.create(map(&format!("m{n}"), "again"), &by()).await.unwrap();
    }
    for controller in CONTROLLERS {
        for n in 0..30 {
            let item = item(controller, n);
            let first = store.claim(&item, 0, Bytes::from(format!("state of {n}"))).await.unwrap();
            store.save(&first, Bytes::from(format!("later state of {n}"))).await.unwrap();
            attempt(store, &item, 1).await;
            if n % 3 == 0 {
                store.claim(&item, first.number, Bytes::from_static(b"another's")).await.unwrap();
                attempt(store, &item, 2).await;
            }
            if [1, 2, 4].contains(&n) {
                store.forget(&first).await.unwrap();
            }
        }
    }
}

/// All that a store tells: objects with their versions, the past of each name, work and attempts.
async fn told(store: &Local) -> Vec<String> {
    let page = store.list(&Query::all(maps()), &PageRequest::whole()).await.unwrap();
    let mut told = vec![format!("newest {}", store.newest().await.unwrap())];
    told.extend(page.items.iter().map(|it| format!("{} {:?}", it.resource_version(), it.decode())));
    for n in 0..400 {
        for past in store.history(&key(&format!("m{n}")), None, 100).await.unwrap() {
            let object = past.object.map(|it| it.decode());
            let head = format!("m{n} {} {:?} {:?}", past.revision, past.act, past.stamp);
            told.push(format!("{head} {} {} {object:?}", past.uid, past.generation));
        }
    }
    for controller in CONTROLLERS {
        for row in store.scan(controller).await.unwrap() {
            let attempts = store.attempts(&row.item, 10).await.unwrap();
            told.push(format!("{row:?} {attempts:?}"));
        }
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_with_a_past_moves_into_a_database_as_it_is() {
    let Some(server) = Postgres::shared() else { return };
    let (folder, url, chance) = (tempfile::tempdir().unwrap(), server.fresh_url(), Chance::from_system());
    let file = folder.path().join("store.db");
    let keys = |name: &str| Keyring::open(folder.path().join(name), &chance).unwrap();
    let (theirs, ours) = (keys("old.key"), keys("new.key"));
    let config = |keyring: &Keyring| {
        Config::new(Arc::new(SystemClock::new()), Chance::from_system()).sealed(keyring.clone())
    };
    let before = {
        let backend = Sqlite::open(&file, &sqlite::Options::default()).unwrap();
        let store = Local::open(Arc::new(backend), config(&theirs)).unwrap();
        live(&store).await;
        told(&store).await
    };
    assert!(before.len() > 1_200, "{}", before.len());

    let source = Sqlite::open(&file, &sqlite::Options::default()).unwrap();
    let target = connect(&url).unwrap();
    let moved = migrate(&source, &theirs, &target, &ours, &chance).unwrap();
    assert!(moved.writes > 1_200 && moved.claims == 54 && moved.attempts == 80, "{moved:?}");
    drop(target);

    let store = open(&url, &ours);
    for (is, was) in told(&store).await.iter().zip(&before) {
        assert_eq!(is, was);
    }
    assert_eq!(told(&store).await.len(), before.len());
    store.verify().await.unwrap();
    // What was compacted stays so, and what was not can be followed from.
    let newest = store.newest().await.unwrap();
    assert!(matches!(store.watch(&Query::all(maps()), Some(&Revision(5).into())).await, Err(Error::Expired)));
    store.watch(&Query::all(maps()), Some(&newest.into())).await.unwrap();
    // Claims go on above all that were given out, and late ones are refused here as there.
    let mut fences = Vec::new();
    for controller in CONTROLLERS {
        fences.extend(store.scan(controller).await.unwrap().iter().map(|it| it.fence));
    }
    let seen = store.read(&item("one", 0)).await.unwrap().unwrap().fence;
    let next = store.claim(&item("one", 0), seen, Bytes::new()).await.unwrap();
    assert!(fences.iter().all(|it| *it < next.number), "{next:?} {fences:?}");
    let late = concert_store::Fence { item: item("one", 0), number: seen };
    assert!(matches!(store.save(&late, Bytes::new()).await, Err(Error::Fenced { .. })));
    drop(store);
    assert!(Local::open(connect(&url).unwrap(), config(&theirs)).is_err(), "the old key opens nothing here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_put_back_gives_out_no_number_twice() {
    let Some(server) = Postgres::shared() else { return };
    let (folder, keyring, url) = (tempfile::tempdir().unwrap(), keyring(), server.url("postgres"));
    let (copy, url) = (folder.path().join("copy"), format!("{url}?schema=put_back"));
    let item = item("one", 1);
    let store = open(&url, &keyring);
    for name in ["a", "b", "gone"] {
        store.create(map(name, "1"), &by()).await.unwrap();
    }
    set(&store, "a", "2").await;
    store.delete(&key("gone"), &Delete::default(), &by()).await.unwrap();
    let first = store.claim(&item, 0, Bytes::from_static(b"before")).await.unwrap();
    attempt(&store, &item, 1).await;
    server.dump("put_back", &copy).unwrap();

    // What the copy does not know of, and others remember.
    store.create(map("c", "1"), &by()).await.unwrap();
    set(&store, "a", "3").await;
    let remembered = store.get(&key("a")).await.unwrap().decode();
    let late = store.claim(&item, first.number, Bytes::from_static(b"after")).await.unwrap();
    let lost = store.newest().await.unwrap();
    drop(store);
    server.sql("postgres", "ALTER SCHEMA put_back RENAME TO put_away").unwrap();
    server.restore(&copy).unwrap();
    let newest = connect(&url).unwrap().move_ahead().unwrap();
    assert!(newest.0 > lost.0 + 1_000_000_000, "{newest}");

    let store = open(&url, &keyring);
    let page = store.list(&Query::all(maps()), &PageRequest::whole()).await.unwrap();
    let names: Vec<&str> = page.items.iter().map(|it| &*it.key().name).collect();
    assert_eq!(names, ["a", "b"]);
    let past = store.history(&key("a"), None, 10).await.unwrap();
    assert_eq!(past.len(), 2);
    assert!(past.iter().all(|it| it.revision > lost) && past[0].object.is_some());
    assert_eq!(store.attempts(&item, 10).await.unwrap().len(), 1);
    store.verify().await.unwrap();

    for position in [Revision(1), lost, Revision(lost.0 + 5)] {
        let watch = store.watch(&Query::all(maps()), Some(&position.into())).await;
        assert!(matches!(watch, Err(Error::Expired)), "{position}");
    }
    assert!(matches!(store.update(remembered, &by()).await, Err(Error::Conflict { .. })));
    assert!(matches!(store.save(&late, Bytes::new()).await, Err(Error::Fenced { .. })));
    let row = store.read(&item).await.unwrap().unwrap();
    assert_eq!(&row.body[..], b"before");
    let next = store.claim(&item, row.fence, Bytes::new()).await.unwrap();
    assert!(next.number > late.number && row.fence > late.number);
    set(&store, "a", "4").await;
    assert!(store.newest().await.unwrap() > newest);
    // Once more does no harm.
    drop(store);
    assert!(connect(&url).unwrap().move_ahead().unwrap() > newest);
    assert_eq!(open(&url, &keyring).get(&key("a")).await.unwrap().decode().get("data")["value"], "4");
}
