//! How runs end, whole: what is in the object, in history, and when the next run is.

use std::time::Duration;

use concert_engine::workers::Report;
use concert_engine::{Phase as Stage, Wait};
use concert_model::no8s::resolve::LEFT_AT;
use concert_model::no8s::{Phase, Resource};
use serde_json::json;

use super::world::{World, key};

#[tokio::test(start_paused = true)]
async fn a_plugin_that_does_well_makes_it_ready_and_is_asked_again_after_the_drift_window() {
    let world = World::new().await;
    world.create(1).await;
    world.do_well(&world.one().await).await.unwrap();
    let object = world.get(1).await;
    assert_eq!((Resource(&object).phase(), Resource(&object).observed_generation()), (Phase::Ready, 1));
    let history = world.history(1).await;
    assert_eq!((history.len(), history[0].outcome.as_str(), history[0].generation), (1, "completed", 1));
    assert_eq!(history[0].details["trigger_reason"], "initial");
    assert_eq!(
        (&history[0].details["name"], &history[0].details["error_message"]),
        (&json!("r1"), &json!(null))
    );
    world.pass(298).await;
    assert!(world.claim("h", 1).await.is_empty());
    world.pass(3).await;
    assert_eq!(world.claim("h", 1).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_misbehaves_is_contained_and_others_go_on() {
    let world = World::new().await;
    for id in 1..=5 {
        world.create(id).await;
    }
    world.pass(1).await;
    let mut claimed = world.claim("h", 5).await;
    claimed.sort_by(|a, b| a.item.cmp(&b.item));
    let [forgets, none, hangs, stale, good] = &claimed[..] else { panic!("{}", claimed.len()) };
    world.say(forgets, Phase::Reconciling, None).await.unwrap();
    world.finish(forgets, Some(true)).await.unwrap();
    world.finish(none, None).await.unwrap();
    world.say(hangs, Phase::Reconciling, None).await.unwrap();
    world.say(stale, Phase::Ready, Some(-7)).await.unwrap();
    world.finish(stale, Some(true)).await.unwrap();
    world.do_well(good).await.unwrap();
    world.pass(61).await;
    let mut seen = Vec::new();
    for id in 1..=5 {
        let object = world.get(id).await;
        let it = Resource(&object);
        seen.push((it.shown_phase(), it.message().unwrap_or_default().to_owned(), it.retry_count()));
    }
    let expected = [
        (Phase::Reconciling, "msg", 0),
        (Phase::Failed, "reconcile returned None", 1),
        (Phase::Failed, "lease expired", 1),
        (Phase::Ready, "said", 0),
        (Phase::Ready, "said", 0),
    ];
    assert_eq!(seen, expected.map(|(phase, text, retries)| (phase, text.to_owned(), retries)));
    let state = world.engine.state("plugins/dns_record/DnsRecord.no8s.concert.dev", &key(3)).unwrap();
    assert!(matches!(state.phase, Stage::BackingOff { .. }));
    assert_eq!(state.last_error.as_deref(), Some("lease expired"));
    // What was left at reconciling is looked at again after a minute, the failures after their own, and first.
    let again: Vec<_> = world.claim("h", 5).await.iter().map(|it| it.item.to_string()).collect();
    assert_eq!(again, ["2", "1"]);
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_and_a_change_of_the_spec_ends_that() {
    let world = World::new().await;
    world.create(1).await;
    for wait in [60, 120, 240] {
        let item = world.one().await;
        world.finish(&item, Some(false)).await.unwrap();
        world.pass(wait - 2).await;
        assert!(world.claim("h", 1).await.is_empty());
        world.pass(3).await;
    }
    let item = world.one().await;
    assert_eq!(item.attempt, 3);
    world.finish(&item, Some(false)).await.unwrap();
    world.change(1).await;
    world.pass(1).await;
    assert_eq!(world.one().await.attempt, 0);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_reported_while_its_result_comes_counts_once() {
    let world = World::new().await;
    world.create(1).await;
    for count in 1..=2 {
        let item = world.one().await;
        world.write(&item, Phase::Failed, None).await.unwrap();
        world.finish(&item, Some(false)).await.unwrap();
        assert_eq!(Resource(&world.get(1).await).retry_count(), count);
        // The other way round: nobody has claimed it since, so its fence is good still.
        world.write(&item, Phase::Failed, None).await.unwrap();
        assert_eq!(Resource(&world.get(1).await).retry_count(), count);
        world.pass(121).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_asks_for_another_run_ends_where_it_says_and_comes_again_then() {
    let world = World::new().await;
    for id in 1..=3 {
        world.create(id).await;
    }
    world.pass(1).await;
    let mut claimed = world.claim("h", 3).await;
    claimed.sort_by(|a, b| a.item.cmp(&b.item));
    let phases = [Phase::Ready, Phase::Reconciling, Phase::Pending];
    for (item, phase) in claimed.iter().zip(phases) {
        let left = (phase != Phase::Ready).then(|| (LEFT_AT.to_owned(), json!(phase.as_str())));
        let report = Report {
            success: Some(true),
            requeue_after: Some(Duration::from_secs(30)),
            details: left.into_iter().collect(),
            ..Report::default()
        };
        world.say(item, phase, Some(1)).await.unwrap();
        world.board.finish("dns_record", &item.item, item.fence, report).await.unwrap();
    }
    for (id, phase) in (1..).zip(phases) {
        assert_eq!(world.phase(id).await, phase);
        assert_eq!(world.history(id).await[0].outcome, "completed");
    }
    let world = world.restart().await;
    world.pass(26).await;
    assert!(world.claim("h", 3).await.is_empty());
    world.pass(4).await;
    let mut again = 0;
    for _ in 0..3 {
        again += world.claim("h", 3).await.len();
    }
    assert_eq!(again, 3);
}

#[tokio::test(start_paused = true)]
async fn back_off_survives_a_restart() {
    let world = World::new().await;
    world.create(1).await;
    world.finish(&world.one().await, Some(false)).await.unwrap();
    let world = world.restart().await;
    assert!(world.claim("h", 1).await.is_empty());
    world.pass(60).await;
    assert_eq!(world.one().await.attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_lost_with_the_server_is_due_again_at_once_and_its_host_fenced_off() {
    let world = World::new().await;
    world.create(1).await;
    world.do_well(&world.one().await).await.unwrap();
    world.change(1).await;
    world.pass(1).await;
    let lost = world.one().await;
    world.say(&lost, Phase::Reconciling, None).await.unwrap();
    let world = world.restart().await;
    let item = world.one().await;
    assert!(item.fence > lost.fence);
    assert!(world.say(&lost, Phase::Ready, Some(2)).await.is_err());
    world.do_well(&item).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn deletion_ends_with_the_last_finalizer_and_history_stays() {
    let world = World::new().await;
    world.create(1).await;
    world.do_well(&world.one().await).await.unwrap();
    world.delete(1).await;
    world.pass(1).await;
    let item = world.one().await;
    assert_eq!(Resource(&item.object).shown_phase(), Phase::Deleting);
    world.set_finalizers(1, json!([])).await;
    assert!(world.is_gone(1).await);
    world.finish(&item, Some(true)).await.unwrap();
    let history = world.history(1).await;
    assert_eq!((history.len(), history[0].outcome.as_str()), (2, "completed"));
    assert_eq!(history[0].details["trigger_reason"], "deletion");
}

#[tokio::test(start_paused = true)]
async fn a_failed_deletion_is_tried_again_until_it_works() {
    let world = World::new().await;
    world.create(1).await;
    world.delete(1).await;
    world.pass(1).await;
    let item = world.one().await;
    world.say(&item, Phase::Failed, None).await.unwrap();
    world.finish(&item, Some(false)).await.unwrap();
    assert_eq!(world.phase(1).await, Phase::Deleting);
    assert!(world.claim("h", 1).await.is_empty());
    world.pass(60).await;
    // Reported as done, with the finalizer of the owner in place.
    world.finish(&world.one().await, Some(true)).await.unwrap();
    assert!(world.is_gone(1).await);
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_others_are_waited_for_without_another_run() {
    let world = World::new().await;
    world.create(1).await;
    world.set_finalizers(1, json!(["dns_record", "ext"])).await;
    world.delete(1).await;
    world.pass(1).await;
    let item = world.one().await;
    world.set_finalizers(1, json!(["ext"])).await;
    world.finish(&item, Some(true)).await.unwrap();
    world.pass(1).await;
    // The change while it ran is one more run, and then there is silence.
    for item in world.claim("h", 5).await {
        world.finish(&item, Some(true)).await.unwrap();
    }
    world.pass(4000).await;
    assert!(world.claim("h", 5).await.is_empty());
    assert_eq!(world.phase(1).await, Phase::Deleting);
    world.set_finalizers(1, json!([])).await;
    assert!(world.is_gone(1).await);
}

#[tokio::test(start_paused = true)]
async fn what_others_held_goes_when_they_let_go_although_its_owner_kept_its_finalizer() {
    let world = World::new().await;
    world.create(1).await;
    world.set_finalizers(1, json!(["dns_record", "ext"])).await;
    world.delete(1).await;
    world.pass(1).await;
    world.finish(&world.one().await, Some(true)).await.unwrap();
    world.pass(4000).await;
    assert!(world.claim("h", 5).await.is_empty(), "it is done with, and somebody else is not");
    world.set_finalizers(1, json!(["dns_record"])).await;
    world.pass(1).await;
    world.finish(&world.one().await, Some(true)).await.unwrap();
    assert!(world.is_gone(1).await);
}

#[tokio::test(start_paused = true)]
async fn what_was_made_while_its_deletion_came_is_not_forgotten() {
    let world = World::new().await;
    world.create(1).await;
    let item = world.one().await;
    world.delete(1).await;
    world.say(&item, Phase::Ready, Some(1)).await.unwrap();
    world.finish(&item, Some(true)).await.unwrap();
    world.pass(1).await;
    assert!(!world.is_gone(1).await, "it must be unmade first");
    let item = world.one().await;
    assert!(item.object.deleted_at().is_some());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_something_looks_again_in_time_whatever_happens() {
    let world = World::new().await;
    for id in [1, 2] {
        world.create(id).await;
    }
    world.pass(1).await;
    let mut claimed = world.claim("h", 2).await;
    claimed.sort_by(|a, b| a.item.cmp(&b.item));
    world.do_well(&claimed[0]).await.unwrap();
    let waits = vec![Wait::condition_of(&world.stored(1).await, "Never")];
    let report = Report {
        success: Some(true),
        waits,
        requeue_after: Some(Duration::from_secs(30)),
        ..Report::default()
    };
    world.say(&claimed[1], Phase::Reconciling, None).await.unwrap();
    world.board.finish("dns_record", &claimed[1].item, claimed[1].fence, report).await.unwrap();
    world.pass(28).await;
    assert!(world.claim("h", 2).await.is_empty());
    world.pass(4).await;
    assert_eq!(&*world.one().await.item, "2");
}

#[tokio::test(start_paused = true)]
async fn what_failed_for_good_is_not_tried_again_until_it_changes() {
    let world = World::new().await;
    world.create(1).await;
    let item = world.one().await;
    let terminal = [("error_class".to_owned(), json!("terminal"))];
    let report = Report {
        success: Some(false),
        message: "no such zone".into(),
        details: terminal.into_iter().collect(),
        ..Report::default()
    };
    world.board.finish("dns_record", &item.item, item.fence, report.clone()).await.unwrap();
    let object = world.get(1).await;
    assert_eq!((Resource(&object).phase(), Resource(&object).next()), (Phase::Failed, None));
    world.pass(4 * 3600).await;
    assert!(world.claim("h", 1).await.is_empty());
    let world = world.restart().await;
    assert!(world.claim("h", 1).await.is_empty(), "a restart is no change");
    world.change(1).await;
    world.pass(1).await;
    let item = world.one().await;
    world.board.finish("dns_record", &item.item, item.fence, report.clone()).await.unwrap();
    // To go is to be tried again.
    world.delete(1).await;
    world.pass(1).await;
    let item = world.one().await;
    world.board.finish("dns_record", &item.item, item.fence, report).await.unwrap();
    world.pass(300).await;
    assert_eq!(world.claim("h", 1).await.len(), 1);
}
