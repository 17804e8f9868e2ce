//! Many items, several hosts, and what becomes of those that die or freeze.

use std::collections::BTreeMap;

use concert_engine::workers::Claimed;
use concert_model::no8s::Phase;
use concert_store::Error;

use super::world::World;

const ITEMS: u64 = 1000;

/// Works until nothing is due. Says what it did, by item and generation.
async fn work(world: &World, host: &str, done: &mut BTreeMap<(u64, i64), u32>) {
    loop {
        let claimed = world.claim(host, 10).await;
        if claimed.is_empty() {
            return;
        }
        for item in &claimed {
            world.do_well(item).await.unwrap();
            *done.entry((item.item.parse().unwrap(), item.object.generation())).or_default() += 1;
        }
    }
}

async fn populated() -> World {
    let world = World::new().await;
    for id in 1..=ITEMS {
        world.create(id).await;
    }
    world.pass(1).await;
    world
}

#[tokio::test(start_paused = true)]
async fn two_hosts_reconcile_each_generation_of_each_resource_once() {
    let world = populated().await;
    for generation in 1..=2 {
        let (mut one, mut two) = (BTreeMap::new(), BTreeMap::new());
        tokio::join!(work(&world, "one", &mut one), work(&world, "two", &mut two));
        assert!(one.len() > 100 && two.len() > 100, "both work: {} and {}", one.len(), two.len());
        for (run, count) in two {
            *one.entry(run).or_default() += count;
        }
        let expected: BTreeMap<_, _> = (1..=ITEMS).map(|id| ((id, generation), 1)).collect();
        assert_eq!(one, expected);
        for id in 1..=ITEMS {
            assert_eq!(world.phase(id).await, Phase::Ready);
            world.change(id).await;
        }
        world.pass(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_and_a_frozen_host_had_is_taken_over_and_their_late_writes_are_refused() {
    let world = populated().await;
    let dead = world.claim("dead", 20).await;
    let frozen = world.claim("frozen", 20).await;
    assert!(!dead.is_empty() && !frozen.is_empty());
    for item in &frozen {
        world.say(item, Phase::Reconciling, None).await.unwrap();
    }
    let lost = dead.len() + frozen.len();
    let mut done = BTreeMap::new();
    work(&world, "healthy", &mut done).await;
    assert_eq!(done.len(), usize::try_from(ITEMS).unwrap() - lost);
    // The leases end after a minute, and the failure costs another.
    world.pass(61).await;
    for item in &frozen {
        assert_eq!(world.phase(item.item.parse().unwrap()).await, Phase::Failed);
        let late = world.say(item, Phase::Ready, Some(1)).await;
        assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
        assert!(world.finish(item, Some(true)).await.is_err());
    }
    world.pass(61).await;
    work(&world, "healthy", &mut done).await;
    assert_eq!(done.len(), usize::try_from(ITEMS).unwrap());
    assert!(done.values().all(|count| *count == 1));
    for item in &frozen {
        let late = world.say(item, Phase::Failed, None).await;
        assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    }
    for id in 1..=ITEMS {
        assert_eq!(world.phase(id).await, Phase::Ready);
    }
    let history = world.history(frozen[0].item.parse().unwrap()).await;
    let told: Vec<&str> = history.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(told, ["msg", "lease expired"]);
}

/// What is due, one after the other.
async fn order(world: &World) -> Vec<u64> {
    let mut order = Vec::new();
    loop {
        let claimed = world.claim("h", 1).await;
        let Some(item) = claimed.first() else { return order };
        order.push(item.item.parse().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_to_go_comes_first_then_what_was_changed_then_what_failed_then_the_rest() {
    let world = World::new().await;
    for id in [1, 3] {
        world.create(id).await;
        world.do_well(&world.one().await).await.unwrap();
    }
    world.pass(280).await;
    world.create(2).await;
    world.finish(&world.one().await, Some(false)).await.unwrap();
    // Both are due by then, and the one that failed became so later.
    world.pass(100).await;
    world.create(4).await;
    world.delete(3).await;
    world.pass(1).await;
    assert_eq!(order(&world).await, [3, 4, 2, 1]);
    let world = world.restart().await;
    assert_eq!(order(&world).await, [3, 4, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_is_to_go_is_lent_before_all_else_also_after_it_failed_and_after_a_restart() {
    let world = World::new().await;
    for id in 1..=2 {
        world.create(id).await;
        world.do_well(&world.one().await).await.unwrap();
    }
    for id in 3..=5 {
        world.create(id).await;
    }
    world.delete(2).await;
    world.delete(1).await;
    world.pass(1).await;
    let ids = |claimed: Vec<Claimed>| claimed.iter().map(|it| it.item.parse().unwrap()).collect::<Vec<u64>>();
    let (first, second) = (world.claim("h", 1).await, world.claim("h", 1).await);
    world.finish(&first[0], Some(false)).await.unwrap();
    assert_eq!((ids(first), ids(second)), (vec![2], vec![1]));
    // By then the lease of the other has run out as well.
    world.pass(121).await;
    world.create(6).await;
    world.pass(1).await;
    let mut retried = ids(world.claim("h", 2).await);
    retried.sort_unstable();
    assert_eq!(retried, [1, 2]);
    let world = world.restart().await;
    let mut listed = ids(world.claim("h", 2).await);
    listed.sort_unstable();
    assert_eq!(listed, [1, 2]);
    assert_eq!(world.claim("h", 10).await.len(), 4);
}
