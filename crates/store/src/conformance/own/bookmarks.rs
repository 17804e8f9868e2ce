//! Bookmarks of a quiet watch. (Kubernetes sends them when it likes.)

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::conformance::expect::next_word;
use crate::conformance::load::{self, END};
use crate::conformance::{Own, next};
use crate::contract::Event;

const MINUTE: Duration = Duration::from_secs(60);
/// Of the real time, in which nothing comes that is not there yet.
const A_MOMENT: Duration = Duration::from_millis(100);

/// A watch that has nothing to tell says how far it is, and can be resumed from there.
pub async fn tell_how_far_a_quiet_watch_is(own: &Own) {
    let (widgets, others) = (own.subject.widgets().await, own.subject.widgets().await);
    let mut events = widgets.watch().await;
    others.create("a", json!({"n": 1})).await;
    let newest = own.store.newest().await.unwrap();
    // One of several stores may hear of what another wrote only after its minute is over: then the next
    // minute tells.
    let bookmark = loop {
        own.clock.advance(MINUTE);
        if let Ok(bookmark) = tokio::time::timeout(A_MOMENT, next(&mut events)).await {
            break bookmark;
        }
    };
    assert_eq!(bookmark, Event::Bookmark { position: newest.into(), is_initial_end: false });
    // What was told about is compacted; the bookmark is newer.
    own.store.compact(newest).await.unwrap();
    let mut resumed = widgets.watch_from(bookmark.position()).await;
    widgets.create("b", json!({"n": 1})).await;
    assert_eq!(next_word(&mut resumed).await, "A b");
    assert_eq!(next_word(&mut events).await, "A b");
}

/// Where nothing was written there is nothing to say.
pub async fn are_not_repeated(own: &Own) {
    let widgets = own.subject.widgets().await;
    let mut events = widgets.watch().await;
    let quiet = tokio::time::timeout(Duration::from_millis(1), async {
        own.clock.advance(MINUTE);
        next(&mut events).await
    });
    assert!(quiet.await.is_err());
    own.clock.advance(MINUTE);
    widgets.create("a", json!({"n": 1})).await;
    assert!(matches!(next(&mut events).await, Event::Added(_)));
}

/// Positions of events and bookmarks only ever rise.
pub async fn rise_with_the_events(own: &Own) {
    let (widgets, others) = (Arc::new(own.subject.widgets().await), Arc::new(own.subject.widgets().await));
    let mut events = widgets.watch().await;
    let watching = async {
        let (mut last, mut bookmarks) = (0, 0);
        loop {
            let event = next(&mut events).await;
            let position: u64 = event.position().0.parse().unwrap();
            match &event {
                Event::Bookmark { .. } => bookmarks += 1,
                _ => assert!(position > last, "{position} after {last}"),
            }
            assert!(position >= last, "{position} after {last}");
            last = position;
            if event.object().is_some_and(|object| &*object.key().name == END) {
                return bookmarks;
            }
        }
    };
    let writing = async {
        load::run(&others, 10, 2, 20).await;
        own.clock.advance(MINUTE);
        load::run(&widgets, 11, 2, 20).await;
    };
    tokio::join!(watching, writing);
}
