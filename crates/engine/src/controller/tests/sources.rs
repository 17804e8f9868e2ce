//! From watches to keys.

use concert_model::{Encoded, ObjectKey};
use concert_store::{By, Query, Store};
use serde_json::json;

use crate::controller::Phase;
use crate::fixtures::{Script, World, config_map, config_map_kind, quiet, seconds};
use crate::outcome::Outcome;
use crate::queue::Lane;
use crate::source::{Objects, Source};

fn objects() -> Objects {
    Objects::new(Query::all(config_map_kind()))
}

fn done() -> std::sync::Arc<Script> {
    Script::new(|_| Outcome::Done)
}

#[tokio::test]
async fn what_is_there_is_listed_and_what_changes_comes_in_a_better_lane() {
    let world = World::new();
    world.create("a").await;
    let script = done();
    let handle = world.start(&script, |it| it.objects(objects()));
    assert!(!handle.is_ready());
    handle.ready().await;
    script.ran(1).await;
    world.create("b").await;
    script.ran(2).await;
    world.change("b", "2").await;
    script.ran(3).await;
    let runs = script.runs();
    let lanes: Vec<(&str, Lane)> = runs.iter().map(|it| (&*it.key.name, it.lane)).collect();
    assert_eq!(lanes, [("a", Lane::Poll), ("b", Lane::User), ("b", Lane::Event)]);
    assert!(world.engine.is_ready());
}

#[tokio::test]
async fn what_is_there_may_say_itself_in_which_lane_it_goes() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.create(name).await;
    }
    let script = done();
    let lane = |object: &Encoded| match &*object.key().name {
        "b" => Lane::Retry,
        "c" => Lane::Event,
        _ => Lane::Poll,
    };
    world.start(&script, |it| it.objects(objects().listed_in(lane)).concurrency(1));
    script.ran(3).await;
    world.change("a", "2").await;
    script.ran(4).await;
    let runs = script.runs();
    let mut lanes: Vec<(&str, Lane)> = runs.iter().map(|it| (&*it.key.name, it.lane)).collect();
    assert_eq!(lanes.pop(), Some(("a", Lane::Event)), "only the list is asked");
    lanes.sort_unstable();
    assert_eq!(lanes, [("a", Lane::Poll), ("b", Lane::Retry), ("c", Lane::Event)]);
}

#[tokio::test]
async fn an_object_that_is_deleted_runs_once_more_and_is_forgotten() {
    let world = World::new();
    let script = done();
    let handle = world.start(&script, |it| it.objects(objects()).poll(seconds(60)));
    world.create("a").await;
    script.ran(1).await;
    world.delete("a").await;
    script.ran(2).await;
    quiet().await;
    assert_eq!(handle.state(&config_map("a")), None);
    assert_eq!(handle.summary().depth.known, 0);
}

#[tokio::test]
async fn a_broken_watch_resumes_where_it_was() {
    let world = World::new();
    let script = done();
    let handle = world.start(&script, |it| it.objects(objects()));
    world.create("a").await;
    script.ran(1).await;
    handle.ready().await;
    world.store.set_down(true);
    world.store.break_watches();
    quiet().await;
    world.create("b").await;
    world.delete("a").await;
    world.clock.advance(seconds(30)).await;
    assert_eq!(script.count(), 1);
    world.store.set_down(false);
    world.clock.drive(script.ran(3)).await;
    quiet().await;
    assert_eq!(script.names(), ["a", "b", "a"]);
}

#[tokio::test]
async fn after_a_gap_only_what_differs_runs_and_what_is_gone_is_found() {
    let world = World::new();
    for name in ["changed", "gone", "same"] {
        world.create(name).await;
    }
    let script = done();
    let handle = world.start(&script, |it| it.objects(objects()));
    script.ran(3).await;
    world.store.set_down(true);
    world.store.break_watches();
    quiet().await;
    world.change("changed", "2").await;
    world.delete("gone").await;
    world.create("new").await;
    world.store.compact();
    world.store.set_down(false);
    world.clock.drive(script.ran(6)).await;
    quiet().await;
    let mut later = script.names().split_off(3);
    later.sort();
    assert_eq!(later, ["changed", "gone", "new"]);
    assert_eq!(handle.summary().depth.known, 3);
}

#[tokio::test]
async fn changes_that_do_not_count_wake_nobody() {
    let world = World::new();
    let script = done();
    let only_labels = |object: &Encoded| object.head().labels.len() as u64;
    world.start(&script, |it| it.objects(objects().changed(only_labels)));
    world.create("a").await;
    script.ran(1).await;
    world.change("a", "2").await;
    quiet().await;
    assert_eq!(script.count(), 1);
    let mut object = world.store.get(&config_map("a")).await.unwrap().decode();
    object.set_label("x", "y");
    world.store.update(object, &By::actor("test")).await.unwrap();
    script.ran(2).await;
}

#[tokio::test]
async fn owners_hear_of_what_they_own() {
    let world = World::new();
    let owner = world.create("owner").await;
    let script = done();
    let child_labels = concert_model::LabelSelector::parse("role=child").unwrap();
    let children = Query::all(config_map_kind()).with_labels(child_labels);
    let parents = Query::all(config_map_kind()).in_namespace("elsewhere");
    let handle = world.start(&script, |it| {
        it.objects(Objects::new(parents)).source(Source::owned(children, config_map_kind()))
    });
    handle.ready().await;
    let mut child = world.create("child").await.decode();
    child.set_label("role", "child");
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.head().uid});
    child.set_metadata("ownerReferences", json!([reference]));
    world.store.update(child, &By::actor("test")).await.unwrap();
    script.ran(1).await;
    world.delete("child").await;
    script.ran(2).await;
    let runs = script.runs();
    let owned: Vec<(&ObjectKey, String)> = runs.iter().map(|it| (&it.key, it.reasons.to_string())).collect();
    assert_eq!(owned, [(&config_map("owner"), "owned".into()), (&config_map("owner"), "owned".into())]);
}

#[tokio::test]
async fn a_mapping_that_changes_wakes_both_sides() {
    let world = World::new();
    let script = done();
    let target = |object: &Encoded| {
        let value = object.decode().get("data")["value"].as_str().unwrap_or_default().to_owned();
        vec![config_map(&value)]
    };
    let handle = world.start(&script, |it| it.source(Source::mapped(Query::all(config_map_kind()), target)));
    handle.ready().await;
    world.create("x").await;
    script.ran(1).await;
    world.change("x", "2").await;
    script.ran(3).await;
    assert_eq!(script.names(), ["1", "1", "2"]);
}

#[tokio::test]
async fn what_a_kind_that_goes_led_to_is_woken_once() {
    let world = World::new();
    let script = done();
    let target = |_: &Encoded| vec![config_map("target")];
    let handle = world.start(&script, |it| it.source(Source::mapped(Query::all(config_map_kind()), target)));
    world.create("x").await;
    script.ran(1).await;
    handle.ready().await;
    world.store.set_bare(true);
    world.store.break_watches();
    world.clock.drive(script.ran(2)).await;
    world.clock.advance(seconds(60)).await;
    assert_eq!(script.count(), 2, "it goes once");
    world.store.set_bare(false);
    world.clock.drive(script.ran(3)).await;
}

#[tokio::test]
async fn settled_objects_are_only_polled_and_polls_are_spread() {
    let world = World::new();
    for number in 0..100 {
        world.create(&format!("w{number}")).await;
    }
    let script = done();
    let handle =
        world.start(&script, |it| it.objects(objects().settled(|_| true)).poll(seconds(100)).concurrency(1));
    handle.ready().await;
    quiet().await;
    assert_eq!(script.count(), 0);
    assert!(matches!(handle.state(&config_map("w0")).unwrap().phase, Phase::DueAt(_)));
    world.clock.advance(seconds(50)).await;
    assert!((30..70).contains(&script.count()), "{}", script.count());
    world.clock.advance(seconds(50)).await;
    assert_eq!(script.count(), 100);
}

#[tokio::test]
async fn a_source_waits_for_room_and_loses_nothing() {
    let world = World::new();
    for number in 0..5 {
        world.create(&format!("w{number}")).await;
    }
    let script = done();
    let nowhere = Query::all(config_map_kind()).in_namespace("elsewhere");
    let all = Source::mapped(Query::all(config_map_kind()), |object| vec![object.key().clone()]);
    world.start(&script, |it| it.objects(Objects::new(nowhere)).source(all).capacity(2));
    world.clock.drive(script.ran(5)).await;
}
