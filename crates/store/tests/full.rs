//! A disk without room: writes fail, reads go on, nothing is lost, and with room it works again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

use std::path::Path;
use std::sync::Arc;

use concert_model::{Encoded, GroupKind, Object};
use concert_store::backend::Sqlite;
use concert_store::backend::sqlite::Options;
use concert_store::{By, Chance, Config, Error, Local, PageRequest, Query, Store, SystemClock};
use serde_json::json;

const BYTES_MAX: u64 = 1024 * 1024;

fn open(path: &Path, bytes_max: Option<u64>) -> Local {
    let backend = Sqlite::open(path, &Options { bytes_max }).unwrap();
    let config = Config::new(Arc::new(SystemClock::new()), Chance::from_system());
    Local::open(Arc::new(backend), config).unwrap()
}

fn config_maps() -> GroupKind {
    GroupKind::new("", "ConfigMap")
}

fn object(name: &str) -> Object {
    let mut object = Object::new(&config_maps().at_version("v1"), "default", name);
    object.set("data", json!({"text": "x".repeat(10_000)}));
    object
}

/// Creates until there is no more room.
async fn fill(store: &Local) -> Vec<Encoded> {
    let mut stored = Vec::new();
    loop {
        match store.create(object(&format!("m{:04}", stored.len())), &By::actor("test")).await {
            Ok(object) => stored.push(object),
            Err(Error::Full) => return stored,
            Err(error) => panic!("{error}"),
        }
        assert!(stored.len() < 1_000, "the bound does not hold");
    }
}

#[tokio::test]
async fn writes_fail_reads_go_on_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path, Some(BYTES_MAX));
    let stored = fill(&store).await;
    assert!(stored.len() > 10, "only {}", stored.len());
    let query = Query::all(config_maps());
    let newest = store.newest().await.unwrap();
    for _ in 0..3 {
        assert!(matches!(store.create(object("more"), &By::actor("test")).await, Err(Error::Full)));
        assert_eq!(store.list(&query, &PageRequest::whole()).await.unwrap().items, stored);
        assert_eq!(store.get(stored[0].key()).await.unwrap(), stored[0]);
        assert_eq!(store.newest().await.unwrap(), newest);
    }
    drop(store);
    let store = open(&path, None);
    assert_eq!(store.list(&query, &PageRequest::whole()).await.unwrap().items, stored);
    let more = store.create(object("more"), &By::actor("test")).await.unwrap();
    assert_eq!(more.resource_version().to_string(), (newest.0 + 1).to_string());
}

#[tokio::test]
async fn watchers_are_told_exactly_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path, Some(BYTES_MAX));
    let query = Query::all(config_maps());
    let position = store.list(&query, &PageRequest::whole()).await.unwrap().position;
    let mut events = store.watch(&query, Some(&position)).await.unwrap();
    let stored = fill(&store).await;
    for expected in &stored {
        let event = events.next().await.unwrap().unwrap();
        assert_eq!(event.object(), Some(expected));
    }
    drop(events);
    drop(store);
    let store = open(&path, None);
    let mut events = store.watch(&query, Some(&position)).await.unwrap();
    for expected in &stored {
        assert_eq!(events.next().await.unwrap().unwrap().object(), Some(expected));
    }
}

#[tokio::test]
async fn deleting_and_compacting_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("store.db"), Some(BYTES_MAX));
    let stored = fill(&store).await;
    // A deletion is a write too; the payload it repeats may not fit any more, so states go first.
    store.compact(store.newest().await.unwrap()).await.ok();
    drop(store);
    let store = open(&folder.path().join("store.db"), Some(BYTES_MAX + 256 * 1024));
    for object in &stored[..10] {
        store.delete(object.key(), &Default::default(), &By::actor("test")).await.unwrap();
    }
    store.compact(store.newest().await.unwrap()).await.unwrap();
    let mut again = 0;
    while store.create(object(&format!("again-{again}")), &By::actor("test")).await.is_ok() {
        again += 1;
    }
    assert!(again >= 10, "only {again}");
}
