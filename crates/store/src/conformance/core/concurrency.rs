//! Many writers and many watchers at once.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use crate::conformance::load::{self, END};
use crate::conformance::{Observer, Subject};
use crate::contract::{Delete, PageRequest};
use crate::error::Error;

const WRITERS: usize = 8;

/// N writers that read, change and retry on conflict: no update is lost.
pub async fn loses_no_update(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    widgets.create("a", json!({"n": 0})).await;
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let widgets = widgets.clone();
        writers.spawn(async move {
            let mut done = 0;
            let mut versions = Vec::new();
            while done < 10 {
                let read = widgets.get("a").await;
                let n = read.decode().spec()["n"].as_i64().unwrap();
                match widgets.try_update(&read, |object| object.set("spec", json!({"n": n + 1}))).await {
                    Ok(written) => {
                        assert_eq!(written.decode().spec()["n"], n + 1);
                        versions.push(written.resource_version().clone());
                        done += 1;
                    }
                    Err(Error::Conflict { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            versions
        });
    }
    let versions: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    assert_eq!(widgets.get("a").await.decode().spec()["n"], 10 * WRITERS);
    assert_eq!(versions.iter().collect::<HashSet<_>>().len(), 10 * WRITERS);
}

/// Of N updates based on one state, one is written.
pub async fn lets_one_of_many_updates_win(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    let mut current = widgets.create("a", json!({"n": 0})).await;
    for _ in 0..5 {
        let mut writers = JoinSet::new();
        for i in 0..WRITERS {
            let (widgets, read) = (widgets.clone(), current.clone());
            writers.spawn(async move {
                widgets.try_update(&read, |object| object.get_mut("spec")["text"] = json!(format!("by {i} at {}", read.resource_version()))).await
            });
        }
        let mut winners = Vec::new();
        while let Some(result) = writers.join_next().await {
            match result.unwrap() {
                Ok(written) => winners.push(written),
                Err(Error::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(winners.len(), 1);
        current = widgets.get("a").await;
        assert_eq!(current, winners[0]);
    }
}

/// Of N creators of one name, one succeeds.
pub async fn lets_one_of_many_creators_win(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    let mut writers = JoinSet::new();
    for i in 0..WRITERS {
        let widgets = widgets.clone();
        writers.spawn(async move { widgets.try_create(widgets.object("a", json!({"n": i}))).await });
    }
    let mut winners = Vec::new();
    while let Some(result) = writers.join_next().await {
        match result.unwrap() {
            Ok(written) => winners.push(written),
            Err(Error::AlreadyExists { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(winners, [widgets.get("a").await]);
}

/// Of N deleters of one object, one is told that it is gone by its hand.
pub async fn lets_one_of_many_deleters_win(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    widgets.create("a", json!({"n": 1})).await;
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let widgets = widgets.clone();
        writers.spawn(async move { widgets.try_delete("a", &Delete::default()).await });
    }
    let mut winners = 0;
    while let Some(result) = writers.join_next().await {
        match result.unwrap() {
            Ok(_) => winners += 1,
            Err(Error::NotFound { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(winners, 1);
}

/// List, then watch from there, again and again under load: no gap, no repeat, no time travel.
pub async fn lists_and_watches_without_a_gap(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    let mut observers = JoinSet::new();
    for i in 0..4 {
        let widgets = widgets.clone();
        observers.spawn(async move {
            let mut observer;
            let mut events;
            // Starts anew a few times in the middle of it all; the last start runs to the end.
            let mut starts = 0;
            loop {
                let page = widgets.list().await;
                observer = Observer::of_list(&page);
                events = widgets.watch_from(&page.position).await;
                starts += 1;
                if starts > i || page.items.iter().any(|object| &*object.key().name == END) {
                    break;
                }
                observer.see(&crate::conformance::next(&mut events).await);
            }
            if !observer_knows_end(&widgets, &observer).await {
                observer.see_until_added(END, &mut events).await;
            }
            observer
        });
    }
    load::run(&widgets, 4, 4, 50).await;
    let page = widgets.list().await;
    while let Some(observer) = observers.join_next().await {
        observer.unwrap().assert_agrees(&page);
    }
}

async fn observer_knows_end(widgets: &crate::conformance::Widgets, observer: &Observer) -> bool {
    let end = widgets.store.get(&widgets.key(END)).await.ok();
    end.is_some_and(|end| observer.has_seen(end.resource_version()))
}

/// A watch that is dropped and resumed from its last position tells the whole story.
pub async fn resumes_watches_without_a_gap(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    let page = widgets.list().await;
    let watcher = {
        let widgets = widgets.clone();
        let mut observer = Observer::of_list(&page);
        tokio::task::JoinSet::from_iter([async move {
            loop {
                let position = observer.positions.last().unwrap().clone();
                let mut events = widgets.watch_from(&position).await;
                for _ in 0..7 {
                    let event = crate::conformance::next(&mut events).await;
                    observer.see(&event);
                    if event.object().is_some_and(|object| &*object.key().name == END) {
                        return observer;
                    }
                }
            }
        }])
    };
    let acknowledged = load::run(&widgets, 5, 4, 50).await;
    for observer in watcher.join_all().await {
        observer.assert_saw(&acknowledged);
        observer.assert_agrees(&widgets.list().await);
    }
}

/// Pages that are read while others write show a moment that really was: each object as the watch
/// had it there.
pub async fn reads_pages_of_one_moment(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    for i in 0..20 {
        widgets.create(&format!("fixed-{i:02}"), json!({"n": 1})).await;
    }
    let readers = JoinSet::from_iter((0..2).map(|_| {
        let widgets = widgets.clone();
        async move {
            for _ in 0..10 {
                let mut request = PageRequest { limit: Some(3), token: None };
                let mut pages = Vec::new();
                loop {
                    let page = widgets.store.list(&widgets.query(), &request).await.unwrap();
                    request.token = page.next.clone();
                    pages.push(page);
                    if request.token.is_none() {
                        break;
                    }
                }
                assert!(pages.iter().all(|page| page.position == pages[0].position));
                let mut whole = pages[0].clone();
                whole.items = pages.iter().flat_map(|page| page.items.clone()).collect();
                // What the list shows must fit to what a watch from there tells.
                let mut events = widgets.watch_from(&whole.position).await;
                let mut observer = Observer::of_list(&whole);
                widgets.merge("fixed-00", json!({"metadata": {"annotations": {"touch": "1"}}})).await;
                if let Ok(Some(Ok(event))) =
                    tokio::time::timeout(std::time::Duration::ZERO, events.next()).await
                {
                    observer.see_loosely(&event);
                }
            }
        }
    }));
    load::run(&widgets, 6, 2, 60).await;
    readers.join_all().await;
}
