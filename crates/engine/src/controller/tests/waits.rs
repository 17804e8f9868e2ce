//! Items that wait for something else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use concert_model::condition::Status;
use concert_model::{Condition, GroupKind, Object, ObjectKey, condition};
use concert_store::{By, Error, Store};
use tokio::sync::Semaphore;

use crate::controller::{Phase, Versions};
use crate::fixtures::{Flaky, Script, World, config_map, quiet, seconds, widget};
use crate::outcome::{Outcome, Seen, Wait};
use crate::queue::Lane;
use crate::watched::Watched;

/// What to wait for, given what is there now.
async fn look(store: &Flaky, key: &ObjectKey) -> Wait {
    match store.get(key).await {
        Ok(object) => Wait::change_of(&object),
        Err(_) => Wait::existence_of(key.clone()),
    }
}

/// A reconciler that waits for a change of the config map `dependency`, whatever it is.
fn waiting(world: &World) -> Arc<Script> {
    let store = world.store.clone();
    Script::slow(move |_| {
        let store = store.clone();
        async move { Outcome::WaitFor(vec![look(&store, &config_map("dependency")).await]) }
    })
}

#[tokio::test]
async fn a_parked_item_costs_nothing_and_is_woken_by_exactly_its_object() {
    let world = World::new();
    let script = waiting(&world);
    let handle = world.start(&script, |it| it.poll(seconds(10)));
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    world.create("other").await;
    world.clock.advance(seconds(100)).await;
    assert_eq!(script.count(), 1);
    let state = handle.state(&widget("a")).unwrap();
    assert_eq!(state.phase, Phase::ParkedOn(vec![Wait::existence_of(config_map("dependency"))]));
    assert_eq!((state.attempt, state.last_error), (0, None));
    for count in 2..5 {
        match count {
            2 => drop(world.create("dependency").await),
            3 => drop(world.change("dependency", "2").await),
            _ => world.delete("dependency").await,
        }
        script.ran(count).await;
        quiet().await;
        assert_eq!(script.count(), count);
        assert_eq!(script.runs()[count - 1].reasons.to_string(), "dependency");
    }
}

#[tokio::test]
async fn a_change_between_the_read_and_the_wait_is_not_lost() {
    for has_watch_already in [false, true] {
        let world = World::new();
        world.create("dependency").await;
        let (store, gate) = (world.store.clone(), Arc::new(Semaphore::new(0)));
        let inner = gate.clone();
        let script = Script::slow(move |request| {
            let (store, gate) = (store.clone(), inner.clone());
            async move {
                let wait = look(&store, &config_map("dependency")).await;
                if &*request.key.name == "slow" && request.reasons.contains("changed") {
                    gate.acquire().await.unwrap().forget();
                }
                Outcome::WaitFor(vec![wait])
            }
        });
        let handle = world.start(&script, |it| it);
        if has_watch_already {
            handle.enqueue(&widget("early"), Lane::Event, "changed").unwrap();
            quiet().await;
        }
        handle.enqueue(&widget("slow"), Lane::Event, "changed").unwrap();
        quiet().await;
        world.change("dependency", "2").await;
        quiet().await;
        gate.add_permits(1);
        quiet().await;
        let slow = script.names().iter().filter(|it| *it == "slow").count();
        assert_eq!(slow, 2, "with a watch already: {has_watch_already}");
        assert!(matches!(handle.state(&widget("slow")).unwrap().phase, Phase::ParkedOn(_)));
    }
}

#[tokio::test]
async fn a_change_in_a_gap_of_the_watch_is_not_lost() {
    let world = World::new();
    let script = waiting(&world);
    let handle = world.start(&script, |it| it);
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    quiet().await;
    world.store.set_down(true);
    world.store.break_watches();
    quiet().await;
    world.create("dependency").await;
    world.store.compact();
    world.store.set_down(false);
    world.clock.drive(script.ran(2)).await;
}

#[tokio::test]
async fn who_waits_for_a_condition_sleeps_through_other_changes() {
    let world = World::new();
    let kind = GroupKind::new("", "Namespace");
    let key = ObjectKey::cluster(kind.clone(), "team");
    let object = Object::new(&kind.at_version("v1"), "", "team");
    world.store.create(object, &By::actor("test")).await.unwrap();
    let (store, target) = (world.store.clone(), key.clone());
    let script = Script::slow(move |_| {
        let (store, key) = (store.clone(), target.clone());
        async move {
            let object = store.get(&key).await.unwrap();
            let ready = condition::find(object.decode().status(), "Ready").map(|it| it.status);
            match ready {
                Some(Status::True) => Outcome::Done,
                _ => Outcome::WaitFor(vec![Wait::condition_of(&object, "Ready")]),
            }
        }
    });
    let handle = world.start(&script, |it| it);
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    quiet().await;
    for (status, count) in [(Status::Unknown, 1), (Status::False, 1), (Status::True, 2)] {
        let mut object = world.store.get(&key).await.unwrap().decode();
        let now = concert_model::Timestamp::UNIX_EPOCH;
        condition::set(object.get_mut("status"), Condition::new("Ready", status, "Test", ""), now);
        world.store.update_status(object, &By::actor("test")).await.unwrap();
        quiet().await;
        assert_eq!(script.count(), count, "{status:?}");
    }
}

/// One label with a version.
struct Section(Watched<Option<Arc<str>>>, AtomicBool);

#[async_trait]
impl Versions for Section {
    async fn version(&self, _label: &str) -> Result<Option<Arc<str>>, Error> {
        // Fails once: it must be asked again.
        if self.1.swap(false, Ordering::Relaxed) {
            return Err(Error::unavailable("not now"));
        }
        Ok(self.0.get())
    }
}

#[tokio::test]
async fn labels_are_waited_for_by_version() {
    let world = World::new();
    let section = Arc::new(Section(Watched::new(Some("1".into())), AtomicBool::new(true)));
    let seen = Arc::new(Watched::new(Some(Arc::from("0"))));
    let inner = seen.clone();
    let script = Script::new(move |_| Outcome::WaitFor(vec![Wait::label("section", inner.get())]));
    let handle = world.start(&script, |it| it.versions(section.clone()));
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    seen.set(Some("1".into()));
    world.clock.drive(script.ran(2)).await;
    quiet().await;
    handle.signal("section", Some("1"));
    handle.signal("another", Some("2"));
    quiet().await;
    assert_eq!(script.count(), 2);
    handle.signal("section", Some("2"));
    script.ran(3).await;
}

/// Knows the version of one label and fails for all others.
struct OnlyGood;

#[async_trait]
impl Versions for OnlyGood {
    async fn version(&self, label: &str) -> Result<Option<Arc<str>>, Error> {
        if label == "good" { Ok(Some("2".into())) } else { Err(Error::unavailable("not this one")) }
    }
}

#[tokio::test]
async fn those_that_cannot_be_compared_hold_nobody_up() {
    let world = World::new();
    let script = Script::new(|request| match &*request.key.name {
        "z" if request.reasons.contains("dependency") => Outcome::Done,
        "z" => Outcome::WaitFor(vec![Wait::label("good", Some("1".into()))]),
        _ => Outcome::WaitFor(vec![Wait::label("bad", None)]),
    });
    let handle = world.start(&script, |it| it.versions(Arc::new(OnlyGood)));
    for number in 0..100 {
        handle.enqueue(&widget(&number.to_string()), Lane::Event, "changed").unwrap();
    }
    quiet().await;
    handle.enqueue(&widget("z"), Lane::Event, "changed").unwrap();
    quiet().await;
    assert_eq!(script.names().iter().filter(|it| *it == "z").count(), 2);
}

#[tokio::test]
async fn watches_that_nobody_needs_are_ended_after_a_while() {
    let world = World::new();
    let is_waiting = Arc::new(AtomicBool::new(true));
    let inner = is_waiting.clone();
    let script = Script::new(move |_| match inner.load(Ordering::Relaxed) {
        true => Outcome::WaitFor(vec![Wait::existence_of(config_map("dependency"))]),
        false => Outcome::Done,
    });
    let handle = world.start(&script, |it| it);
    for _ in 0..3 {
        handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
        quiet().await;
    }
    assert_eq!(world.store.watches.get(), 1, "the same watch serves all");
    is_waiting.store(false, Ordering::Relaxed);
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    quiet().await;
    world.clock.advance(seconds(61)).await;
    is_waiting.store(true, Ordering::Relaxed);
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    quiet().await;
    assert_eq!(world.store.watches.get(), 2);
}

#[tokio::test]
async fn a_wait_counts_although_a_later_run_is_due() {
    let world = World::new();
    let gate = Arc::new(Semaphore::new(0));
    let inner = gate.clone();
    let script = Script::slow(move |_| {
        let gate = inner.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Outcome::WaitFor(vec![Wait::existence_of(config_map("dependency"))])
        }
    });
    let handle = world.start(&script, |it| it);
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    handle.enqueue_after(&widget("a"), Lane::Poll, "later", seconds(1_000)).unwrap();
    gate.add_permits(1);
    quiet().await;
    let state = handle.state(&widget("a")).unwrap();
    assert_eq!(state.phase, Phase::ParkedOn(vec![Wait::existence_of(config_map("dependency"))]));
    assert_eq!(state.next_due, Some(seconds(1_000)));
    world.create("dependency").await;
    quiet().await;
    assert_eq!(script.count(), 2);
}

#[tokio::test]
async fn to_wait_for_nothing_is_a_failure() {
    let world = World::new();
    let script = Script::new(|_| Outcome::WaitFor(Vec::new()));
    let handle = world.start(&script, |it| it);
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    quiet().await;
    let error = handle.state(&widget("a")).unwrap().last_error;
    assert_eq!(error.as_deref(), Some("the reconciler waits for nothing"));
}

#[test]
fn what_was_not_read_is_only_outdated_by_a_gap() {
    let wait = Wait::Object { key: config_map("a"), seen: Seen::Unread, condition: None };
    assert!(!wait.is_outdated(None, false));
    assert!(wait.is_outdated(None, true));
    assert!(wait.is_woken_by(None));
}
