//! Events expire.

use concert_model::{GroupKind, Patch, time};
use concert_store::{Clock, PageRequest, Part, Query, Store};
use serde_json::json;

use super::world::{World, by, owner};

async fn event(world: &World, name: &str) -> concert_model::Encoded {
    let now = time::seconds(world.clock.now());
    world
        .create(
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"},
            "lastTimestamp": now}),
        )
        .await
}

async fn names(world: &World) -> Vec<String> {
    let events = Query::all(GroupKind::new("", "Event"));
    let page = world.local.list(&events, &PageRequest::whole()).await.unwrap();
    page.items.iter().map(|it| it.key().name.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_event_goes_an_hour_after_it_was_last_seen() {
    let world = World::started().await;
    event(&world, "once").await;
    let again = event(&world, "again").await;
    world.clock_on(40 * 60).await;
    let patch = Patch::merge(json!({"lastTimestamp": time::seconds(world.clock.now())})).unwrap();
    world.local.patch(again.key(), Part::Main, &patch, &by()).await.unwrap();
    world.clock_on(15 * 60).await;
    assert_eq!(names(&world).await, ["again", "once"]);
    world.clock_on(15 * 60).await;
    assert_eq!(names(&world).await, ["again"]);
    world.clock_on(40 * 60).await;
    assert!(names(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_event_does_not_go_with_an_owner() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    world
        .create(json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"name": "e", "namespace": "default", "ownerReferences": [owner(&root)]}}))
        .await;
    world.delete(&root, concert_store::Propagation::Background).await;
    world.settle().await;
    assert_eq!(names(&world).await, ["e"]);
    assert_eq!(world.known(), (0, 0));
}
