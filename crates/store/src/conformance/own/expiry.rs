//! Positions that are too old. (Kubernetes compacts when it likes.)

use concert_model::{ResourceVersion, Revision};
use serde_json::json;

use crate::conformance::expect::{next_word, refused};
use crate::conformance::load::{self, END};
use crate::conformance::{Observer, Own, Widgets};
use crate::contract::{PageRequest, Store};
use crate::error::Error;

/// Payload that fills the memory of recent changes in a few writes.
fn filler(i: usize) -> String {
    format!("{i:08}").repeat(64 * 1024)
}

async fn compact_all(own: &Own) -> Revision {
    let newest = own.store.newest().await.unwrap();
    own.store.compact(newest).await.unwrap();
    newest
}

async fn grow(widgets: &Widgets, writes: usize) {
    let mut current = widgets.create("big", json!({"text": filler(0)})).await;
    for i in 1..writes {
        let text = filler(i);
        current = widgets.update(&current, |object| object.set("spec", json!({"text": text}))).await;
    }
}

/// A watch from a compacted position is expired at once.
pub async fn ends_a_watch_from_a_compacted_position(own: &Own) {
    let widgets = own.subject.widgets().await;
    let position = widgets.list().await.position;
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.set_n(&created, 2).await;
    compact_all(own).await;
    refused!(own.store.watch(&widgets.query(), Some(&position)).await, Error::Expired);
}

/// The position that the log is compacted to can still be watched from.
pub async fn spares_the_newest_position(own: &Own) {
    let widgets = own.subject.widgets().await;
    widgets.create("a", json!({"n": 1})).await;
    let floor = ResourceVersion::from(compact_all(own).await);
    let mut events = own.store.watch(&widgets.query(), Some(&floor)).await.unwrap();
    widgets.create("b", json!({"n": 1})).await;
    assert_eq!(next_word(&mut events).await, "A b");
}

/// The next page of a list whose moment is compacted is expired.
pub async fn ends_a_list_across_compaction(own: &Own) {
    let widgets = own.subject.widgets().await;
    for name in ["a", "b", "c"] {
        widgets.create(name, json!({"n": 1})).await;
    }
    let first = PageRequest { limit: Some(1), token: None };
    let page = own.store.list(&widgets.query(), &first).await.unwrap();
    let next = PageRequest { token: page.next, ..first };
    // Not yet: its moment is the floor.
    compact_all(own).await;
    assert_eq!(own.store.list(&widgets.query(), &next).await.unwrap().items.len(), 1);
    widgets.delete("b").await;
    compact_all(own).await;
    refused!(own.store.list(&widgets.query(), &next).await, Error::Expired);
}

/// Compaction takes nothing that is current.
pub async fn takes_nothing_that_is_current(own: &Own) {
    let widgets = own.subject.widgets().await;
    let a = widgets.create("a", json!({"n": 1})).await;
    let a = widgets.set_n(&a, 2).await;
    let b = widgets.create_finalized("b", &["a.dev/f"]).await;
    widgets.create("c", json!({"n": 1})).await;
    widgets.delete("c").await;
    compact_all(own).await;
    assert_eq!(widgets.list().await.items, [a.clone(), b]);
    widgets.set_n(&a, 3).await;
    widgets.create("c", json!({"n": 1})).await;
    assert_eq!(widgets.names().await, ["a", "b", "c"]);
    assert!(own.store.verify().await.unwrap() >= 3);
}

/// Compaction to the future compacts what there is; compaction to the past nothing.
pub async fn goes_as_far_as_there_is_anything(own: &Own) {
    let widgets = own.subject.widgets().await;
    widgets.create("a", json!({"n": 1})).await;
    own.store.compact(Revision(u64::MAX / 2)).await.unwrap();
    own.store.compact(Revision(1)).await.unwrap();
    let mut events = widgets.watch().await;
    widgets.create("b", json!({"n": 1})).await;
    assert_eq!(next_word(&mut events).await, "A b");
}

/// A watch that keeps up does not notice compaction.
pub async fn is_unknown_to_a_watch_that_keeps_up(own: &Own) {
    let widgets = std::sync::Arc::new(own.subject.widgets().await);
    let page = widgets.list().await;
    let mut events = widgets.watch_from(&page.position).await;
    let mut observer = Observer::of_list(&page);
    let store = own.store.clone();
    let compacting = async {
        for _ in 0..20 {
            store.compact(store.newest().await.unwrap()).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let watching = async { observer.see_until_added(END, &mut events).await };
    let (acknowledged, (), ()) = tokio::join!(load::run(&widgets, 7, 2, 40), compacting, watching);
    observer.assert_saw(&acknowledged);
}

/// A watcher slower than what is kept in memory goes on from the log and misses nothing.
pub async fn spares_a_slow_watcher_while_the_log_lasts(own: &Own) {
    let widgets = own.subject.widgets().await;
    let mut events = widgets.watch().await;
    grow(&widgets, 30).await;
    assert_eq!(next_word(&mut events).await, "A big");
    for _ in 1..30 {
        assert_eq!(next_word(&mut events).await, "M big");
    }
    widgets.delete("big").await;
    assert_eq!(next_word(&mut events).await, "D big");
}

/// A watcher slower than the log is cut off with Expired, and then the watch is over. No writer waits
/// for it.
pub async fn cuts_off_a_watcher_that_is_too_slow(own: &Own) {
    let widgets = own.subject.widgets().await;
    let mut events = widgets.watch().await;
    grow(&widgets, 30).await;
    compact_all(own).await;
    assert!(matches!(events.next().await, Some(Err(Error::Expired))));
    assert!(events.next().await.is_none());
    // List again and go on.
    let mut events = widgets.watch().await;
    widgets.create("a", json!({"n": 1})).await;
    assert_eq!(next_word(&mut events).await, "A a");
}

/// A list that was started before compaction but is read at once is whole.
pub async fn spares_lists_in_one_piece(own: &Own) {
    let widgets = std::sync::Arc::new(own.subject.widgets().await);
    let store = own.store.clone();
    let listing = async {
        for _ in 0..30 {
            let page = widgets.list().await;
            assert!(page.items.iter().all(|object| object.decode().spec()["n"].as_i64() > Some(0)));
        }
    };
    let compacting = async {
        for _ in 0..30 {
            store.compact(store.newest().await.unwrap()).await.unwrap();
        }
    };
    tokio::join!(listing, compacting, load::run(&widgets, 8, 2, 40));
}
