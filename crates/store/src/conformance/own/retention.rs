//! How long the past is kept. (Kubernetes has no history.)

use std::time::Duration;

use serde_json::json;

use crate::conformance::Own;
use crate::conformance::expect::{next_word, refused};
use crate::contract::{ItemKey, Store};
use crate::error::Error;
use crate::local::{AttemptRecord, Retention};

const HOUR: Duration = Duration::from_secs(3600);

fn retention() -> Retention {
    Retention { window: HOUR, window_writes_max: 1_000, history: 24 * HOUR }
}

/// Within the window a watch can go on; after it, it is expired.
pub async fn expires_positions_after_the_window(own: &Own) {
    let widgets = own.subject.widgets().await;
    let position = widgets.list().await.position;
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.set_n(&created, 2).await;
    own.store.maintain(&retention()).await.unwrap();
    own.clock.advance(HOUR / 2);
    own.store.maintain(&retention()).await.unwrap();
    let mut events = widgets.watch_from(&position).await;
    assert_eq!(next_word(&mut events).await, "A a");
    own.clock.advance(HOUR);
    own.store.maintain(&retention()).await.unwrap();
    refused!(own.store.watch(&widgets.query(), Some(&position)).await, Error::Expired);
}

/// More writes than the window may hold expire positions before their time.
pub async fn expires_positions_after_too_many_writes(own: &Own) {
    let widgets = own.subject.widgets().await;
    let position = widgets.list().await.position;
    let mut current = widgets.create("a", json!({"n": 0})).await;
    for n in 1..10 {
        current = widgets.set_n(&current, n).await;
    }
    let few = Retention { window_writes_max: 5, ..retention() };
    own.store.maintain(&few).await.unwrap();
    refused!(own.store.watch(&widgets.query(), Some(&position)).await, Error::Expired);
    let newest = own.store.newest().await.unwrap();
    let recent = concert_model::ResourceVersion::from(concert_model::Revision(newest.0 - 5));
    assert_eq!(next_word(&mut widgets.watch_from(&recent).await).await, "M a");
}

/// Who wrote when is forgotten after its time; what is current never.
pub async fn forgets_history_after_its_time(own: &Own) {
    let widgets = own.subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let current = widgets.set_n(&created, 2).await;
    widgets.create("b", json!({"n": 1})).await;
    widgets.delete("b").await;
    own.store.maintain(&retention()).await.unwrap();
    own.clock.advance(25 * HOUR);
    widgets.create("c", json!({"n": 1})).await;
    own.store.maintain(&retention()).await.unwrap();
    let past = own.store.history(&widgets.key("a"), None, 10).await.unwrap();
    assert_eq!(past.iter().map(|p| p.object.clone()).collect::<Vec<_>>(), [Some(current.clone())]);
    assert!(own.store.history(&widgets.key("b"), None, 10).await.unwrap().is_empty());
    assert_eq!(widgets.get("a").await, current);
    assert_eq!(widgets.names().await, ["a", "c"]);
}

/// Attempts are forgotten after their time.
pub async fn forgets_attempts_after_their_time(own: &Own) {
    let item = ItemKey { controller: "suite".into(), item: "a".into() };
    let record = |attempt| AttemptRecord {
        attempt,
        generation: 1,
        outcome: "done".into(),
        message: String::new(),
        reasons: Vec::new(),
        duration: Duration::ZERO,
        details: json!(null),
    };
    own.store.record_attempt(&item, &record(1)).await.unwrap();
    own.clock.advance(25 * HOUR);
    own.store.record_attempt(&item, &record(2)).await.unwrap();
    own.store.maintain(&retention()).await.unwrap();
    let attempts = own.store.attempts(&item, 10).await.unwrap();
    assert_eq!(attempts.iter().map(|(_, record)| record.attempt).collect::<Vec<_>>(), [2]);
}

/// Even when every log row is forgotten, no revision is used again.
pub async fn never_lets_a_revision_be_used_again(own: &Own) {
    let widgets = own.subject.widgets().await;
    widgets.create("a", json!({"n": 1})).await;
    widgets.delete("a").await;
    let before = own.store.newest().await.unwrap();
    own.store.maintain(&retention()).await.unwrap();
    own.clock.advance(25 * HOUR);
    own.store.maintain(&retention()).await.unwrap();
    assert_eq!(own.store.newest().await.unwrap(), before);
    let next = widgets.create("a", json!({"n": 1})).await;
    assert_eq!(next.resource_version().to_string(), (before.0 + 1).to_string());
}

/// A name can be used again after its history is forgotten.
pub async fn leaves_names_free_to_be_used_again(own: &Own) {
    let widgets = own.subject.widgets().await;
    for round in 0..3 {
        widgets.create("a", json!({"n": round})).await;
        widgets.delete("a").await;
        own.store.maintain(&retention()).await.unwrap();
        own.clock.advance(25 * HOUR);
        own.store.maintain(&retention()).await.unwrap();
        assert!(widgets.is_gone("a").await);
    }
}
