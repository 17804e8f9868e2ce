//! Dependents go before their owner.

use concert_model::{Encoded, Object};
use concert_store::{Propagation, Store};
use serde_json::{Value, json};

use super::world::{World, blocked_owner, by, owner};

async fn set_owners(world: &World, object: &Encoded, owners: &[Value]) {
    let mut changed: Object = world.get(object.key()).await;
    changed.set_metadata("ownerReferences", json!(owners));
    world.local.update(changed, &by()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_owner_waits_for_those_that_block_it() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    let slow = world.object_in("default", "Gadget", "slow", &[blocked_owner(&root)], &["a.dev/f"]).await;
    world.object("Gadget", "quick", &[blocked_owner(&root)]).await;
    world.settle().await;
    world.delete(&root, Propagation::Foreground).await;
    world.settle().await;
    assert_eq!(world.names().await, ["(slow)", "(root)"]);
    world.release(slow.key(), "a.dev/f").await;
    world.settle().await;
    assert!(world.names().await.is_empty());
    assert_eq!(world.known(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_owner_does_not_wait_for_those_that_do_not_block_it() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    world.object_in("default", "Gadget", "slow", &[owner(&root)], &["a.dev/f"]).await;
    world.settle().await;
    world.delete(&root, Propagation::Foreground).await;
    world.settle().await;
    assert_eq!(world.names().await, ["(slow)"]);
}

#[tokio::test(start_paused = true)]
async fn a_tree_goes_from_its_leaves() {
    let world = World::started().await;
    let root = world.object("ClusterWidget", "root", &[]).await;
    let branch = world.object("Gadget", "branch", &[blocked_owner(&root)]).await;
    let leaf = world.object_in("default", "Widget", "leaf", &[blocked_owner(&branch)], &["a.dev/f"]).await;
    world.settle().await;
    world.delete(&root, Propagation::Foreground).await;
    world.settle().await;
    assert_eq!(world.names().await, ["(root)", "(branch)", "(leaf)"]);
    world.release(leaf.key(), "a.dev/f").await;
    world.settle().await;
    assert!(world.names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_another_owner_keeps_is_let_go_of() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    let other = world.object("Widget", "other", &[]).await;
    let shared = world.object("Gadget", "shared", &[blocked_owner(&root), owner(&other)]).await;
    world.settle().await;
    world.delete(&root, Propagation::Foreground).await;
    world.settle().await;
    assert_eq!(world.names().await, ["shared", "other"]);
    assert_eq!(world.get(shared.key()).await.owners().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dependent_that_comes_or_stops_blocking_meanwhile_counts() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    let first = world.object_in("default", "Gadget", "first", &[blocked_owner(&root)], &["a.dev/f"]).await;
    world.settle().await;
    world.delete(&root, Propagation::Foreground).await;
    world.settle().await;
    let late = world.object_in("default", "Gadget", "late", &[blocked_owner(&root)], &["a.dev/f"]).await;
    world.settle().await;
    world.release(first.key(), "a.dev/f").await;
    world.settle().await;
    assert_eq!(world.names().await, ["(late)", "(root)"]);
    set_owners(&world, &late, &[owner(&root)]).await;
    world.settle().await;
    assert_eq!(world.names().await, ["(late)"]);
}

#[tokio::test(start_paused = true)]
async fn other_finalizers_of_the_owner_are_left_alone() {
    let world = World::started().await;
    let root = world.object_in("default", "Widget", "root", &[], &["a.dev/f"]).await;
    world.object("Gadget", "child", &[blocked_owner(&root)]).await;
    world.delete(&root, Propagation::Foreground).await;
    world.settle().await;
    assert_eq!(world.names().await, ["(root)"]);
    assert_eq!(world.get(root.key()).await.finalizers(), ["a.dev/f"]);
}

#[tokio::test(start_paused = true)]
async fn circles_end() {
    for length in 1..5 {
        let world = World::started().await;
        let mut all = vec![world.object("Widget", "w0", &[]).await];
        for i in 1..length {
            let before = blocked_owner(&all[i - 1]);
            all.push(world.object("Widget", &format!("w{i}"), &[before]).await);
        }
        set_owners(&world, &all[0], &[blocked_owner(&all[length - 1])]).await;
        world.settle().await;
        assert_eq!(world.names().await.len(), length);
        world.delete(&all[0], Propagation::Foreground).await;
        world.settle().await;
        assert!(world.names().await.is_empty(), "{length}: {:?}", world.names().await);
    }
}

#[tokio::test(start_paused = true)]
async fn circles_end_even_if_everybody_in_them_is_deleted_at_once() {
    let mut world = World::new().await;
    let one = world.object("Widget", "one", &[]).await;
    let two = world.object("Gadget", "two", &[blocked_owner(&one)]).await;
    let three = world.object("Widget", "three", &[blocked_owner(&two)]).await;
    set_owners(&world, &one, &[blocked_owner(&three)]).await;
    for object in [&one, &two, &three] {
        world.delete(object, Propagation::Foreground).await;
    }
    world.start().await;
    world.settle().await;
    assert!(world.names().await.is_empty(), "{:?}", world.names().await);
}

#[tokio::test(start_paused = true)]
async fn a_circle_waits_for_what_hangs_on_it() {
    let world = World::started().await;
    let one = world.object("Widget", "one", &[]).await;
    let two = world.object("Widget", "two", &[blocked_owner(&one)]).await;
    let slow = world.object_in("default", "Gadget", "slow", &[blocked_owner(&one)], &["a.dev/f"]).await;
    set_owners(&world, &one, &[blocked_owner(&two)]).await;
    world.settle().await;
    world.delete(&one, Propagation::Foreground).await;
    world.settle().await;
    assert!(world.has(&one).await);
    world.release(slow.key(), "a.dev/f").await;
    world.settle().await;
    assert!(world.names().await.is_empty(), "{:?}", world.names().await);
}
