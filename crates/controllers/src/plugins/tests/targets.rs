//! Workers and types that come and go while everything runs.

use concert_engine::workers::Ask;
use concert_model::ObjectKey;
use concert_model::no8s::names;
use concert_store::{Delete, Store};
use serde_json::json;

use super::super::worker_kind;
use super::world::{World, by};

#[tokio::test(start_paused = true)]
async fn types_and_workers_come_and_go() {
    let world = World::new().await;
    assert_eq!(world.running.controllers(), ["plugins/dns_record/DnsRecord.no8s.concert.dev"]);
    world.define("DnsRecord", "v2.no8s.concert.dev", "v2").await;
    world.define("Other", "no8s.concert.dev", "v1").await;
    world.pass(1).await;
    assert_eq!(world.running.controllers().len(), 2, "both versions, and nothing else");
    world.create(1).await;
    let lost = world.one().await;
    let worker = ObjectKey::cluster(worker_kind(), names::worker_object("dns_record"));
    world.store.delete(&worker, &Delete::default(), &by()).await.unwrap();
    world.pass(1).await;
    assert!(world.running.controllers().is_empty());
    assert!(world.finish(&lost, Some(true)).await.is_err());
    world.register("dns_record", json!([{"resourceType": "DnsRecord", "version": "v1"}])).await;
    world.pass(1).await;
    let again = world.one().await;
    assert!(again.fence > lost.fence);
    world.do_well(&again).await.unwrap();
    world.running.stop(false).await;
    assert!(world.engine.controllers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_owner_was_to_release_can_be_deleted() {
    let world = World::new().await;
    for (id, finalizers) in [("1", json!(["earlier", "ext"])), ("2", json!(["dns_record"]))] {
        world
            .create_object(json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord",
                "metadata": {"name": format!("r{id}"), "labels": {names::ID: id},
                    "annotations": {names::FINALIZER: "earlier"}, "finalizers": finalizers},
                "spec": {"value": 1}}))
            .await;
    }
    world.delete(1).await;
    world.delete(2).await;
    world.pass(1).await;
    for claimed in world.claim("h", 10).await {
        world.finish(&claimed, Some(true)).await.unwrap();
    }
    assert!(!world.is_gone(1).await, "somebody else holds it");
    assert!(world.is_gone(2).await, "it has the finalizer of its owner now, and no other");
    world.set_finalizers(1, json!(["earlier"])).await;
    world.pass(1).await;
    world.finish(&world.one().await, Some(true)).await.unwrap();
    assert!(world.is_gone(1).await);
}

#[tokio::test(start_paused = true)]
async fn a_resource_with_an_action_goes_to_who_runs_it() {
    let world = World::new().await;
    world.register("actions", json!([{"action": "exec"}, {"action": "http_api"}])).await;
    world
        .create_object(json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord",
            "metadata": {"name": "r7", "labels": {names::ID: "7", names::ACTION: "exec"}, "finalizers": ["exec"]},
            "spec": {}, "plugin": {"action": "exec"}}))
        .await;
    world.pass(1).await;
    assert!(world.claim("h", 1).await.is_empty());
    let ask = Ask { host: "a".into(), limit: 1, ..Ask::default() };
    let claimed = world.board.claim("actions", ask).await;
    assert_eq!((claimed.len(), &*claimed[0].item), (1, "7"));
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_worker_names_its_hosts_and_is_written_only_when_that_changes() {
    let world = World::new().await;
    let key = ObjectKey::cluster(worker_kind(), names::worker_object("dns_record"));
    let status = async || world.store.get(&key).await.unwrap().decode().status().clone();
    assert_eq!(status().await, json!({"phase": "NotReady", "hosts": []}));
    world.claim("one", 1).await;
    world.pass(16).await;
    let ready = json!({"phase": "Ready", "hosts": [{"name": "one", "phase": "Ready"}]});
    assert_eq!(status().await, ready);
    let before = world.store.newest().await.unwrap();
    for _ in 0..4 {
        world.board.touch("dns_record", &"one".into());
        world.pass(16).await;
    }
    assert_eq!(world.store.newest().await.unwrap(), before);
    world.pass(61 + 16).await;
    let silent = json!({"phase": "NotReady", "hosts": [{"name": "one", "phase": "NotReady"}]});
    assert_eq!(status().await, silent);
}
