//! Who wrote what and when, and what was tried. (Kubernetes has nothing of the kind.)

use std::time::Duration;

use concert_model::ObjectKey;
use serde_json::json;

use crate::backend::Act;
use crate::clock::Clock;
use crate::conformance::Own;
use crate::contract::{By, ItemKey, Store};
use crate::local::{AttemptRecord, Past};

async fn history(own: &Own, key: &ObjectKey) -> Vec<Past> {
    own.store.history(key, None, usize::MAX).await.unwrap()
}

fn item(name: &str) -> ItemKey {
    ItemKey { controller: "suite".into(), item: name.into() }
}

fn attempt(number: u32) -> AttemptRecord {
    AttemptRecord {
        attempt: number,
        generation: 1,
        outcome: "failed".into(),
        message: "no answer".into(),
        reasons: vec!["poll".into()],
        duration: Duration::from_millis(5),
        details: json!({"n": number}),
    }
}

/// Every write is there with its actor, reason, manager and time, newest first.
pub async fn says_who_wrote_what_and_when(own: &Own) {
    let widgets = own.subject.widgets().await;
    let by = By { manager: "tool".into(), ..By::actor("alice").because("first") };
    let created = own.store.create(widgets.object("a", json!({"n": 1})), &by).await.unwrap();
    own.clock.advance(Duration::from_secs(5));
    let mut object = created.decode();
    object.set("spec", json!({"n": 2}));
    let updated = own.store.update(object, &By::actor("bob").because("second")).await.unwrap();
    let past = history(own, &widgets.key("a")).await;
    let told: Vec<_> = past.iter().map(|p| (p.act, &*p.stamp.actor, &*p.stamp.reason)).collect();
    assert_eq!(told, [(Act::Updated, "bob", "second"), (Act::Created, "alice", "first")]);
    assert_eq!(&*past[1].stamp.manager, "tool");
    assert_eq!(past[0].stamp.at, own.clock.now());
    assert_eq!(past[0].stamp.at.duration_since(past[1].stamp.at).as_secs(), 5);
    assert_eq!((past[0].generation, past[1].generation), (2, 1));
    assert_eq!(past.into_iter().map(|p| p.object.unwrap()).collect::<Vec<_>>(), [updated, created]);
}

/// History goes back beyond deletion, to earlier incarnations of the name.
pub async fn outlives_the_object(own: &Own) {
    let widgets = own.subject.widgets().await;
    let first = widgets.create("a", json!({"n": 1})).await;
    widgets.delete("a").await;
    let second = widgets.create("a", json!({"n": 2})).await;
    widgets.delete("a").await;
    let past = history(own, &widgets.key("a")).await;
    let acts: Vec<Act> = past.iter().map(|p| p.act).collect();
    assert_eq!(acts, [Act::Removed, Act::Created, Act::Removed, Act::Created]);
    assert_eq!((&past[0].uid, &past[3].uid), (&second.head().uid, &first.head().uid));
    assert_eq!(past[2].object.as_ref().unwrap().decode().spec()["n"], 1);
}

/// History is read in parts: before a revision, at most so many.
pub async fn is_read_in_parts(own: &Own) {
    let widgets = own.subject.widgets().await;
    let mut current = widgets.create("a", json!({"n": 0})).await;
    for n in 1..10 {
        current = widgets.set_n(&current, n).await;
    }
    let key = widgets.key("a");
    let whole = history(own, &key).await;
    let mut parts = Vec::new();
    let mut before = None;
    loop {
        let part = own.store.history(&key, before, 3).await.unwrap();
        let Some(last) = part.last() else { break };
        before = Some(last.revision);
        assert!(part.len() <= 3);
        parts.extend(part.iter().map(|p| p.revision));
    }
    assert_eq!(parts, whole.iter().map(|p| p.revision).collect::<Vec<_>>());
}

/// What is refused, changes nothing or runs dry leaves no history.
pub async fn has_nothing_that_was_not_written(own: &Own) {
    let widgets = own.subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.update(&created, |_| {}).await;
    drop(widgets.try_update(&created, |object| object.set("spec", json!({"n": "x"}))).await.unwrap_err());
    let dry = own.store.delete(&widgets.key("a"), &Default::default(), &By::actor("suite").dry_run()).await;
    dry.unwrap();
    assert_eq!(history(own, &widgets.key("a")).await.len(), 1);
    assert!(history(own, &widgets.key("never")).await.is_empty());
}

/// Compaction drops states that were replaced, never who wrote when; the current state stays.
pub async fn keeps_who_and_when_through_compaction(own: &Own) {
    let widgets = own.subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let current = widgets.set_n(&created, 2).await;
    own.store.compact(own.store.newest().await.unwrap()).await.unwrap();
    let past = history(own, &widgets.key("a")).await;
    assert_eq!(past.len(), 2);
    assert_eq!(past[0].object.as_ref(), Some(&current));
    assert!(past[1].object.is_none());
    assert_eq!((&*past[1].stamp.actor, past[1].generation), ("suite", 1));
}

/// Attempts at an item come newest first, each with its time.
pub async fn remembers_attempts(own: &Own) {
    for number in 1..=4 {
        own.store.record_attempt(&item("a"), &attempt(number)).await.unwrap();
        own.clock.advance(Duration::from_secs(1));
    }
    own.store.record_attempt(&item("b"), &attempt(9)).await.unwrap();
    let attempts = own.store.attempts(&item("a"), 3).await.unwrap();
    let numbers: Vec<u32> = attempts.iter().map(|(_, record)| record.attempt).collect();
    assert_eq!(numbers, [4, 3, 2]);
    assert_eq!(attempts[0].1, attempt(4));
    assert_eq!(attempts[0].0.duration_since(attempts[1].0).as_secs(), 1);
    assert!(own.store.attempts(&item("c"), 3).await.unwrap().is_empty());
}

/// Attempts are no objects: they take no revision.
pub async fn of_attempts_takes_no_revision(own: &Own) {
    let before = own.store.newest().await.unwrap();
    own.store.record_attempt(&item("a"), &attempt(1)).await.unwrap();
    assert_eq!(own.store.newest().await.unwrap(), before);
}
