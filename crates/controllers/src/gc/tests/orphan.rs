//! Dependents stay and forget their owner.

use concert_store::Propagation;

use super::world::{World, blocked_owner, owner};

#[tokio::test(start_paused = true)]
async fn dependents_stay_without_their_owner() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    let other = world.object("Widget", "other", &[]).await;
    let one = world.object("Gadget", "one", &[owner(&root)]).await;
    let two = world.object("Gadget", "two", &[blocked_owner(&root), owner(&other)]).await;
    world.object("Gadget", "below", &[owner(&one)]).await;
    world.settle().await;
    world.delete(&root, Propagation::Orphan).await;
    world.settle().await;
    assert_eq!(world.names().await, ["below", "one", "two", "other"]);
    assert!(world.get(one.key()).await.owners().is_empty());
    let owners = world.get(two.key()).await.owners();
    assert_eq!(owners.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_without_dependents_just_goes() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    world.delete(&root, Propagation::Orphan).await;
    world.settle().await;
    assert!(world.names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_while_nobody_collects_is_done_at_the_start() {
    let mut world = World::new().await;
    let root = world.object("Widget", "root", &[]).await;
    let child = world.object("Gadget", "child", &[owner(&root)]).await;
    world.delete(&root, Propagation::Orphan).await;
    world.start().await;
    world.settle().await;
    assert_eq!(world.names().await, ["child"]);
    assert!(world.get(child.key()).await.owners().is_empty());
}
