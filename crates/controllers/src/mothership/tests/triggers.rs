//! What wakes a reconciler, and what does not.

use concert_model::inventory::names;
use concert_store::Store as _;
use serde_json::json;

use super::super::Event;
use super::super::vocabulary::RECONCILE_AT;
use super::world::{World, by};

fn shoot() -> serde_json::Value {
    json!({"watches": [{"section": "network", "path": "/vnet_name"}]})
}

#[tokio::test(start_paused = true)]
async fn r6_a_section_write_wakes_who_declared_a_watch_on_what_it_changed() {
    let world = World::new().await;
    world.register("shoot", shoot()).await;
    world.register("other", json!({"watches": [{"section": "spec"}]})).await;
    world.runtime("rt-1").await;
    world.runtime("rt-2").await;
    for worker in ["shoot", "other"] {
        for item in world.claim(worker).await {
            world.say(worker, &item, "ready").await;
        }
    }
    world.put("rt-1", "network", json!({"cidr": "10.0.0.0/8"})).await;
    world.nothing("shoot").await;
    world.put("rt-1", "network", json!({"cidr": "10.0.0.0/8", "vnet_name": "a"})).await;
    let item = world.one("shoot").await;
    assert_eq!(&*item.item, "rt-1/shoot");
    assert!(item.reasons.contains("section:network"), "{}", item.reasons);
    world.say("shoot", &item, "ready").await;
    world.pass(5).await;
    world.put("rt-1", "network", json!({"cidr": "x", "vnet_name": "a"})).await;
    world.nothing("shoot").await;
    world.nothing("other").await;
}

#[tokio::test(start_paused = true)]
async fn r5_a_write_that_changes_no_contents_wakes_nobody() {
    let world = World::new().await;
    world.register("shoot", json!({"watches": [{"section": "network"}]})).await;
    world.runtime("rt-1").await;
    world.put("rt-1", "network", json!({"vnet_name": "a"})).await;
    world.do_well("shoot").await;
    world.pass(20).await;
    let mut section = world.inventory.get(&names::section_key("rt-1", "network")).await.unwrap().decode();
    section.set_label("seen", "true");
    world.inventory.update(section, &by()).await.unwrap();
    world.settle().await;
    world.nothing("shoot").await;
    world.put("rt-1", "network", json!({"vnet_name": "b"})).await;
    world.do_well("shoot").await;
}

#[tokio::test(start_paused = true)]
async fn r6_a_watch_on_a_value_does_not_mind_what_was_there_before_it() {
    let world = World::new().await;
    world.runtime("rt-1").await;
    world.put("rt-1", "network", json!({"vnet_name": "a"})).await;
    world.register("shoot", shoot()).await;
    world.do_well("shoot").await;
    world.pass(5).await;
    world.put("rt-1", "network", json!({"vnet_name": "a", "cidr": "x"})).await;
    world.nothing("shoot").await;
    world.put("rt-1", "network", json!({"vnet_name": "b"})).await;
    world.do_well("shoot").await;
}

#[tokio::test(start_paused = true)]
async fn r7_an_event_of_a_target_cluster_only_wakes() {
    let world = World::new().await;
    let cares = json!({"clusterEvents": [{"group": "services", "version": "v1", "kind": "ServiceInstance"}]});
    world.register("connectivity-proxy", cares).await;
    world.register("other", json!({})).await;
    world.runtime("rt-1").await;
    world.do_well("connectivity-proxy").await;
    world.do_well("other").await;
    let event = |entry: &str, kind: &str| Event {
        entry: entry.into(),
        group: "services".into(),
        kind: kind.into(),
        namespace: "default".into(),
    };
    let events = [event("rt-1", "ServiceInstance"), event("rt-1", "Other"), event("rt-9", "ServiceInstance")];
    assert_eq!(world.running.events(&events), Some(1));
    let item = world.one("connectivity-proxy").await;
    assert!(item.reasons.contains("cluster-event"), "{}", item.reasons);
    world.say("connectivity-proxy", &item, "ready").await;
    world.nothing("other").await;
}

#[tokio::test(start_paused = true)]
async fn an_annotation_of_an_entry_asks_all_its_reconcilers_for_a_look() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.register("shoot", json!({})).await;
    world.runtime("rt-1").await;
    let annotate = async |name: &str, value: &str| {
        world.patch_entry("rt-1", json!({"metadata": {"annotations": {name: value}}})).await;
    };
    for reconciler in ["network", "shoot"] {
        world.do_well(reconciler).await;
    }
    annotate(RECONCILE_AT, "2026-11-17T12:00:00Z").await;
    for reconciler in ["network", "shoot"] {
        world.do_well(reconciler).await;
    }
    annotate("example.com/other", "a").await;
    annotate(RECONCILE_AT, "2026-11-17T12:00:00Z").await;
    for reconciler in ["network", "shoot"] {
        world.nothing(reconciler).await;
    }
}

#[tokio::test(start_paused = true)]
async fn r8_what_is_ready_is_looked_at_by_time_and_that_writes_nothing() {
    let world = World::new().await;
    world.register("network", json!({"resyncSeconds": 300})).await;
    world.runtime("rt-1").await;
    world.do_well("network").await;
    assert!(world.is_ready("rt-1").await);
    let before = (world.revision().await, world.inventory_revision().await);
    for _ in 0..5 {
        world.pass(330).await;
        let item = world.one("network").await;
        assert_eq!(item.reasons.to_string(), "poll");
        world.say("network", &item, "ready").await;
    }
    assert_eq!((world.revision().await, world.inventory_revision().await), before);
}

#[tokio::test(start_paused = true)]
async fn r14_many_writes_become_one_run_at_once_and_one_more() {
    let world = World::new().await;
    world.register("shoot", shoot()).await;
    world.runtime("rt-1").await;
    world.do_well("shoot").await;
    world.pass(60).await;
    world.put("rt-1", "network", json!({"vnet_name": 0})).await;
    world.do_well("shoot").await;
    for number in 1..40 {
        world.put("rt-1", "network", json!({"vnet_name": number})).await;
    }
    world.nothing("shoot").await;
    world.pass(2).await;
    let item = world.one("shoot").await;
    assert!(item.reasons.to_string().ends_with("section:network ×39"), "{}", item.reasons);
    world.say("shoot", &item, "ready").await;
    world.pass(60).await;
    world.nothing("shoot").await;
}

#[tokio::test(start_paused = true)]
async fn r14_a_change_while_it_runs_gives_exactly_one_more_run() {
    let world = World::new().await;
    world.register("shoot", shoot()).await;
    world.runtime("rt-1").await;
    let item = world.one("shoot").await;
    for number in 0..5 {
        world.put("rt-1", "network", json!({"vnet_name": number})).await;
    }
    world.nothing("shoot").await;
    world.say("shoot", &item, "ready").await;
    world.do_well("shoot").await;
    world.pass(60).await;
    world.nothing("shoot").await;
}

#[tokio::test(start_paused = true)]
async fn r14_what_a_user_asks_for_goes_before_events_and_those_before_looks() {
    let world = World::new().await;
    world.register("shoot", json!({"watches": [{"section": "network"}], "resyncSeconds": 60})).await;
    for id in ["rt-1", "rt-2", "rt-3"] {
        world.runtime(id).await;
        world.do_well("shoot").await;
    }
    world.pass(70).await;
    world.put("rt-2", "network", json!({})).await;
    world.running.run("rt-3", "shoot", "somebody").await.unwrap();
    let order: Vec<String> = world.claim("shoot").await.iter().map(|it| it.item.to_string()).collect();
    assert_eq!(order, ["rt-3/shoot", "rt-2/shoot", "rt-1/shoot"]);
}

#[tokio::test(start_paused = true)]
async fn r17_tenants_take_turns() {
    let world = World::new().await;
    for number in 0..20 {
        world.entry(&format!("big-{number:02}"), json!({"kind": "runtime", "tenant": "big"})).await;
    }
    world.entry("small-1", json!({"kind": "runtime", "tenant": "small"})).await;
    world.register("network", json!({})).await;
    let claimed = world.claim("network").await;
    let place = claimed.iter().position(|it| &*it.item == "small-1/network").unwrap();
    assert!(place <= 1, "it does not wait for the twenty of the other: {place}");
}

#[tokio::test(start_paused = true)]
async fn r17_a_reconciler_has_no_more_than_it_may() {
    let world = World::new().await;
    for number in 0..10 {
        world.runtime(&format!("rt-{number}")).await;
    }
    world.register("network", json!({"concurrency": 3})).await;
    assert_eq!(world.claim("network").await.len(), 3);
    world.nothing("network").await;
}

#[tokio::test(start_paused = true)]
async fn only_entries_of_the_kinds_that_it_handles_are_lent() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.entry("byoc-1", json!({"kind": "byoc"})).await;
    world.put("byoc-1", "network", json!({})).await;
    world.nothing("network").await;
    assert_eq!(world.phase("byoc-1").await, "Pending");
    world.register("both", json!({"handles": [{"entryKind": "runtime"}, {"entryKind": "byoc"}]})).await;
    world.do_well("both").await;
    assert!(world.is_ready("byoc-1").await);
}
