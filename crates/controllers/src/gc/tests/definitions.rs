//! Definitions go after their objects.

use concert_model::condition::{self, Status};
use concert_store::{Propagation, Store};
use serde_json::json;

use super::world::{World, owner, widget_kind};

#[tokio::test(start_paused = true)]
async fn a_definition_takes_its_objects_along_and_what_they_own() {
    let world = World::started().await;
    let definition = world.define("Thing", "Namespaced").await;
    let thing = world.object("Thing", "thing", &[]).await;
    world.object("Widget", "owned", &[owner(&thing)]).await;
    world.object("Widget", "bystander", &[]).await;
    world.settle().await;
    world.delete_key(&definition, Propagation::Background).await;
    world.settle().await;
    assert!(world.local.get(&definition).await.is_err());
    assert!(world.local.kind(&widget_kind("Thing")).await.is_err());
    assert_eq!(world.names().await, ["bystander"]);
}

#[tokio::test(start_paused = true)]
async fn a_definition_waits_for_finalizers_and_says_so() {
    let world = World::started().await;
    let definition = world.define("Thing", "Namespaced").await;
    let held = world.object_in("default", "Thing", "held", &[], &["a.dev/f"]).await;
    let free = world.object_in("far", "Thing", "free", &[], &[]).await;
    world.delete_key(&definition, Propagation::Background).await;
    world.settle().await;
    assert!(!world.has(&free).await);
    let waiting = world.get(&definition).await;
    let told = condition::find(waiting.status(), "Terminating").unwrap();
    assert_eq!((told.status, told.reason.as_str()), (Status::True, "InstanceDeletionInProgress"));
    assert_eq!(told.message, "1 instances remain, with finalizers a.dev/f");
    world.settle().await;
    assert_eq!(world.get(&definition).await, waiting);
    world.release(held.key(), "a.dev/f").await;
    world.settle().await;
    assert!(world.local.get(&definition).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_was_never_accepted_takes_nothing_along() {
    let world = World::started().await;
    let widget = world.object("Widget", "one", &[]).await;
    let twin = world.create(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "twins.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "twins"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }));
    let twin = twin.await;
    world.delete(&twin, Propagation::Background).await;
    world.settle().await;
    assert!(!world.has(&twin).await);
    assert!(world.has(&widget).await);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_defined_again_is_watched_again() {
    let world = World::started().await;
    for _ in 0..2 {
        let definition = world.define("Thing", "Namespaced").await;
        let thing = world.object("Thing", "thing", &[]).await;
        world.object("Thing", "child", &[owner(&thing)]).await;
        world.object("Widget", "child", &[owner(&thing)]).await;
        world.settle().await;
        world.delete(&thing, Propagation::Foreground).await;
        world.settle().await;
        assert!(world.names().await.is_empty());
        world.delete_key(&definition, Propagation::Background).await;
        world.settle().await;
        assert!(world.local.get(&definition).await.is_err());
    }
    assert_eq!(world.known(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_definition_and_a_namespace_that_go_together_both_go() {
    let world = World::started().await;
    let definition = world.define("Thing", "Namespaced").await;
    let thing = world.object_in("far", "Thing", "thing", &[], &["a.dev/f"]).await;
    world.delete_key(&definition, Propagation::Background).await;
    world.delete_key(&super::world::namespace("far"), Propagation::Background).await;
    world.settle().await;
    world.release(thing.key(), "a.dev/f").await;
    world.settle().await;
    assert!(world.local.get(&definition).await.is_err());
    assert!(world.local.get(&super::world::namespace("far")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_name_goes_to_who_waits_for_it_when_its_owner_goes() {
    let mut world = World::new().await;
    let first = world.define("Thing", "Namespaced").await;
    let twin = async |plural: &str, kind: &str, short: &str| {
        let definition = world.create(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "shortNames": [short]},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        }));
        definition.await.key().clone()
    };
    // Two wait for the same kind, one for a short name only.
    let twins = [twin("twins", "Thing", "tw").await, twin("triplets", "Thing", "tr").await];
    let other = twin("others", "Other", "things").await;
    world.start().await;
    world.settle().await;
    let status = async |key: &concert_model::ObjectKey, kind: &str| {
        condition::find(world.get(key).await.status(), kind).unwrap().status
    };
    for waiting in twins.iter().chain([&other]) {
        assert_eq!(status(waiting, "NamesAccepted").await, Status::False);
        assert_eq!(status(waiting, "Established").await, Status::False);
    }
    world.delete_key(&first, Propagation::Background).await;
    world.settle().await;
    assert_eq!(status(&other, "Established").await, Status::True);
    let accepted = [status(&twins[0], "Established").await, status(&twins[1], "Established").await];
    let mut sorted = accepted;
    sorted.sort_by_key(|it| *it == Status::True);
    assert_eq!(sorted, [Status::False, Status::True], "exactly one of them gets it");
    let (winner, loser) = if accepted[0] == Status::True { (0, 1) } else { (1, 0) };
    world.delete_key(&twins[winner], Propagation::Background).await;
    world.settle().await;
    assert_eq!(status(&twins[loser], "Established").await, Status::True);
    assert_eq!(status(&twins[loser], "NamesAccepted").await, Status::True);
    world.object("Thing", "a", &[]).await;
}
