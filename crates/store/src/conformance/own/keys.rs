//! Encryption and the rotation of keys. (Kubernetes encrypts elsewhere.)

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use crate::conformance::Own;
use crate::conformance::load::{self, END};
use crate::conformance::{HandClock, Observer};
use crate::contract::{ItemKey, Store};
use crate::local::{AttemptRecord, Config, Local, RotateError};
use crate::work::Work;
use crate::{Chance, backend::Memory};

fn item() -> ItemKey {
    ItemKey { controller: "suite".into(), item: "a".into() }
}

/// After a rotation everything is as it was, under one new key.
pub async fn change_without_changing_anything_else(own: &Own) {
    let widgets = own.subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1, "text": "secret"})).await;
    let current = widgets.set_n(&created, 2).await;
    let fence = own.store.claim(&item(), 0, Bytes::from_static(b"row")).await.unwrap();
    let record = AttemptRecord {
        attempt: 1,
        generation: 1,
        outcome: "done".into(),
        message: "well".into(),
        reasons: Vec::new(),
        duration: Duration::ZERO,
        details: json!({}),
    };
    own.store.record_attempt(&item(), &record).await.unwrap();
    let before = own.store.newest().await.unwrap();
    let keys = own.keyring.numbers();
    own.store.rotate_keys().await.unwrap();
    assert_eq!((keys, own.keyring.numbers()), (vec![1], vec![2]));
    assert_eq!(own.store.newest().await.unwrap(), before);
    assert_eq!(widgets.get("a").await, current);
    let past = own.store.history(&widgets.key("a"), None, 10).await.unwrap();
    assert_eq!(past[1].object.as_ref(), Some(&created));
    assert_eq!(own.store.read(&item()).await.unwrap().unwrap().body, "row");
    assert_eq!(own.store.attempts(&item(), 1).await.unwrap()[0].1, record);
    own.store.save(&fence, Bytes::from_static(b"new")).await.unwrap();
}

/// Keys can be rotated again and again.
pub async fn change_as_often_as_one_likes(own: &Own) {
    let widgets = own.subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    for number in 2..=4 {
        own.store.rotate_keys().await.unwrap();
        assert_eq!(own.keyring.numbers(), [number]);
        assert_eq!(widgets.get("a").await, created);
    }
}

/// Writers and watchers do not notice a rotation.
pub async fn change_while_others_write_and_watch(own: &Own) {
    let widgets = Arc::new(own.subject.widgets().await);
    let page = widgets.list().await;
    let mut events = widgets.watch_from(&page.position).await;
    let rotating = async {
        for _ in 0..5 {
            own.store.rotate_keys().await.unwrap();
        }
    };
    let (acknowledged, ()) = tokio::join!(load::run(&widgets, 9, 4, 50), rotating);
    let mut observer = Observer::of_list(&page);
    observer.see_until_added(END, &mut events).await;
    observer.assert_saw(&acknowledged);
    own.store.rotate_keys().await.unwrap();
    own.store.verify().await.unwrap();
}

/// A watcher that reads the log finds it readable after a rotation.
pub async fn leave_the_log_readable(own: &Own) {
    let widgets = own.subject.widgets().await;
    let position = widgets.list().await.position;
    let created = widgets.create("a", json!({"n": 1})).await;
    own.store.rotate_keys().await.unwrap();
    widgets.set_n(&created, 2).await;
    let mut events = widgets.watch_from(&position).await;
    let mut observer = Observer::new();
    widgets.create("end", json!({"n": 1})).await;
    observer.see_until_added("end", &mut events).await;
    observer.assert_agrees(&widgets.list().await);
}

/// A store without keys says so.
pub async fn cannot_change_where_there_are_none(_: &Own) {
    let config = Config::new(Arc::new(HandClock::new()), Chance::from_system());
    let store = Local::open(Arc::new(Memory::new()), config).unwrap();
    assert!(matches!(store.rotate_keys().await, Err(RotateError::NotEncrypted)));
    assert!(store.kind(&concert_model::GroupKind::new("", "Secret")).await.is_ok());
}
