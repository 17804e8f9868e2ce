use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Patch, ResourceVersion, Uid};
use concert_store::{
    By, Chance, Delete, Deleted, Events, Kind, Page, PageRequest, Part, Query, Result, Store,
};
use serde_json::json;
use tokio::sync::Barrier;

use super::correlate::{Correlator, Verdict};
use super::*;
use crate::managed::connection::fixtures::{World, by, gvk, quiet};
use crate::managed::vocabulary;

fn event(name: &str, message: &str) -> Event {
    Event {
        object: ObjectKey::namespaced(gvk("Bucket").group_kind, "default", name),
        api_version: "example.com/v1".into(),
        uid: Uid(format!("uid-of-{name}").into()),
        resource_version: Some(ResourceVersion("7".into())),
        is_warning: true,
        reason: vocabulary::event::CANNOT_OBSERVE,
        message: message.into(),
        annotations: BTreeMap::from([("external-name".to_owned(), "bucket-1".to_owned())]),
    }
}

fn component() -> Arc<str> {
    "managed/bucket.example.com".into()
}

fn event_kind() -> GroupKind {
    GroupKind::new("", "Event")
}

fn start(world: &World) -> Arc<StoreRecorder> {
    StoreRecorder::start(world.store.clone(), world.clock.clone(), Chance::seeded(3), &world.tasks)
}

async fn events(world: &World) -> Vec<Object> {
    quiet().await;
    world.list(event_kind()).await
}

#[tokio::test(start_paused = true)]
async fn an_event_says_who_told_what_about_which_object() {
    let world = World::new().await;
    start(&world).record(&component(), event("a", "no route"));
    let events = events(&world).await;
    let [event] = &events[..] else { panic!("{events:?}") };
    assert!(event.name().starts_with("a.") && event.namespace() == "default", "{}", event.name());
    assert_eq!(event.annotation("external-name"), Some("bucket-1"));
    let involved = json!({"apiVersion": "example.com/v1", "kind": "Bucket", "namespace": "default", "name": "a",
        "uid": "uid-of-a", "resourceVersion": "7"});
    assert_eq!(event.get("involvedObject"), &involved);
    for (field, value) in [
        ("type", json!("Warning")),
        ("reason", json!("CannotObserveExternalResource")),
        ("message", json!("no route")),
        ("count", json!(1)),
        ("firstTimestamp", json!("2023-11-14T22:13:20Z")),
        ("lastTimestamp", json!("2023-11-14T22:13:20Z")),
        ("source", json!({"component": "managed/bucket.example.com"})),
    ] {
        assert_eq!(event.get(field), &value, "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_objects_have_their_events_in_default() {
    let world = World::new().await;
    let mut event = event("a", "no route");
    event.object = ObjectKey::cluster(gvk("ClusterBucket").group_kind, "a");
    start(&world).record(&component(), event);
    let events = events(&world).await;
    assert_eq!(events[0].namespace(), "default");
    assert_eq!(events[0].pointer("/involvedObject/namespace"), None);
}

#[tokio::test(start_paused = true)]
async fn repetitions_are_one_object_that_is_written_every_five_minutes() {
    let world = World::new().await;
    let recorder = start(&world);
    for _ in 0..10 {
        recorder.record(&component(), event("a", "no route"));
    }
    let first = events(&world).await;
    assert_eq!((first.len(), first[0].get("count")), (1, &json!(1)));
    tokio::time::advance(Duration::from_secs(300)).await;
    recorder.record(&component(), event("a", "no route"));
    let second = events(&world).await;
    assert_eq!((second.len(), second[0].get("count")), (1, &json!(11)));
    assert_eq!(second[0].get("lastTimestamp"), &json!("2023-11-14T22:18:20Z"));
    assert_eq!(second[0].get("firstTimestamp"), &json!("2023-11-14T22:13:20Z"));
    recorder.record(&component(), event("a", "another message"));
    assert_eq!(events(&world).await.len(), 2);
    assert_eq!(recorder.dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_cleaned_up_is_written_anew() {
    let world = World::new().await;
    let recorder = start(&world);
    recorder.record(&component(), event("a", "no route"));
    let key = events(&world).await[0].key().unwrap();
    world.store.delete(&key, &Delete::default(), &by()).await.unwrap();
    tokio::time::advance(Duration::from_secs(300)).await;
    recorder.record(&component(), event("a", "no route"));
    let events = events(&world).await;
    assert_eq!((events.len(), events[0].get("count")), (1, &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn one_object_cannot_flood_the_store() {
    let world = World::new().await;
    let recorder = start(&world);
    for number in 0..30 {
        recorder.record(&component(), event("a", &format!("message {number}")));
    }
    recorder.record(&component(), event("b", "quiet"));
    assert_eq!(events(&world).await.len(), 26);
    assert_eq!(recorder.dropped(), 5);
    tokio::time::advance(Duration::from_secs(600)).await;
    for number in 100..110 {
        recorder.record(&component(), event("a", &format!("message {number}")));
    }
    assert_eq!(events(&world).await.len(), 28);
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_room_is_counted_and_dropped() {
    let world = World::new().await;
    let recorder = start(&world);
    // Nobody writes before this task waits.
    for number in 0..1030 {
        recorder.record(&component(), event(&format!("o{number}"), "busy"));
    }
    assert_eq!(recorder.dropped(), 6);
}

#[tokio::test(start_paused = true)]
async fn events_about_several_objects_are_written_side_by_side_and_those_of_one_in_order() {
    let world = World::new().await;
    let store = Arc::new(Meeting { inner: world.store.clone(), all: Barrier::new(8) });
    let recorder = StoreRecorder::start(store, world.clock.clone(), Chance::seeded(3), &world.tasks);
    for number in 0..8 {
        recorder.record(&component(), event(&format!("o{number}"), "first"));
    }
    for number in 0..8 {
        recorder.record(&component(), event(&format!("o{number}"), "second"));
    }
    let events = events(&world).await;
    let told: Vec<_> = events.iter().map(|it| it.get("message").as_str().unwrap()).collect();
    assert_eq!(told.iter().filter(|it| **it == "first").count(), 8, "{told:?}");
    assert_eq!(told.iter().filter(|it| **it == "second").count(), 8, "{told:?}");
    // The store numbers what it takes: of each object the first comes first.
    for number in 0..8 {
        let of = |message: &str| {
            let about = format!("o{number}");
            let of_it = |it: &&Object| {
                it.pointer("/involvedObject/name") == Some(&json!(about)) && it.get("message") == message
            };
            events.iter().find(of_it).unwrap().resource_version().unwrap().0.parse::<u64>().unwrap()
        };
        assert!(of("first") < of("second"), "o{number}");
    }
    assert_eq!(recorder.dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_event_the_store_refuses_is_dropped_and_tried_again_next_time() {
    let world = World::new().await;
    let recorder = start(&world);
    let mut lost = event("a", "no route");
    lost.object = ObjectKey::namespaced(lost.object.kind.clone(), "gone", "a");
    recorder.record(&component(), lost.clone());
    assert!(events(&world).await.is_empty());
    assert_eq!(recorder.dropped(), 1);
    world.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}})).await;
    recorder.record(&component(), lost);
    assert_eq!(events(&world).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_task_writes_what_it_has_and_stops() {
    let world = World::new().await;
    let recorder = start(&world);
    recorder.record(&component(), event("a", "no route"));
    assert!(world.tasks.stop(Duration::from_secs(5)).await.is_empty());
    assert_eq!(world.list(event_kind()).await.len(), 1);
    recorder.record(&component(), event("a", "too late"));
    assert_eq!(recorder.dropped(), 1);
}

#[tokio::test(start_paused = true)]
async fn long_names_and_messages_are_cut() {
    let world = World::new().await;
    let name = format!("{}.{}", "a".repeat(235), "b".repeat(17));
    start(&world).record(&component(), event(&name, &"ä".repeat(1000)));
    let events = events(&world).await;
    assert!(events[0].name().starts_with(&"a".repeat(235)) && events[0].name().len() <= 253);
    let message = events[0].get("message").as_str().unwrap();
    assert!(message.len() <= MESSAGE_BYTES_MAX && message.ends_with("ä..."), "{}", message.len());
}

#[test]
fn a_limited_repetition_is_not_lost_from_the_count() {
    let mut correlator = Correlator::new();
    let at = Duration::from_secs;
    let object = ObjectKey::namespaced(event_kind(), "default", "a.1");
    assert_eq!(correlator.decide(&event("a", "x"), at(0)), Verdict::Create);
    correlator.written(&event("a", "x"), object.clone(), at(0));
    for number in 0..24 {
        assert_eq!(correlator.decide(&event("a", &format!("{number}")), at(299)), Verdict::Create);
    }
    assert_eq!(correlator.decide(&event("a", "25"), at(299)), Verdict::Limited);
    // Five minutes after the first a write has come back.
    assert_eq!(correlator.decide(&event("a", "26"), at(301)), Verdict::Create);
    assert_eq!(correlator.decide(&event("a", "x"), at(302)), Verdict::Known);
    assert_eq!(correlator.decide(&event("a", "x"), at(603)), Verdict::Repeat { object, count: 3 });
}

#[test]
fn notes_keep_what_they_are_told() {
    let notes = Notes::new();
    notes.record(&component(), event("a", "x"));
    Silent.record(&component(), event("a", "x"));
    assert_eq!(notes.taken(), [(component(), event("a", "x"))]);
}

/// A store that creates nothing before as many are there as its barrier wants.
struct Meeting {
    inner: Arc<dyn Store>,
    all: Barrier,
}

#[async_trait]
impl Store for Meeting {
    async fn get(&self, key: &ObjectKey) -> Result<Encoded> {
        self.inner.get(key).await
    }

    async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page> {
        self.inner.list(query, page).await
    }

    async fn watch(&self, query: &Query, from: Option<&ResourceVersion>) -> Result<Events> {
        self.inner.watch(query, from).await
    }

    async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        self.all.wait().await;
        self.inner.create(object, by).await
    }

    async fn update(&self, object: Object, by: &By) -> Result<Encoded> {
        self.inner.update(object, by).await
    }

    async fn update_status(&self, object: Object, by: &By) -> Result<Encoded> {
        self.inner.update_status(object, by).await
    }

    async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        self.inner.patch(key, part, patch, by).await
    }

    async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        self.inner.delete(key, options, by).await
    }

    async fn kind(&self, kind: &GroupKind) -> Result<Arc<Kind>> {
        self.inner.kind(kind).await
    }
}
