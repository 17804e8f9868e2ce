//! Many writers and many watchers at once.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use concert_model::{Encoded, ResourceVersion};
use serde_json::json;
use tokio::task::JoinSet;

use crate::conformance::load::{self, END};
use crate::conformance::{Observer, Subject, Widgets, next, next_change};
use crate::contract::{Delete, Event, PageRequest};
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
                let text = format!("by {i} at {}", read.resource_version());
                widgets.try_update(&read, |object| object.get_mut("spec")["text"] = json!(text)).await
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
                if starts > i || observer.has(END) {
                    break;
                }
                observer.see(&next(&mut events).await);
            }
            if !observer.has(END) {
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

/// A watch that is dropped and resumed from its last position tells the whole story.
pub async fn resumes_watches_without_a_gap(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    let page = widgets.list().await;
    let watcher = {
        let widgets = widgets.clone();
        let mut observer = Observer::of_list(&page);
        JoinSet::from_iter([async move {
            loop {
                let position = observer.positions.last().unwrap().clone();
                let mut events = widgets.watch_from(&position).await;
                for _ in 0..7 {
                    let event = next(&mut events).await;
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

/// Pages that are read while others write together show a moment that really was.
pub async fn reads_pages_of_one_moment(subject: &Subject) {
    let widgets = Arc::new(subject.widgets().await);
    for i in 0..10 {
        widgets.create(&format!("fixed-{i:02}"), json!({"n": 1})).await;
    }
    let start = widgets.list().await;
    let mut events = widgets.watch_from(&start.position).await;
    let readers = JoinSet::from_iter((0..3).map(|_| {
        let widgets = widgets.clone();
        async move {
            let mut moments = Vec::new();
            for _ in 0..15 {
                moments.push(read_in_pages(&widgets).await);
            }
            moments
        }
    }));
    load::run(&widgets, 6, 2, 100).await;
    let mut moments: Vec<Moment> = readers.join_all().await.into_iter().flatten().collect();
    // Every moment there was, one after the other, as the watch tells it.
    let mut now = moment(&start.items);
    loop {
        moments.retain(|moment| *moment != now);
        if now.contains_key(END) {
            break;
        }
        let event = next_change(&mut events).await;
        let object = event.object().unwrap();
        match event {
            Event::Deleted(_) => drop(now.remove(&*object.key().name)),
            _ => drop(now.insert(object.key().name.to_string(), object.resource_version().clone())),
        }
    }
    assert!(moments.is_empty(), "{} lists show a moment that never was", moments.len());
}

type Moment = BTreeMap<String, ResourceVersion>;

fn moment(objects: &[Encoded]) -> Moment {
    let pair = |object: &Encoded| (object.key().name.to_string(), object.resource_version().clone());
    objects.iter().map(pair).collect()
}

async fn read_in_pages(widgets: &Widgets) -> Moment {
    let mut request = PageRequest { limit: Some(3), token: None };
    let mut positions = HashSet::new();
    let mut items = Vec::new();
    loop {
        let page = widgets.store.list(&widgets.query(), &request).await.unwrap();
        positions.insert(page.position);
        items.extend(page.items);
        request.token = page.next;
        if request.token.is_none() {
            assert_eq!(positions.len(), 1, "pages of one list have one position");
            return moment(&items);
        }
    }
}
