//! Budgets and breakers hold runs back without touching back-off.

use crate::breaker::{self, Breakers, State};
use crate::budget::{Budget, Budgets};
use crate::fixtures::{Script, World, quiet, seconds, widget};
use crate::outcome::{Failure, Outcome};
use crate::queue::Lane;
use crate::reconciler::Labels;

#[tokio::test]
async fn out_of_budget_is_no_attempt_and_users_go_first() {
    let world = World::new();
    let script = Script::new(|_| Outcome::Done);
    script.set_labels(Labels { budgets: vec!["account".into()], target: None });
    let budgets = Budgets::new();
    budgets.set("account", Budget::new(1.0, 1.0));
    let handle = world.start(&script, |it| it.budgets(budgets));
    for name in ["a", "b", "c"] {
        handle.enqueue(&widget(name), Lane::Poll, "poll").unwrap();
    }
    quiet().await;
    assert_eq!(script.names(), ["a"]);
    handle.enqueue(&widget("user"), Lane::User, "changed").unwrap();
    world.clock.advance(seconds(10)).await;
    let mut names = script.names();
    assert_eq!(names[1], "user");
    names.sort();
    assert_eq!(names, ["a", "b", "c", "user"]);
    assert!(script.runs().iter().all(|run| run.attempt == 0));
    assert_eq!(handle.summary().failures, 0);
}

#[tokio::test]
async fn a_key_with_many_events_gets_its_turn_and_holds_nobody_up() {
    let world = World::new();
    let script = Script::new(|_| Outcome::Done);
    script.set_labels(Labels { budgets: vec!["account".into()], target: None });
    let budgets = Budgets::new();
    budgets.set("account", Budget::new(1.0, 1.0));
    let handle = world.start(&script, |it| it.budgets(budgets));
    for _ in 0..100 {
        handle.enqueue(&widget("hot"), Lane::Event, "changed").unwrap();
        world.clock.advance(std::time::Duration::from_millis(100)).await;
    }
    assert!(script.count() >= 9, "{} runs in ten seconds", script.count());
    for name in ["hot", "other"] {
        handle.enqueue(&widget(name), Lane::Event, "changed").unwrap();
    }
    world.clock.advance(seconds(3)).await;
    assert!(script.names().contains(&"other".into()));
}

#[tokio::test]
async fn a_target_that_is_down_is_left_alone_until_a_probe_works() {
    let world = World::new();
    let clock = world.clock.clone();
    let script = Script::new(move |_| {
        use concert_store::Clock;
        if clock.elapsed() < seconds(40) { Outcome::Transient(Failure::new("down")) } else { Outcome::Done }
    });
    script.set_labels(Labels { budgets: Vec::new(), target: Some("target".into()) });
    let breakers = Breakers::new(breaker::Config { failures: 3, ..breaker::Config::default() });
    let handle = world.start(&script, |it| it.breakers(breakers.clone()).concurrency(1));
    for number in 0..20 {
        handle.enqueue(&widget(&number.to_string()), Lane::Event, "changed").unwrap();
    }
    quiet().await;
    assert_eq!(script.count(), 3);
    assert_eq!(breakers.state("target"), State::Open { until: seconds(30) });
    world.clock.advance(seconds(39)).await;
    assert_eq!(script.count(), 4, "one probe, which failed");
    world.clock.advance(seconds(100)).await;
    assert_eq!(breakers.state("target"), State::Closed { failures: 0 });
    assert_eq!(script.count(), 24);
}

#[tokio::test]
async fn a_probe_that_is_aborted_leaves_room_for_the_next() {
    let world = World::new();
    let script = Script::slow(|request| async move {
        if request.attempt > 0 {
            std::future::pending::<()>().await;
        }
        Outcome::Transient(Failure::new("down"))
    });
    script.set_labels(Labels { budgets: Vec::new(), target: Some("target".into()) });
    let breakers = Breakers::new(breaker::Config { failures: 1, ..breaker::Config::default() });
    let handle = world.start(&script, |it| it.breakers(breakers.clone()));
    handle.enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    world.clock.drive(script.ran(2)).await;
    assert_eq!(breakers.state("target"), State::HalfOpen { probes: 1 });
    world.clock.drive(world.engine.stop("test", seconds(1))).await;
    assert_eq!(breakers.state("target"), State::HalfOpen { probes: 0 });
}
