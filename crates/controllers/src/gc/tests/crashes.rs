//! A crash between any two writes, and a start after it, ends in the same state.

use concert_store::{Propagation, Store};

use super::world::{World, blocked_owner, namespace, owner};

/// Writes after which every life must have come to its end.
const WRITES_MAX: u64 = 40;

/// Runs what `prepare` asked for with a crash at each write in turn, with and without the write done.
async fn crash_everywhere(prepare: impl AsyncFn(&World), check: impl AsyncFn(&World)) {
    for loses_answers in [false, true] {
        let mut writes = 0;
        loop {
            let mut world = World::new().await;
            prepare(&world).await;
            world.shaky.light_fuse(writes, loses_answers);
            world.start().await;
            world.settle().await;
            world.stop().await;
            let was_hit = world.shaky.mend();
            world.start().await;
            world.settle().await;
            check(&world).await;
            world.stop().await;
            if !was_hit {
                break;
            }
            writes += 1;
            assert!(writes < WRITES_MAX, "it writes and writes");
        }
        assert!(writes > 1, "nothing was to do");
    }
}

#[tokio::test(start_paused = true)]
async fn in_the_background() {
    let prepare = async |world: &World| {
        let root = world.object("Widget", "root", &[]).await;
        let other = world.object("Widget", "other", &[]).await;
        let branch = world.object("Gadget", "branch", &[owner(&root)]).await;
        world.object("Widget", "leaf", &[owner(&branch)]).await;
        world.object("Widget", "shared", &[owner(&root), owner(&other)]).await;
        world.delete(&root, Propagation::Background).await;
    };
    crash_everywhere(prepare, async |world: &World| {
        assert_eq!(world.names().await, ["other", "shared"]);
        assert_eq!(world.known(), (1, 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground() {
    let prepare = async |world: &World| {
        let root = world.object("Widget", "root", &[]).await;
        let branch = world.object("Gadget", "branch", &[blocked_owner(&root)]).await;
        world.object("Widget", "leaf", &[blocked_owner(&branch)]).await;
        world.object("Widget", "loose", &[owner(&root)]).await;
        world.delete(&root, Propagation::Foreground).await;
    };
    crash_everywhere(prepare, async |world: &World| {
        assert!(world.names().await.is_empty(), "{:?}", world.names().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn while_orphaning() {
    let prepare = async |world: &World| {
        let root = world.object("Widget", "root", &[]).await;
        world.object("Gadget", "one", &[owner(&root)]).await;
        world.object("Gadget", "two", &[blocked_owner(&root)]).await;
        world.delete(&root, Propagation::Orphan).await;
    };
    crash_everywhere(prepare, async |world: &World| {
        assert_eq!(world.names().await, ["one", "two"]);
        assert_eq!(world.known(), (0, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn while_a_namespace_goes() {
    let prepare = async |world: &World| {
        let root = world.object_in("far", "Widget", "root", &[], &[]).await;
        world.object_in("far", "Gadget", "child", &[owner(&root)], &[]).await;
        world.delete(&root, Propagation::Foreground).await;
        world.delete_key(&namespace("far"), Propagation::Background).await;
    };
    crash_everywhere(prepare, async |world: &World| {
        assert!(world.names().await.is_empty(), "{:?}", world.names().await);
        assert!(world.local.get(&namespace("far")).await.is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn while_a_definition_goes() {
    let prepare = async |world: &World| {
        let definition = world.define("Thing", "Namespaced").await;
        let thing = world.object("Thing", "thing", &[]).await;
        world.object("Thing", "second", &[]).await;
        world.object("Widget", "owned", &[owner(&thing)]).await;
        world.delete_key(&definition, Propagation::Background).await;
    };
    crash_everywhere(prepare, async |world: &World| {
        assert!(world.names().await.is_empty(), "{:?}", world.names().await);
        assert!(world.local.kind(&super::world::widget_kind("Thing")).await.is_err());
    })
    .await;
}
