//! Watches.

use std::collections::BTreeSet;
use std::sync::Arc;

use concert_model::{GroupKind, ResourceVersion};
use serde_json::json;

use crate::conformance::expect::{next_word, refused, word};
use crate::conformance::load::{self, END};
use crate::conformance::{Observer, Subject, next, next_change};
use crate::contract::{Event, Query};
use crate::error::Error;

/// Changes come in the order they were made, each with the whole object.
pub async fn tells_changes_in_order(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut events = widgets.watch().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let other = widgets.create("b", json!({"n": 1})).await;
    let changed = widgets.set_n(&created, 2).await;
    let observed = widgets.try_status(&changed, json!({"n": 1})).await.unwrap();
    for expected in
        [Event::Added(created), Event::Added(other), Event::Modified(changed), Event::Modified(observed)]
    {
        assert_eq!(next_change(&mut events).await, expected);
    }
}

/// Without a position the current objects come first, then a bookmark, then the changes.
pub async fn starts_with_what_is_there(subject: &Subject) {
    let widgets = subject.widgets().await;
    let there = [widgets.create("a", json!({"n": 1})).await, widgets.create("b", json!({"n": 1})).await];
    let mut events = subject.store.watch(&widgets.query(), None).await.unwrap();
    let mut first = Vec::new();
    let position = loop {
        match next(&mut events).await {
            Event::Added(object) => first.push(object),
            Event::Bookmark { position, is_initial_end: true } => break position,
            other => panic!("{other:?} before the end of what is there"),
        }
    };
    first.sort_by(|a, b| a.key().cmp(b.key()));
    assert_eq!(first, there);
    let later = widgets.create("c", json!({"n": 1})).await;
    assert_eq!(next_change(&mut events).await, Event::Added(later.clone()));
    let mut resumed = widgets.watch_from(&position).await;
    assert_eq!(next_change(&mut resumed).await, Event::Added(later));
}

/// Nothing there is told by the bookmark alone.
pub async fn of_nothing_starts_with_the_bookmark(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut events = subject.store.watch(&widgets.query(), None).await.unwrap();
    assert!(matches!(next(&mut events).await, Event::Bookmark { is_initial_end: true, .. }));
}

/// A watch from the position of a list tells nothing that the list has shown.
pub async fn from_a_list_repeats_nothing(subject: &Subject) {
    let widgets = subject.widgets().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.set_n(&created, 2).await;
    let mut events = widgets.watch().await;
    widgets.create("b", json!({"n": 1})).await;
    assert_eq!(next_word(&mut events).await, "A b");
}

/// A watch from the past tells everything since.
pub async fn from_the_past_misses_nothing(subject: &Subject) {
    let widgets = subject.widgets().await;
    let position = widgets.list().await.position;
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.set_n(&created, 2).await;
    widgets.delete("a").await;
    widgets.create("a", json!({"n": 1})).await;
    let mut events = widgets.watch_from(&position).await;
    for word in ["A a", "M a", "D a", "A a"] {
        assert_eq!(next_word(&mut events).await, word);
    }
}

/// A watch can go on from the position of every event.
pub async fn resumes_from_every_event(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut events = widgets.watch().await;
    let created = widgets.create("a", json!({"n": 1})).await;
    widgets.create("b", json!({"n": 1})).await;
    widgets.set_n(&created, 2).await;
    widgets.delete("a").await;
    widgets.create("a", json!({"n": 1})).await;
    widgets.delete("b").await;
    let mut told = Vec::new();
    for _ in 0..6 {
        told.push(next_change(&mut events).await);
    }
    for (i, event) in told.iter().enumerate() {
        let mut resumed = widgets.watch_from(event.position()).await;
        for expected in &told[i + 1..] {
            assert_eq!(next_change(&mut resumed).await, *expected);
        }
    }
}

/// All watchers are told the same, whenever they come.
pub async fn tells_everybody_the_same(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    let position = widgets.list().await.position;
    let mut early = widgets.watch_from(&position).await;
    load::run(&widgets, 1, 2, 25).await;
    let mut late = widgets.watch_from(&position).await;
    loop {
        let event = next_change(&mut early).await;
        assert_eq!(next_change(&mut late).await, event);
        if word(&event) == format!("A {END}") {
            return;
        }
    }
}

/// A watch is of one kind, and of one namespace if asked.
pub async fn is_of_one_kind_and_namespace(subject: &Subject) {
    let (widgets, others) = (subject.widgets().await, subject.widgets().await);
    let mut here = widgets.watch().await;
    let everywhere = Query::all(widgets.kind.clone());
    let mut everywhere = subject.store.watch(&everywhere, None).await.unwrap();
    others.create("other-kind", json!({"n": 1})).await;
    let mut object = widgets.object("elsewhere", json!({"n": 1}));
    object.set_metadata("namespace", json!(&*others.namespace));
    widgets.try_create(object).await.unwrap();
    widgets.create("here", json!({"n": 1})).await;
    assert_eq!(next_word(&mut here).await, "A here");
    assert_eq!(next_word(&mut everywhere).await, "A elsewhere");
    assert_eq!(next_word(&mut everywhere).await, "A here");
}

/// What the store knows of cannot be watched otherwise.
pub async fn of_an_unknown_kind_is_refused(subject: &Subject) {
    let query = Query::all(GroupKind::new(format!("{}.dev", subject.unique("none")), "Nothing"));
    refused!(subject.store.watch(&query, None).await, Error::UnknownKind { .. });
}

/// A position that the store did not give out is refused.
pub async fn from_a_made_up_position_is_refused(subject: &Subject) {
    let widgets = subject.widgets().await;
    for text in ["x", "-1", "1.5", "0x10"] {
        let position = ResourceVersion(text.into());
        refused!(subject.store.watch(&widgets.query(), Some(&position)).await, Error::Invalid { .. });
    }
}

/// An event may be told before the writer is, but shows a state that was really written.
pub async fn tells_exactly_what_writers_were_told(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    let page = widgets.list().await;
    let mut events = widgets.watch_from(&page.position).await;
    let acknowledged = load::run(&widgets, 2, 3, 30).await;
    let mut observer = Observer::of_list(&page);
    observer.see_until_added(END, &mut events).await;
    observer.assert_saw(&acknowledged);
    observer.assert_agrees(&widgets.list().await);
}

/// No event is told twice, and no position comes back.
pub async fn never_repeats_a_position(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    let mut events = widgets.watch().await;
    load::run(&widgets, 3, 2, 25).await;
    let mut observer = Observer::new();
    observer.see_until_added(END, &mut events).await;
    let positions: BTreeSet<&str> = observer.positions.iter().map(|position| &*position.0).collect();
    assert_eq!(positions.len(), observer.positions.len());
}
