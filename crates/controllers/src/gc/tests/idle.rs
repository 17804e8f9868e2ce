//! When nothing happens, nothing is done.

use super::world::{World, owner};

#[tokio::test(start_paused = true)]
async fn an_idle_hour_writes_nothing_and_only_lists_events() {
    let world = World::started().await;
    let root = world.object("Widget", "root", &[]).await;
    world.object("Gadget", "child", &[owner(&root)]).await;
    world.settle().await;
    let (position, reads) = (world.position().await, world.shaky.reads.get());
    world.clock_on(60 * 60).await;
    assert_eq!(world.position().await, position);
    assert_eq!(world.shaky.reads.get() - reads, 12);
}

#[tokio::test(start_paused = true)]
async fn objects_without_owners_leave_nothing_behind() {
    let mut world = World::new().await;
    for i in 0..1_200 {
        world.object("Widget", &format!("w{i}"), &[]).await;
    }
    world.start().await;
    assert_eq!(world.known(), (0, 0));
    let root = world.object("Gadget", "root", &[]).await;
    world.object("Gadget", "child", &[owner(&root)]).await;
    world.settle().await;
    assert_eq!(world.known(), (1, 1));
    world.stop().await;
}
