//! What reports mean.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;

use super::super::Running;
use super::world::World;

fn waiting() -> serde_json::Value {
    json!({"outcome": "not_ready", "message": "no network yet",
        "waits_for": [{"section": "network", "path": "/vnet_name"}]})
}

#[tokio::test(start_paused = true)]
async fn r9_order_comes_from_not_ready_and_from_what_is_written_alone() {
    let world = World::new().await;
    // Registered in the wrong order, without a word about any.
    world.register("shoot", json!({})).await;
    world.register("network", json!({})).await;
    world.runtime("rt-1").await;
    let shoot = world.one("shoot").await;
    world.report("shoot", &shoot, waiting()).await.unwrap();
    assert_eq!(world.state("rt-1", "shoot").await, "not_ready");
    assert!(!world.is_ready("rt-1").await);
    let network = world.one("network").await;
    world.put("rt-1", "network", json!({"vnet_name": "a"})).await;
    world.say("network", &network, "ready").await;
    let shoot = world.one("shoot").await;
    assert!(shoot.reasons.contains("dependency"), "{}", shoot.reasons);
    world.say("shoot", &shoot, "ready").await;
    assert!(world.is_ready("rt-1").await);
    assert_eq!(world.phase("rt-1").await, "Ready");
}

#[tokio::test(start_paused = true)]
async fn r10_who_waits_is_woken_by_exactly_the_matching_write() {
    let world = World::new().await;
    world.register("shoot", json!({})).await;
    world.runtime("rt-1").await;
    world.runtime("rt-2").await;
    for item in world.claim("shoot").await {
        world.report("shoot", &item, waiting()).await.unwrap();
    }
    world.put("rt-1", "spec", json!({"vnet_name": "a"})).await;
    world.put("rt-1", "network", json!({"cidr": "x"})).await;
    world.put("rt-2", "network", json!({"cidr": "x"})).await;
    world.nothing("shoot").await;
    world.put("rt-2", "network", json!({"cidr": "x", "vnet_name": "b"})).await;
    let item = world.one("shoot").await;
    assert_eq!((&*item.item, item.attempt), ("rt-2/shoot", 0));
}

#[tokio::test(start_paused = true)]
async fn r10_who_waits_looks_again_after_a_minute_at_no_cost() {
    let world = World::new().await;
    world.register("shoot", json!({})).await;
    world.runtime("rt-1").await;
    for _ in 0..5 {
        let item = world.one("shoot").await;
        assert_eq!(item.attempt, 0);
        world.report("shoot", &item, waiting()).await.unwrap();
        world.pass(50).await;
        world.nothing("shoot").await;
        world.pass(12).await;
    }
    assert_eq!(world.item("rt-1", "shoot").await.unwrap().status()["attempt"], 0);
}

#[tokio::test(start_paused = true)]
async fn r11_parking_is_refused_if_what_was_read_is_stale() {
    let world = World::new().await;
    world.register("shoot", json!({})).await;
    world.runtime("rt-1").await;
    let item = world.one("shoot").await;
    let revision = item.context["revision"].as_u64().unwrap();
    // Written after it read and before it says that it waits.
    world.put("rt-1", "network", json!({"vnet_name": "a"})).await;
    let mut said = waiting();
    said["observed_revision"] = json!(revision);
    world.report("shoot", &item, said).await.unwrap();
    let item = world.one("shoot").await;
    assert_eq!(item.attempt, 0, "nobody has failed");
    // It has read the write and still waits, for another value.
    let mut said = waiting();
    said["observed_revision"] = json!(revision + 1);
    world.report("shoot", &item, said).await.unwrap();
    world.nothing("shoot").await;
}

#[tokio::test(start_paused = true)]
async fn r11_who_decides_on_less_than_it_says_it_has_read_is_parked_all_the_same() {
    let world = World::new().await;
    world.register("shoot", json!({})).await;
    world.runtime("rt-1").await;
    world.runtime("rt-2").await;
    for item in world.claim("shoot").await {
        let entry = item.key.name.to_string();
        let revision = item.context["revision"].as_u64().unwrap();
        // Written after both have read; one of them then claims to have read it.
        world.put(&entry, "network", json!({"vnet_name": "a"})).await;
        let mut said = waiting();
        said["retry_after"] = json!(600);
        said["observed_revision"] = json!(if entry == "rt-1" { revision + 1 } else { revision });
        world.report("shoot", &item, said).await.unwrap();
    }
    let item = world.one("shoot").await;
    assert_eq!((&*item.item, item.attempt), ("rt-2/shoot", 0), "the one that says what it has read");
    world.say("shoot", &item, "ready").await;
    world.pass(60).await;
    world.nothing("shoot").await;
    assert_eq!(world.state("rt-1", "shoot").await, "not_ready");
}

#[tokio::test(start_paused = true)]
async fn r10_who_waits_for_a_condition_is_woken_when_it_holds() {
    let world = World::new().await;
    world.register("shoot", json!({})).await;
    world.register("late", json!({})).await;
    world.runtime("rt-1").await;
    let late = world.one("late").await;
    let waits = json!({"outcome": "not_ready", "waits_for": [{"condition": "Reachable"}]});
    world.report("late", &late, waits).await.unwrap();
    world.nothing("late").await;
    let shoot = world.one("shoot").await;
    let conditions = json!([{"type": "Reachable", "status": "True", "reason": "Answers", "message": ""}]);
    world.report("shoot", &shoot, json!({"outcome": "ready", "conditions": conditions})).await.unwrap();
    world.do_well("late").await;
    assert!(world.is_ready("rt-1").await);
}

#[tokio::test(start_paused = true)]
async fn r10_who_waits_for_what_is_there_looks_more_and_more_seldom() {
    let world = World::new().await;
    world.register("shoot", json!({})).await;
    world.register("late", json!({})).await;
    world.runtime("rt-1").await;
    let shoot = world.one("shoot").await;
    let conditions = json!([{"type": "Reachable", "status": "True", "reason": "Answers", "message": ""}]);
    world.report("shoot", &shoot, json!({"outcome": "ready", "conditions": conditions})).await.unwrap();
    world.settle().await;
    let waits = json!({"outcome": "not_ready", "waits_for": [{"condition": "Reachable"}]});
    let mut looks = 0;
    for _ in 0..600 {
        for item in world.claim("late").await {
            assert_eq!(item.attempt, 0, "nobody has failed");
            world.report("late", &item, waits.clone()).await.unwrap();
            looks += 1;
        }
        world.pass(1).await;
    }
    // At 0, 1, 3, 7, 15, 31 and 63 seconds, and then every minute.
    assert!((12..=20).contains(&looks), "{looks} looks in ten minutes");
    world.pass(61).await;
    let item = world.one("late").await;
    world.report("late", &item, json!({"outcome": "requeue", "retry_after": 1})).await.unwrap();
    world.pass(2).await;
    let item = world.one("late").await;
    world.report("late", &item, waits).await.unwrap();
    world.pass(2).await;
    world.do_well("late").await;
}

#[tokio::test(start_paused = true)]
async fn r11_who_waits_for_another_entry_is_not_parked_over_what_was_written_since_it_looked() {
    let world = World::new().await;
    world.register("shoot", json!({})).await;
    world.entry("hub", json!({"kind": "hub"})).await;
    world.runtime("rt-1").await;
    let waits = |version: u64| {
        json!({"outcome": "not_ready", "retry_after": 600,
            "waits_for": [{"section": "network", "entry": "hub", "version": version}]})
    };
    let item = world.one("shoot").await;
    // Written after the host has looked and before it says that it waits.
    world.put("hub", "network", json!({"vnet_name": "a"})).await;
    world.report("shoot", &item, waits(0)).await.unwrap();
    world.pass(2).await;
    let item = world.one("shoot").await;
    assert_eq!(item.attempt, 0, "nobody has failed");
    world.report("shoot", &item, waits(1)).await.unwrap();
    world.pass(2).await;
    world.nothing("shoot").await;
    world.put("hub", "network", json!({"vnet_name": "b"})).await;
    world.do_well("shoot").await;
}

#[tokio::test(start_paused = true)]
async fn r12_a_host_that_answers_quickly_is_free_for_others() {
    let world = World::new().await;
    world.register("shoot", json!({"concurrency": 1})).await;
    world.runtime("rt-1").await;
    world.runtime("rt-2").await;
    for _ in 0..2 {
        let item = world.one("shoot").await;
        world.report("shoot", &item, waiting()).await.unwrap();
    }
    assert_eq!(world.board.view("shoot").leases, 0);
}

/// The metrics of a fleet, as a scrape has them.
#[derive(Debug)]
struct Numbers(Running);

impl Collector for Numbers {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }
}

#[tokio::test(start_paused = true)]
async fn r17_what_waits_and_who_is_busy_can_be_read_off_for_autoscaling() {
    let world = World::new().await;
    world.register("shoot", json!({"concurrency": 4})).await;
    world.runtime("rt-1").await;
    let _lent = world.one("shoot").await;
    world.runtime("rt-2").await;
    world.pass(30).await;
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Numbers(world.running.clone())));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let number = |name: &str| -> f64 {
        let line = text.lines().find_map(|it| it.strip_prefix(&format!("{name}{{reconciler=\"shoot\"}} ")));
        line.unwrap_or_else(|| panic!("{name} in\n{text}")).parse().unwrap()
    };
    for (state, count) in [("running", "1.0"), ("pending", "1.0"), ("ready", "0.0")] {
        let line = format!("concert_mothership_items{{state=\"{state}\"}} {count}\n");
        assert!(text.contains(&line), "{line} in\n{text}");
    }
    assert_eq!(number("concert_mothership_occupancy_ratio"), 0.25);
    assert_eq!(number("concert_mothership_queue_depth"), 1.0);
    let age = number("concert_mothership_queue_age_seconds");
    assert!((29.0..=31.0).contains(&age), "{age}");
}

#[tokio::test(start_paused = true)]
async fn r13_an_item_is_with_one_host_and_late_results_change_nothing() {
    let world = World::new().await;
    world.register("shoot", json!({"leaseSeconds": 10})).await;
    world.runtime("rt-1").await;
    let frozen = world.one("shoot").await;
    world.nothing("shoot").await;
    world.pass(12).await;
    assert_eq!(world.item("rt-1", "shoot").await.unwrap().status()["reason"], "LeaseExpired");
    world.pass(5).await;
    let other = world.one("shoot").await;
    assert!(other.fence > frozen.fence);
    assert_eq!(other.attempt, 1);
    assert!(world.report("shoot", &frozen, json!({"outcome": "ready"})).await.is_err());
    assert_eq!(world.state("rt-1", "shoot").await, "failed");
    world.say("shoot", &other, "ready").await;
    world.report("shoot", &other, json!({"outcome": "failed"})).await.unwrap();
    assert_eq!(world.state("rt-1", "shoot").await, "ready", "a result counts once");
}

#[tokio::test(start_paused = true)]
async fn r15_items_and_entries_say_how_they_stand() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.runtime("rt-1").await;
    let item = world.one("network").await;
    assert_eq!(world.state("rt-1", "network").await, "pending");
    world.say("network", &item, "requeue").await;
    assert_eq!(
        (&*world.state("rt-1", "network").await, &*world.phase("rt-1").await),
        ("running", "Reconciling")
    );
    world.pass(6).await;
    let item = world.one("network").await;
    world.report("network", &item, json!({"outcome": "failed", "message": "no quota"})).await.unwrap();
    assert_eq!(world.phase("rt-1").await, "Failed");
    let entry = world.get_entry("rt-1").await.unwrap();
    assert_eq!(entry.status()["message"], "network failed: no quota");
    assert_eq!(entry.status()["items"], json!({"failed": 1}));
    world.pass(5).await;
    world.do_well("network").await;
    assert!(world.is_ready("rt-1").await);
    let status = world.item("rt-1", "network").await.unwrap().status().clone();
    assert_eq!((&status["attempt"], &status["state"]), (&json!(0), &json!("ready")));
}

#[tokio::test(start_paused = true)]
async fn r16_terminal_failures_wait_for_a_change_and_transient_ones_for_a_while() {
    let world = World::new().await;
    world.register("network", json!({"watches": [{"section": "spec"}]})).await;
    world.runtime("rt-1").await;
    let item = world.one("network").await;
    let failed = json!({"outcome": "failed", "error_class": "transient", "retry_after": 30});
    world.report("network", &item, failed).await.unwrap();
    world.pass(28).await;
    world.nothing("network").await;
    world.pass(3).await;
    let item = world.one("network").await;
    assert_eq!(item.attempt, 1);
    let failed = json!({"outcome": "failed", "error_class": "terminal", "message": "no such region"});
    world.report("network", &item, failed).await.unwrap();
    world.pass(3_600).await;
    world.nothing("network").await;
    world.put("rt-1", "spec", json!({"region": "eu"})).await;
    world.do_well("network").await;
}

#[tokio::test(start_paused = true)]
async fn r16_a_target_that_does_not_answer_is_left_alone_by_all() {
    let world = World::new().await;
    for name in ["a", "b", "c", "d", "e", "f"] {
        world.register(name, json!({})).await;
    }
    world.runtime("rt-1").await;
    world.runtime("rt-2").await;
    for name in ["a", "b", "c", "d", "e"] {
        for item in world.claim(name).await {
            let is_down = &*item.key.name == "rt-1";
            let class = if is_down { "unreachable" } else { "transient" };
            let said = json!({"outcome": "failed", "error_class": class, "retry_after": 600});
            world.report(name, &item, said).await.unwrap();
        }
    }
    let items: Vec<String> = world.claim("f").await.iter().map(|it| it.item.to_string()).collect();
    assert_eq!(items, ["rt-2/f"], "only the one that does not answer");
    world.pass(31).await;
    let probe = world.one("f").await;
    assert_eq!(probe.item.to_string(), "rt-1/f", "one may try after a while");
    world.board.release("f", &probe.item, probe.fence).unwrap();
    world.settle().await;
    assert_eq!(world.one("f").await.item.to_string(), "rt-1/f", "it was given back, so nobody has tried");
    world.register("g", json!({})).await;
    let items: Vec<String> = world.claim("g").await.iter().map(|it| it.item.to_string()).collect();
    assert_eq!(items, ["rt-2/g"], "and that is no answer of the cluster");
}

#[tokio::test(start_paused = true)]
async fn r17_back_pressure_costs_nothing() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.runtime("rt-1").await;
    let item = world.one("network").await;
    let busy = json!({"outcome": "requeue", "message": "429", "retry_after": 20});
    world.report("network", &item, busy).await.unwrap();
    world.pass(18).await;
    world.nothing("network").await;
    world.pass(4).await;
    assert_eq!(world.one("network").await.attempt, 0);
}
