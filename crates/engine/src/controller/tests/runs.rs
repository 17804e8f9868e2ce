//! Runs: how often, how many, and how they end.

use std::sync::Arc;

use concert_model::ObjectKey;
use tokio::sync::Semaphore;

use crate::controller::{Controller, EnqueueError, Phase};
use crate::fixtures::{Script, World, quiet, seconds, widget};
use crate::outcome::{Failure, Outcome, OutcomeKind};
use crate::queue::Lane;
use crate::reconciler::{Labels, Reconciler, Request};

/// A script whose runs each wait for a permit.
fn gated(outcome: Outcome) -> (Arc<Script>, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let inner = gate.clone();
    let script = Script::slow(move |_| {
        let (gate, outcome) = (inner.clone(), outcome.clone());
        async move {
            gate.acquire().await.unwrap().forget();
            outcome
        }
    });
    (script, gate)
}

#[tokio::test]
async fn a_key_that_is_asked_for_runs_with_its_reasons() {
    let world = World::new();
    let script = Script::new(|_| Outcome::Done);
    let handle = world.start(&script, |it| it);
    handle.pause();
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    handle.enqueue(&widget("a"), Lane::User, "asked").unwrap();
    handle.resume();
    script.ran(1).await;
    quiet().await;
    let runs = script.runs();
    assert_eq!(
        (runs.len(), runs[0].lane, runs[0].reasons.to_string()),
        (1, Lane::User, "changed, asked".into())
    );
    let state = handle.state(&widget("a")).unwrap();
    assert_eq!((state.phase, state.last_outcome), (Phase::Idle, Some(OutcomeKind::Done)));
}

#[tokio::test]
async fn a_change_while_it_runs_gives_exactly_one_more_run() {
    let world = World::new();
    let (script, gate) = gated(Outcome::Done);
    let handle = world.start(&script, |it| it);
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    for _ in 0..5 {
        handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    }
    assert!(matches!(handle.state(&widget("a")).unwrap().phase, Phase::RunningSince(_)));
    gate.add_permits(10);
    script.ran(2).await;
    quiet().await;
    assert_eq!(script.count(), 2);
}

#[tokio::test]
async fn no_more_runs_at_a_time_than_allowed() {
    let world = World::new();
    let (script, gate) = gated(Outcome::Done);
    let handle = world.start(&script, |it| it.concurrency(3).parallelism(2));
    for number in 0..10 {
        handle.enqueue(&widget(&number.to_string()), Lane::Event, "changed").unwrap();
    }
    script.ran(3).await;
    quiet().await;
    assert_eq!(script.count(), 3);
    gate.add_permits(10);
    script.ran(10).await;
}

#[tokio::test]
async fn panics_are_contained_counted_and_tried_again() {
    let world = World::new();
    let script = Script::new(|request| match &*request.key.name {
        "bad" if request.attempt < 2 => panic!("attempt {}", request.attempt),
        _ => Outcome::Done,
    });
    let handle = world.start(&script, |it| it.concurrency(1));
    handle.enqueue(&widget("bad"), Lane::Event, "changed").unwrap();
    handle.enqueue(&widget("good"), Lane::Event, "changed").unwrap();
    script.ran(2).await;
    quiet().await;
    let state = handle.state(&widget("bad")).unwrap();
    assert_eq!((state.attempt, state.last_error.as_deref()), (1, Some("panic: attempt 0")));
    assert!(matches!(state.phase, Phase::BackingOff { until } if until <= seconds(1)));
    world.clock.drive(script.ran(4)).await;
    quiet().await;
    let state = handle.state(&widget("bad")).unwrap();
    assert_eq!((state.attempt, state.last_error, state.phase), (0, None, Phase::Idle));
    assert_eq!((handle.summary().panics, handle.summary().failures), (2, 2));
    assert!(!world.tasks.root().is_requested());
}

#[tokio::test]
async fn a_terminal_failure_waits_for_a_change() {
    let world = World::new();
    let script = Script::new(|_| Outcome::Terminal(Failure::new("not like this")));
    let handle = world.start(&script, |it| it.poll(seconds(10)));
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    world.clock.advance(seconds(100)).await;
    let state = handle.state(&widget("a")).unwrap();
    assert_eq!((script.count(), state.phase), (1, Phase::Terminal));
    handle.enqueue(&widget("a"), Lane::User, "changed").unwrap();
    script.ran(2).await;
}

#[tokio::test]
async fn a_terminal_failure_that_says_when_is_looked_at_again_then() {
    let world = World::new();
    let failure = Failure::new("not like this").retried_after(seconds(60));
    let script = Script::new(move |_| Outcome::Terminal(failure.clone()));
    let handle = world.start(&script, |it| it.poll(seconds(10)));
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    world.clock.advance(seconds(59)).await;
    let state = handle.state(&widget("a")).unwrap();
    assert_eq!((script.count(), state.last_outcome), (1, Some(OutcomeKind::Terminal)));
    assert_eq!(state.last_error.as_deref(), Some("not like this"));
    world.clock.advance(seconds(1)).await;
    script.ran(2).await;
}

#[tokio::test]
async fn another_look_comes_after_its_time_and_polls_go_on() {
    let world = World::new();
    let script = Script::new(|request| match &*request.key.name {
        "after" => Outcome::After(seconds(7)),
        _ => Outcome::Done,
    });
    let handle = world.start(&script, |it| it.poll(seconds(10)));
    for name in ["after", "poll"] {
        handle.enqueue(&widget(name), Lane::Event, "changed").unwrap();
    }
    quiet().await;
    assert_eq!(handle.state(&widget("after")).unwrap().phase, Phase::DueAt(seconds(7)));
    world.clock.advance(seconds(30)).await;
    assert_eq!(script.names().iter().filter(|it| *it == "after").count(), 5);
    assert_eq!(script.names().iter().filter(|it| *it == "poll").count(), 4);
}

#[tokio::test]
async fn an_item_may_have_a_poll_interval_of_its_own() {
    let world = World::new();
    let script = Script::new(|_| Outcome::Poll(seconds(4)));
    let handle = world.start(&script, |it| it.poll(seconds(100)));
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    quiet().await;
    let state = handle.state(&widget("a")).unwrap();
    assert_eq!((state.phase, state.lane), (Phase::DueAt(seconds(4)), Some(Lane::Poll)));
    world.clock.advance(seconds(12)).await;
    assert_eq!(script.count(), 4);
}

#[tokio::test]
async fn what_is_not_there_yet_backs_off_and_is_no_failure() {
    let world = World::new();
    let script = Script::new(|request| match request.attempt {
        0..3 => Outcome::Requeue("not visible yet".into(), None),
        3 => Outcome::Requeue("over quota".into(), Some(seconds(50))),
        _ => Outcome::Done,
    });
    let handle = world.start(&script, |it| it);
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    quiet().await;
    let state = handle.state(&widget("a")).unwrap();
    assert!(matches!(state.phase, Phase::BackingOff { until } if until <= seconds(1)));
    assert_eq!(state.last_error.as_deref(), Some("not visible yet"));
    world.clock.drive(script.ran(4)).await;
    quiet().await;
    // Exactly the time it asked for, and the back-off stands where it stood.
    let before = handle.state(&widget("a")).unwrap();
    assert_eq!(before.last_error.as_deref(), Some("over quota"));
    world.clock.advance(seconds(51)).await;
    let after = handle.state(&widget("a")).unwrap();
    assert_eq!((before.attempt, after.attempt, script.count()), (3, 3, 5));
    assert_eq!(handle.summary().failures, 0);
}

#[tokio::test]
async fn a_run_past_its_deadline_is_dropped_and_tried_again() {
    let world = World::new();
    let (script, _gate) = gated(Outcome::Done);
    let handle = world.start(&script, |it| it.timeout(seconds(5)));
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    assert_eq!(script.runs()[0].deadline, seconds(5));
    world.clock.drive(script.ran(2)).await;
    let state = handle.state(&widget("a")).unwrap();
    assert_eq!((state.attempt, state.last_error.as_deref()), (1, Some("the deadline has passed")));
    let metrics = world.engine.metrics().render();
    assert!(
        metrics.contains("controller_runtime_reconcile_timeouts_total{controller=\"test\"} 1"),
        "{metrics}"
    );
}

#[tokio::test]
async fn paused_keys_and_controllers_run_when_they_are_resumed() {
    let world = World::new();
    let script = Script::new(|_| Outcome::Done);
    let handle = world.start(&script, |it| it);
    handle.pause_key(&widget("a")).unwrap();
    for name in ["a", "b"] {
        handle.enqueue(&widget(name), Lane::Event, "changed").unwrap();
    }
    quiet().await;
    assert_eq!(
        (script.names(), handle.state(&widget("a")).unwrap().phase),
        (vec!["b".into()], Phase::Paused)
    );
    handle.pause();
    handle.resume_key(&widget("a"));
    handle.enqueue_after(&widget("c"), Lane::Event, "changed", seconds(5)).unwrap();
    world.clock.advance(seconds(10)).await;
    assert_eq!(script.count(), 1);
    handle.resume();
    quiet().await;
    assert_eq!(script.names(), ["b", "a", "c"]);
}

#[tokio::test]
async fn a_stop_waits_for_what_runs_and_starts_nothing_more() {
    let world = World::new();
    let (script, gate) = gated(Outcome::Done);
    let handle = world.start(&script, |it| it.concurrency(1));
    for name in ["a", "b"] {
        handle.enqueue(&widget(name), Lane::Event, "changed").unwrap();
    }
    script.ran(1).await;
    let stop = world.engine.stop("test", seconds(5));
    let (late, ()) = tokio::join!(stop, async {
        quiet().await;
        gate.add_permits(5);
    });
    assert_eq!((late, script.names()), (Some(vec![]), vec!["a".into()]));
    let error = handle.enqueue(&widget("c"), Lane::Event, "changed").unwrap_err();
    assert_eq!(error, EnqueueError::Stopped { name: "test".into() });
    assert!(handle.states().is_empty());
}

#[tokio::test]
async fn a_stop_ends_what_does_not_come_to_an_end() {
    let world = World::new();
    let (script, _gate) = gated(Outcome::Done);
    let handle = world.start(&script, |it| it.concurrency(1));
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    let late = world.clock.drive(world.engine.stop("test", seconds(5))).await;
    assert_eq!(late, Some(vec!["test/worker".into()]));
    assert!(world.tasks.names().is_empty());
    assert!(!world.tasks.root().is_requested());
}

/// Runs `hot` over and over, so that a worker always has something to do; other keys never end.
fn busy() -> Arc<Script> {
    Script::slow(|request| async move {
        if &*request.key.name != "hot" {
            std::future::pending::<()>().await;
        }
        Outcome::After(seconds(0))
    })
}

#[tokio::test]
async fn a_worker_that_is_never_idle_stops_when_it_is_asked_to() {
    let world = World::new();
    let script = busy();
    let handle = world.start(&script, |it| it.concurrency(2).parallelism(1));
    handle.enqueue(&widget("hot"), Lane::Event, "changed").unwrap();
    script.ran(5).await;
    let late = world.clock.drive(world.engine.stop("test", seconds(5))).await;
    assert_eq!(late, Some(vec![]));
}

#[tokio::test]
async fn a_worker_that_is_never_idle_keeps_deadlines() {
    let world = World::new();
    let script = busy();
    let handle = world.start(&script, |it| it.concurrency(2).parallelism(1).timeout(seconds(5)));
    handle.enqueue(&widget("slow"), Lane::Event, "changed").unwrap();
    handle.enqueue(&widget("hot"), Lane::Event, "changed").unwrap();
    script.ran(5).await;
    world.clock.advance(seconds(6)).await;
    let state = handle.state(&widget("slow")).unwrap();
    assert_eq!(state.last_error.as_deref(), Some("the deadline has passed"));
}

#[tokio::test]
async fn a_panic_while_a_late_run_is_dropped_is_one_of_the_run() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let world = World::new();
    let script = Script::slow(|_| async {
        let _bomb = Bomb;
        std::future::pending().await
    });
    let handle = world.start(&script, |it| it.timeout(seconds(5)).concurrency(1));
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    script.ran(1).await;
    world.clock.drive(script.ran(2)).await;
    let state = handle.state(&widget("a")).unwrap();
    assert_eq!((state.attempt, state.last_error.as_deref()), (1, Some("panic: dropped")));
    assert_eq!(handle.summary().panics, 1);
    world.clock.drive(world.engine.stop("test", seconds(1))).await;
    assert!(!world.tasks.root().is_requested());
}

#[tokio::test]
async fn a_panic_in_labels_is_one_of_the_run() {
    struct Unlabelled;
    #[async_trait::async_trait]
    impl Reconciler for Unlabelled {
        async fn reconcile(&self, _: Request) -> Outcome {
            Outcome::Done
        }

        fn labels(&self, _: &ObjectKey) -> Labels {
            panic!("no labels")
        }
    }
    let world = World::new();
    let handle = world.engine.start(Controller::builder("test", Arc::new(Unlabelled)).build()).unwrap();
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    quiet().await;
    let state = handle.state(&widget("a")).unwrap();
    assert_eq!((state.attempt, state.last_error.as_deref()), (1, Some("panic: no labels")));
    assert_eq!(handle.summary().panics, 1);
}

#[tokio::test]
async fn a_full_queue_says_so() {
    let world = World::new();
    let (script, _gate) = gated(Outcome::Done);
    let handle = world.start(&script, |it| it.capacity(1));
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    let error = handle.enqueue(&widget("b"), Lane::Event, "changed").unwrap_err();
    assert_eq!(error.to_string(), "the queue is full with 1 items");
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
}
