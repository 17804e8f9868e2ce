//! What a restart costs: nothing.

use concert_model::inventory::{Entry, Item, names};
use concert_model::{Object, Patch};
use concert_store::{Delete, Local, Part, Store as _};
use serde_json::json;

use super::super::{Denied, Event};
use super::world::{World, by, put};

#[tokio::test(start_paused = true)]
async fn what_was_ready_is_not_run_again_unless_its_sections_have_changed() {
    let world = World::new().await;
    world.register("shoot", json!({"watches": [{"section": "network"}]})).await;
    for id in ["rt-1", "rt-2", "rt-3"] {
        world.runtime(id).await;
        world.put(id, "network", json!({"vnet_name": "a"})).await;
        world.do_well("shoot").await;
    }
    let world = world
        .restart_after(async |inventory| {
            put(&inventory, "rt-2", "network", json!({"vnet_name": "b"})).await;
        })
        .await;
    assert_eq!(world.one("shoot").await.item.to_string(), "rt-2/shoot");
}

#[tokio::test(start_paused = true)]
async fn a_change_while_nobody_listened_wakes_who_was_to_look_much_later() {
    let world = World::new().await;
    world.register("shoot", json!({"watches": [{"section": "network"}]})).await;
    world.runtime("rt-1").await;
    let item = world.one("shoot").await;
    world.report("shoot", &item, json!({"outcome": "ready", "retry_after": 3000})).await.unwrap();
    let world = world.restart().await;
    world.nothing("shoot").await;
    let write = async |inventory| put(&inventory, "rt-1", "network", json!({"vnet_name": "b"})).await;
    let world = world.restart_after(write).await;
    world.do_well("shoot").await;
}

/// A reconciler that cares for what happens in a cluster, and is ready.
async fn with_proxy() -> World {
    let world = World::new().await;
    let cares = json!({"clusterEvents": [{"group": "services", "version": "v1", "kind": "ServiceInstance"}]});
    world.register("proxy", cares).await;
    world.runtime("rt-1").await;
    world.do_well("proxy").await;
    world
}

#[tokio::test(start_paused = true)]
async fn r7_who_tells_of_an_event_before_anybody_listens_is_to_tell_again() {
    let world = with_proxy().await.restart_just_now().await;
    let event = Event {
        entry: "rt-1".into(),
        group: "services".into(),
        kind: "ServiceInstance".into(),
        namespace: "default".into(),
    };
    assert_eq!(world.running.events(std::slice::from_ref(&event)), None);
    assert!(matches!(world.running.run("rt-1", "proxy", "somebody").await, Err(Denied::NotYet)));
    assert!(matches!(world.running.halt("rt-1", "proxy", "somebody").await, Err(Denied::NotYet)));
    world.pass(1).await;
    assert_eq!(world.running.events(&[event]), Some(1));
    assert!(world.one("proxy").await.reasons.contains("cluster-event"));
}

#[tokio::test(start_paused = true)]
async fn r7_what_a_watch_sees_before_anybody_listens_wakes_all_the_same() {
    let world = with_proxy().await.restart_just_now().await;
    assert!(!world.running.0.wake_softly("rt-1", "proxy"), "nobody is there to be woken");
    assert!(!world.running.0.wake_softly("rt-1", "nobody"));
    world.pass(1).await;
    let item = world.one("proxy").await;
    assert!(item.reasons.contains("cluster-event"), "{}", item.reasons);
    world.say("proxy", &item, "ready").await;
    world.pass(60).await;
    world.nothing("proxy").await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_still_waits_and_is_woken_by_what_came_meanwhile() {
    let world = World::new().await;
    world.register("shoot", json!({})).await;
    world.runtime("rt-1").await;
    let item = world.one("shoot").await;
    let waits = json!({"outcome": "not_ready", "retry_after": 600, "waits_for": [{"section": "network"}]});
    world.report("shoot", &item, waits).await.unwrap();
    let world = world.restart().await;
    world.nothing("shoot").await;
    let write = async |inventory| put(&inventory, "rt-1", "network", json!({"vnet_name": "b"})).await;
    let world = world.restart_after(write).await;
    world.do_well("shoot").await;
}

#[tokio::test(start_paused = true)]
async fn r16_back_off_survives_a_restart() {
    let world = World::new().await;
    world.register("shoot", json!({})).await;
    world.runtime("rt-1").await;
    let item = world.one("shoot").await;
    world.report("shoot", &item, json!({"outcome": "failed", "retry_after": 100})).await.unwrap();
    let world = world.restart().await;
    world.pass(50).await;
    world.nothing("shoot").await;
    world.pass(60).await;
    assert_eq!(world.one("shoot").await.attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn results_of_leases_from_before_a_restart_change_nothing() {
    let world = World::new().await;
    world.register("shoot", json!({})).await;
    world.runtime("rt-1").await;
    let old = world.one("shoot").await;
    let world = world.restart().await;
    assert!(world.report("shoot", &old, json!({"outcome": "ready"})).await.is_err());
    let new = world.one("shoot").await;
    assert!(new.fence > old.fence, "{} {}", new.fence, old.fence);
    assert!(world.report("shoot", &old, json!({"outcome": "ready"})).await.is_err());
    world.say("shoot", &new, "ready").await;
}

#[tokio::test(start_paused = true)]
async fn an_overview_has_counts_and_what_is_slow_and_fails() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.register("shoot", json!({})).await;
    for id in ["rt-1", "rt-2"] {
        world.runtime(id).await;
    }
    for item in world.claim("network").await {
        let failed = json!({"outcome": "failed", "message": "no quota", "retry_after": 600});
        world.report("network", &item, failed).await.unwrap();
    }
    world.pass(30).await;
    let overview = world.running.overview();
    assert_eq!((overview.items["failed"], overview.items["pending"]), (2, 2));
    assert_eq!((overview.failing.len(), overview.failing[0].items), (1, 2));
    assert_eq!(&*overview.failing[0].message, "no quota");
    assert_eq!(overview.slowest.len(), 2);
    assert!(overview.slowest[0].seconds >= 30);
    assert_eq!(overview.reconcilers.len(), 2);
    let entry = world.running.entry("rt-1").await.unwrap().unwrap();
    assert_eq!(entry.items.iter().map(|it| it.state).collect::<Vec<_>>(), ["failed", "pending"]);
    assert!(world.running.entry("rt-9").await.unwrap().is_none());
    let lent = world.claim("shoot").await;
    let overview = world.running.overview();
    assert_eq!((overview.items["running"], overview.items["pending"]), (2, 0), "hosts have them");
    for item in lent {
        world.board.release("shoot", &item.item, item.fence).unwrap();
    }
    world.register("late", json!({})).await;
    world.deregister("network").await;
    let overview = world.running.overview();
    let counted = (overview.items["failed"], overview.items["pending"]);
    assert_eq!(counted, (2, 4), "what network did takes nothing from what the others still have to do");
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_was_made_again_meanwhile_is_not_taken_for_the_one_before() {
    let world = World::new().await;
    world.register("network", json!({})).await;
    world.runtime("rt-1").await;
    world.do_well("network").await;
    let again = async |inventory: Local| {
        let key = names::entry_key("rt-1");
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        inventory.patch(&key, Part::Main, &free, &by()).await.unwrap();
        inventory.delete(&key, &Delete::default(), &by()).await.unwrap();
        let mut object = Object::new(&names::versioned(&names::entry_kind()), "", "rt-1");
        object.set("spec", json!({"kind": "runtime"}));
        inventory.create(object, &by()).await.unwrap();
    };
    let world = world.restart_after(again).await;
    assert!(!world.is_ready("rt-1").await, "that was another one");
    world.do_well("network").await;
    let (item, entry) =
        (world.item("rt-1", "network").await.unwrap(), world.get_entry("rt-1").await.unwrap());
    assert!(Item(&item).is_of(&Entry(&entry).uid()));
    assert!(world.is_ready("rt-1").await);
}
