//! Dependents go after their last owner.

use concert_model::ObjectKey;
use concert_store::{Propagation, Store};
use serde_json::json;

use super::world::{World, by, owner, widget_kind};

#[tokio::test(start_paused = true)]
async fn a_whole_tree_goes_after_its_root() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    let branch = world.object("Gadget", "branch", &[owner(&root)]).await;
    world.object("Widget", "leaf", &[owner(&branch)]).await;
    world.object("Widget", "bystander", &[]).await;
    world.settle().await;
    assert_eq!(world.names().await, ["branch", "bystander", "leaf", "root"]);
    world.delete(&root, Propagation::Background).await;
    world.settle().await;
    assert_eq!(world.names().await, ["bystander"]);
    assert_eq!(world.known(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_was_left_behind_while_nobody_collected_goes_at_the_start() {
    let mut world = World::new().await;
    let root = world.object("Widget", "root", &[]).await;
    world.object("Gadget", "orphan", &[owner(&root)]).await;
    world.delete(&root, Propagation::Background).await;
    world.settle().await;
    assert_eq!(world.names().await, ["orphan"]);
    world.start().await;
    world.settle().await;
    assert!(world.names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_owner_of_several_is_enough_to_stay() {
    let world = World::started().await;
    let (one, two) = (world.object("Widget", "one", &[]).await, world.object("Gadget", "two", &[]).await);
    let child = world.object("Widget", "child", &[owner(&one), owner(&two)]).await;
    world.settle().await;
    world.delete(&one, Propagation::Background).await;
    world.settle().await;
    let owners = world.get(child.key()).await.owners();
    assert_eq!(owners.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["two"]);
    world.delete(&two, Propagation::Background).await;
    world.settle().await;
    assert!(world.names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_was_made_anew_is_another_one() {
    let world = World::started().await;
    let first = world.object("Widget", "root", &[]).await;
    world.object("Widget", "old", &[owner(&first)]).await;
    world.delete(&first, Propagation::Background).await;
    let second = world.object("Widget", "root", &[]).await;
    world.object("Widget", "new", &[owner(&second)]).await;
    world.settle().await;
    assert_eq!(world.names().await, ["new", "root"]);
}

#[tokio::test(start_paused = true)]
async fn what_names_an_owner_that_never_was_goes() {
    let world = World::started().await;
    let first = world.object("Widget", "root", &[]).await;
    let mut reference = owner(&first);
    reference["uid"] = json!("11111111-2222-4333-8444-555555555555");
    world.object("Widget", "child", &[reference]).await;
    world.settle().await;
    assert_eq!(world.names().await, ["root"]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_another_namespace_deletes_nothing() {
    let world = World::started().await;
    let far = world.object_in("far", "Widget", "root", &[], &[]).await;
    let child = world.object("Widget", "child", &[owner(&far)]).await;
    world.settle().await;
    assert!(world.has(&child).await);
    world.delete(&far, Propagation::Background).await;
    world.settle().await;
    assert_eq!(world.names().await, ["child"]);
    let far = world.object_in("far", "Widget", "root", &[], &[]).await;
    world.object("Gadget", "other", &[owner(&far)]).await;
    for propagation in [Propagation::Foreground, Propagation::Orphan] {
        let far = world.object_in("far", "Widget", "again", &[], &[]).await;
        let child = world.object("Gadget", "again", &[owner(&far)]).await;
        world.settle().await;
        world.delete(&far, propagation).await;
        world.settle().await;
        assert_eq!((world.has(&far).await, world.has(&child).await), (false, true), "{propagation:?}");
        assert_eq!(world.get(child.key()).await.owners().len(), 1);
        world.delete(&child, Propagation::Background).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_inside_of_a_namespace_cannot_own_what_is_outside() {
    let world = World::started().await;
    let inside = world.object("Widget", "inside", &[]).await;
    world.object("ClusterWidget", "outside", &[owner(&inside)]).await;
    world.settle().await;
    world.delete(&inside, Propagation::Background).await;
    world.settle().await;
    assert_eq!(world.names().await, ["outside"]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_outside_owns_in_every_namespace() {
    let world = World::started().await;
    let outside = world.object("ClusterWidget", "outside", &[]).await;
    world.object("Widget", "near", &[owner(&outside)]).await;
    world.object_in("far", "Widget", "far", &[owner(&outside)], &[]).await;
    world.settle().await;
    world.delete(&outside, Propagation::Background).await;
    world.settle().await;
    assert!(world.names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_a_kind_that_is_not_served_deletes_nothing() {
    let world = World::started().await;
    let reference = json!({"apiVersion": "other.dev/v1", "kind": "Thing", "name": "a", "uid": "u"});
    world.object("Widget", "child", &[reference]).await;
    world.settle().await;
    assert_eq!(world.names().await, ["child"]);
}

#[tokio::test(start_paused = true)]
async fn finalizers_are_waited_for_and_what_they_keep_is_not_asked_twice() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    let child = world.object_in("default", "Widget", "child", &[owner(&root)], &["a.dev/f"]).await;
    world.delete(&root, Propagation::Background).await;
    world.settle().await;
    let waiting = world.get(child.key()).await;
    assert!(waiting.deleted_at().is_some());
    world.settle().await;
    assert_eq!(world.get(child.key()).await, waiting);
    world.release(child.key(), "a.dev/f").await;
    assert!(!world.has(&child).await);
}

#[tokio::test(start_paused = true)]
async fn owners_that_went_unseen_are_missed() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    world.object("Gadget", "child", &[owner(&root)]).await;
    world.settle().await;
    world.shaky.cut();
    world.delete(&root, Propagation::Background).await;
    world.settle().await;
    assert_eq!(world.names().await, ["child"]);
    world.shaky.connect();
    world.settle().await;
    assert!(world.names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn kinds_that_come_later_are_collected_too() {
    let world = World::started().await;
    world.define("Late", "Namespaced").await;
    let late = world.object("Late", "late", &[]).await;
    world.object("Widget", "child", &[owner(&late)]).await;
    world.settle().await;
    assert_eq!(world.names().await, ["child"]);
    world.delete(&late, Propagation::Background).await;
    world.settle().await;
    assert!(world.names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_given_later_is_looked_at() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    let child = world.object("Widget", "child", &[]).await;
    world.settle().await;
    let mut changed = world.get(child.key()).await;
    changed.set_metadata("ownerReferences", json!([owner(&root)]));
    world.local.update(changed, &by()).await.unwrap();
    world.settle().await;
    world.delete(&root, Propagation::Background).await;
    world.settle().await;
    let key = ObjectKey::namespaced(widget_kind("Widget"), "default", "child");
    assert!(world.local.get(&key).await.is_err());
}
