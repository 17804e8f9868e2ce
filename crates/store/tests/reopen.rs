//! What a file remembers when it is closed and opened again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

use std::sync::Arc;

use bytes::Bytes;
use concert_store::backend::Sqlite;
use concert_store::backend::sqlite::Options;
use concert_store::conformance::{Observer, Own};
use concert_store::{ItemKey, Store, Work};
use serde_json::json;

fn own() -> Own {
    let folder = tempfile::tempdir().unwrap();
    Own::new(move || Arc::new(Sqlite::open(folder.path().join("store.db"), &Options::default()).unwrap()))
}

#[tokio::test]
async fn objects_kinds_and_revisions_are_as_they_were() {
    let own = own();
    let widgets = own.subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let current = widgets.try_status(&created, json!({"n": 1})).await.unwrap();
    let (key, kind) = (widgets.key("a"), widgets.kind.clone());
    let newest = own.store.newest().await.unwrap();
    drop(widgets);
    let own = own.reopened();
    assert_eq!(own.store.newest().await.unwrap(), newest);
    assert_eq!(own.store.get(&key).await.unwrap(), current);
    assert!(own.store.kind(&kind).await.unwrap().has_status);
    let mut object = current.decode();
    object.set("spec", json!({"n": 2}));
    let written = own.store.update(object, &concert_store::By::actor("test")).await.unwrap();
    assert_eq!(written.resource_version().to_string(), (newest.0 + 1).to_string());
    assert_eq!(own.store.history(&key, None, 10).await.unwrap().len(), 3);
}

#[tokio::test]
async fn watches_go_on_from_a_position_of_before() {
    let own = own();
    let widgets = own.subject.widgets().await;
    let page = widgets.list().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let query = widgets.query();
    let mut object = created.decode();
    drop(widgets);
    let own = own.reopened();
    object.set("spec", json!({"n": 2}));
    let by = concert_store::By::actor("test");
    own.store.update(object.clone(), &by).await.unwrap();
    object.set_metadata("resourceVersion", json!(null));
    object.set_metadata("name", json!("end"));
    object.set("spec", json!({"n": 1}));
    own.store.create(object, &by).await.unwrap();
    let mut events = own.store.watch(&query, Some(&page.position)).await.unwrap();
    let mut observer = Observer::of_list(&page);
    observer.see_until_added("end", &mut events).await;
    observer.assert_agrees(&own.store.list(&query, &Default::default()).await.unwrap());
}

#[tokio::test]
async fn claims_rows_and_keys_are_as_they_were() {
    let own = own();
    let item = ItemKey { controller: "test".into(), item: "a".into() };
    let fence = own.store.claim(&item, 0, Bytes::from_static(b"row")).await.unwrap();
    own.store.forget(&fence).await.unwrap();
    let second = own.store.claim(&item, 0, Bytes::from_static(b"row")).await.unwrap();
    own.store.rotate_keys().await.unwrap();
    let own = own.reopened();
    let row = own.store.read(&item).await.unwrap().unwrap();
    assert_eq!((row.fence, row.body), (second.number, Bytes::from_static(b"row")));
    let third = own.store.claim(&item, second.number, Bytes::new()).await.unwrap();
    assert!(third.number > second.number);
}

#[tokio::test]
async fn compaction_is_not_forgotten() {
    let own = own();
    let widgets = own.subject.widgets().await;
    let (position, query) = (widgets.list().await.position, widgets.query());
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.set_n(&created, 2).await;
    own.store.compact(own.store.newest().await.unwrap()).await.unwrap();
    drop(widgets);
    let own = own.reopened();
    let refusal = own.store.watch(&query, Some(&position)).await;
    assert!(matches!(refusal, Err(concert_store::Error::Expired)));
}
