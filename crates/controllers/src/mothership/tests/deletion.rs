//! Entries that are paused, stopped, or go.

use concert_model::{ObjectKey, Patch};
use concert_store::{Part, Store as _};
use serde_json::json;

use super::world::{World, by};
use crate::plugins::worker_kind;

#[tokio::test(start_paused = true)]
async fn an_entry_that_goes_is_held_until_each_who_worked_on_it_is_done() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.register("shoot", json!({})).await;
    world.runtime("rt-1").await;
    world.do_well("network").await;
    world.do_well("shoot").await;
    world.register("never", json!({})).await;
    world.delete_entry("rt-1").await;
    assert_eq!(world.phase("rt-1").await, "Deleting");
    world.nothing("never").await;
    let network = world.one("network").await;
    assert_eq!(network.context["deleting"], true);
    let said = json!({"outcome": "not_ready", "message": "the shoot is still there", "retry_after": 5});
    world.report("network", &network, said).await.unwrap();
    world.do_well("shoot").await;
    assert!(world.get_entry("rt-1").await.is_some());
    world.pass(6).await;
    world.do_well("network").await;
    assert!(world.get_entry("rt-1").await.is_none());
    assert!(world.item("rt-1", "network").await.is_none());
    world.pass(3_600).await;
    world.nothing("network").await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_nobody_worked_on_goes_at_once() {
    let world = World::new().await;
    world.runtime("rt-1").await;
    world.delete_entry("rt-1").await;
    assert!(world.get_entry("rt-1").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn who_is_not_registered_any_more_still_holds_what_it_worked_on() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.runtime("rt-1").await;
    world.do_well("network").await;
    world.deregister("network").await;
    world.delete_entry("rt-1").await;
    assert_eq!(world.phase("rt-1").await, "Deleting");
    let message = world.get_entry("rt-1").await.unwrap().status()["message"].clone();
    assert_eq!(message, "network is not registered, and has worked on it");
    world.register("network", json!({})).await;
    world.do_well("network").await;
    assert!(world.get_entry("rt-1").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn nobody_works_on_an_entry_that_is_paused() {
    let world = World::new().await;
    world.register("network", json!({"watches": [{"section": "spec"}]})).await;
    world.runtime("rt-1").await;
    world.do_well("network").await;
    world.patch_entry("rt-1", json!({"spec": {"paused": true}})).await;
    world.nothing("network").await;
    assert_eq!((&*world.state("rt-1", "network").await, &*world.phase("rt-1").await), ("paused", "Paused"));
    world.put("rt-1", "spec", json!({"a": 1})).await;
    world.pass(7_200).await;
    world.nothing("network").await;
    world.patch_entry("rt-1", json!({"spec": {"paused": false}})).await;
    world.do_well("network").await;
    assert!(world.is_ready("rt-1").await);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_stopped_is_taken_from_its_host_and_runs_when_asked_for() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.register("shoot", json!({})).await;
    world.runtime("rt-1").await;
    let item = world.one("network").await;
    let next = world.running.halt("rt-1", "network", "somebody").await.unwrap().unwrap();
    assert_eq!((&*next.item.0, next.fence), (item.context["item"].as_str().unwrap(), item.fence + 1));
    assert_eq!(world.running.halt("rt-1", "network", "somebody").await.unwrap(), None, "nobody has it");
    world.settle().await;
    assert!(world.report("network", &item, json!({"outcome": "ready"})).await.is_err());
    world.nothing("network").await;
    assert_eq!((&*world.state("rt-1", "network").await, &*world.phase("rt-1").await), ("stopped", "Stopped"));
    world.do_well("shoot").await;
    let world = world.restart().await;
    world.nothing("network").await;
    world.deregister("network").await;
    assert!(world.running.run("rt-1", "network", "somebody").await.is_err(), "nobody is there to run it");
    world.register("network", json!({})).await;
    world.nothing("network").await;
    world.running.run("rt-1", "network", "somebody").await.unwrap();
    world.do_well("network").await;
    assert!(world.is_ready("rt-1").await);
    assert!(world.running.run("rt-9", "network", "somebody").await.is_err());
    assert!(world.running.halt("rt-1", "nobody", "somebody").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_went_by_force_leaves_nothing_behind() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.runtime("rt-1").await;
    world.do_well("network").await;
    world.patch_entry("rt-1", json!({"metadata": {"finalizers": []}})).await;
    world.delete_entry("rt-1").await;
    world.settle().await;
    assert!(world.item("rt-1", "network").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn late_news_of_an_item_do_not_set_it_going_again() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.runtime("rt-1").await;
    world.do_well("network").await;
    let before = world.item("rt-1", "network").await.unwrap();
    world.running.halt("rt-1", "network", "somebody").await.unwrap();
    assert!(!world.running.0.items.note(&before), "it has been stopped since");
    world.running.0.wake("rt-1", "network", concert_engine::Lane::User, "asked");
    world.settle().await;
    world.nothing("network").await;
}

#[tokio::test(start_paused = true)]
async fn who_handles_a_kind_no_longer_still_undoes_what_it_did() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.runtime("rt-1").await;
    world.do_well("network").await;
    let handles = Patch::Merge(json!({"spec": {"handles": [{"entryKind": "byoc"}]}}));
    let key = ObjectKey::cluster(worker_kind(), "network");
    world.store.patch(&key, Part::Main, &handles, &by()).await.unwrap();
    world.pass(3).await;
    world.patch_entry("rt-1", json!({"spec": {"tenant": "acme"}})).await;
    world.nothing("network").await;
    world.delete_entry("rt-1").await;
    assert_eq!(world.phase("rt-1").await, "Deleting");
    let item = world.one("network").await;
    assert_eq!(item.context["deleting"], true);
    world.say("network", &item, "ready").await;
    assert!(world.get_entry("rt-1").await.is_none());
}
