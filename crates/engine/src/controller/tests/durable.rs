//! What survives a restart.

use std::sync::Arc;

use concert_model::GroupKind;
use concert_store::{ItemKey, Query, Work};
use tokio::sync::Semaphore;

use crate::backoff::Backoff;
use crate::controller::{Builder, Durability, Phase};
use crate::fixtures::{Script, World, config_map, config_map_kind, quiet, seconds, widget};
use crate::outcome::{Failure, Outcome, Wait};
use crate::queue::Lane;
use crate::source::{Objects, Source};

fn durable(world: &World) -> impl Fn(Builder) -> Builder {
    let work: Arc<dyn Work> = Arc::new(world.store.local.clone());
    move |it| {
        let slow = Backoff::new(seconds(1_000), seconds(1_000));
        let objects = Objects::new(Query::all(config_map_kind()));
        it.durability(Durability::Outcomes(work.clone())).objects(objects).backoff(slow)
    }
}

async fn rows(world: &World) -> Vec<String> {
    let rows = world.store.local.scan("test").await.unwrap();
    rows.iter().map(|row| String::from_utf8_lossy(&row.body).into_owned()).collect()
}

#[tokio::test]
async fn a_back_off_goes_on_after_a_restart() {
    let world = World::new();
    world.create("a").await;
    let script = Script::new(|_| Outcome::Transient(Failure::new("down")));
    let handle = world.start(&script, durable(&world));
    world.clock.drive(script.ran(1)).await;
    quiet().await;
    let before = handle.state(&config_map("a")).unwrap();
    world.engine.stop("test", seconds(5)).await;

    let handle = world.start(&script, durable(&world));
    handle.ready().await;
    quiet().await;
    let after = handle.state(&config_map("a")).unwrap();
    assert_eq!((after.attempt, after.last_error.as_deref(), script.count()), (1, Some("down"), 1));
    // Rows have milliseconds.
    let (Phase::BackingOff { until: before }, Phase::BackingOff { until: after }) =
        (before.phase, after.phase)
    else {
        panic!("backing off before and after")
    };
    assert!(before.abs_diff(after) < std::time::Duration::from_millis(2), "{before:?} {after:?}");
    world.clock.drive(script.ran(2)).await;
    assert_eq!(script.runs()[1].attempt, 1);
}

#[tokio::test]
async fn a_look_comes_in_its_lane_and_at_its_time_also_after_a_restart() {
    let world = World::new();
    world.create("a").await;
    let script = Script::new(|_| Outcome::AfterIn(Lane::Poll, seconds(1_000)));
    for _ in 0..2 {
        let handle = world.start(&script, durable(&world));
        handle.ready().await;
        quiet().await;
        let state = handle.state(&config_map("a")).unwrap();
        assert_eq!((script.count(), state.lane), (1, Some(Lane::Poll)));
        let Phase::DueAt(due) = state.phase else { panic!("{:?}", state.phase) };
        assert!(due.abs_diff(seconds(1_000)) < std::time::Duration::from_millis(2), "{due:?}");
        world.engine.stop("test", seconds(5)).await;
    }
    world.start(&script, durable(&world));
    world.clock.drive(script.ran(2)).await;
    assert_eq!(script.runs()[1].lane, Lane::Poll);
}

#[tokio::test]
async fn polls_write_nothing_and_success_drops_the_row() {
    let world = World::new();
    world.create("a").await;
    let script = Script::new(|request| match (&*request.key.name, request.attempt) {
        ("a", 0) if request.reasons.contains("listed") => Outcome::Transient(Failure::new("down")),
        _ => Outcome::Done,
    });
    world.start(&script, |it| durable(&world)(it).poll(seconds(60)));
    world.clock.drive(script.ran(1)).await;
    quiet().await;
    assert_eq!(rows(&world).await.len(), 1);
    assert!(rows(&world).await[0].contains("\"error\":\"down\""));
    world.clock.drive(script.ran(2)).await;
    quiet().await;
    assert_eq!(rows(&world).await.len(), 0);
    world.clock.drive(script.ran(5)).await;
    assert_eq!(rows(&world).await.len(), 0);
}

#[tokio::test]
async fn a_parked_item_is_parked_again_and_hears_of_what_it_missed() {
    let world = World::new();
    world.create("a").await;
    let script = Script::new(|request| match &*request.key.name {
        "a" if !request.reasons.contains("dependency") => {
            Outcome::WaitFor(vec![Wait::existence_of(config_map("dependency"))])
        }
        _ => Outcome::Done,
    });
    world.start(&script, durable(&world));
    world.clock.drive(script.ran(1)).await;
    quiet().await;
    world.engine.stop("test", seconds(5)).await;
    world.create("dependency").await;
    world.start(&script, durable(&world));
    world.clock.drive(script.ran(3)).await;
    quiet().await;
    let mut names = script.names();
    names.sort();
    assert_eq!(names, ["a", "a", "dependency"]);
}

#[tokio::test]
async fn rows_of_objects_that_are_gone_are_dropped() {
    let world = World::new();
    world.create("a").await;
    let script = Script::new(|_| Outcome::Transient(Failure::new("down")));
    world.start(&script, durable(&world));
    world.clock.drive(script.ran(1)).await;
    quiet().await;
    world.engine.stop("test", seconds(5)).await;
    assert_eq!(rows(&world).await.len(), 1);
    world.delete("a").await;
    world.start(&script, durable(&world)).ready().await;
    quiet().await;
    assert_eq!(rows(&world).await.len(), 0);
}

#[tokio::test]
async fn each_start_has_a_newer_fence_that_every_run_carries() {
    let world = World::new();
    let script = Script::new(|_| Outcome::Done);
    for count in 1..4 {
        let handle = world.start(&script, durable(&world));
        handle.ready().await;
        handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
        script.ran(count).await;
        world.engine.stop("test", seconds(5)).await;
    }
    let fences: Vec<u64> = script.runs().iter().map(|it| it.fence.as_ref().unwrap().number).collect();
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    let item = ItemKey { controller: "leader/test".into(), item: "start".into() };
    assert_eq!(script.runs()[0].fence.as_ref().unwrap().item, item);
}

#[tokio::test]
async fn what_a_run_did_not_see_is_looked_at_after_a_restart() {
    let world = World::new();
    world.create("a").await;
    let gate = Arc::new(Semaphore::new(0));
    let inner = gate.clone();
    let script = Script::slow(move |_| {
        let gate = inner.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Outcome::After(seconds(1_000))
        }
    });
    world.start(&script, |it| durable(&world)(it).concurrency(1));
    script.ran(1).await;
    world.change("a", "2").await;
    quiet().await;
    let stop = world.engine.stop("test", seconds(5));
    tokio::join!(stop, async {
        quiet().await;
        gate.add_permits(1);
    });
    assert_eq!((script.count(), rows(&world).await.len()), (1, 1));
    world.start(&script, durable(&world));
    quiet().await;
    assert_eq!(script.count(), 2);
}

#[tokio::test]
async fn only_back_offs_are_kept_where_another_source_may_have_had_news() {
    for (outcome, count) in
        [(Outcome::After(seconds(1_000)), 2), (Outcome::Transient(Failure::new("down")), 1)]
    {
        let world = World::new();
        world.create("a").await;
        let script = Script::new(move |_| outcome.clone());
        let related = || Source::mapped(Query::all(GroupKind::new("", "Namespace")), |_| Vec::new());
        for _ in 0..2 {
            let handle = world.start(&script, |it| durable(&world)(it).source(related()));
            handle.ready().await;
            quiet().await;
            world.engine.stop("test", seconds(5)).await;
        }
        assert_eq!(script.count(), count);
    }
}

#[tokio::test]
async fn what_was_saved_of_another_incarnation_does_not_count() {
    let world = World::new();
    world.create("a").await;
    let script = Script::new(|_| Outcome::After(seconds(1_000)));
    // As two objects of the same generation look.
    let objects = || Objects::new(Query::all(config_map_kind())).changed(|_| 1);
    for count in [1, 1, 2] {
        if count == 2 {
            world.delete("a").await;
            world.create("a").await;
        }
        world.start(&script, |it| durable(&world)(it).objects(objects())).ready().await;
        quiet().await;
        assert_eq!(script.count(), count);
        world.engine.stop("test", seconds(5)).await;
    }
}
