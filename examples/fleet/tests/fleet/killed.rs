//! Everything is killed at random while entries settle.

use std::time::Duration;

use concert_store::Chance;
use serde_json::json;

use crate::fleet::{ALL, Fleet, Layout};
use crate::wait::pass;

const SEED: u64 = 0x000f_1ee7;
const KILLS: usize = 20;
const ENTRIES: usize = 3;

fn everything_is_killed(layout: Layout) {
    let Some(mut fleet) = Fleet::start_all(layout) else { return };
    eprintln!("seed {SEED:#x}");
    let chance = Chance::seeded(SEED);
    let mut victims = ALL.to_vec();
    victims.extend(["mothership", "gardener", "cloud", "garden", "target"]);
    if layout == Layout::Apart {
        victims.push("inventory");
    }
    let settings = json!({"settings": {"component": {"version": "1.0.0"}}});
    let mut ids: Vec<String> = (0..ENTRIES).map(|index| format!("rt-{index}")).collect();
    for id in &ids {
        fleet.create(id, "runtime", &settings);
    }
    for kill in 0..KILLS {
        pass(Duration::from_millis(chance.below(400)));
        // Whoever is killed is killed while there is something to do: one that is new has just begun.
        if ids.iter().all(|id| fleet.is_ready(id)) {
            ids.push(format!("rt-{}", ids.len()));
            fleet.create(&ids[ids.len() - 1], "runtime", &settings);
        }
        // Everybody once, then whoever it hits.
        let index = if kill < victims.len() { kill } else { chance.below(victims.len() as u64) as usize };
        fleet.crash(victims[index]);
    }
    for id in &ids {
        fleet.wait_ready(id);
        assert!(fleet.section(id, "network")["data"]["vnet_name"].is_string());
        assert!(fleet.world.shoot(id).is_some());
    }
    let mut networks = fleet.cloud.networks();
    networks.sort();
    let mut wanted: Vec<String> = ids.iter().map(|id| format!("vnet-{id}")).collect();
    wanted.sort();
    assert_eq!(networks, wanted, "nothing was made twice");
    assert!(fleet.world.in_target("deployment", "component").is_some());
}

#[test]
fn every_process_is_killed_at_random_and_it_still_converges() {
    everything_is_killed(Layout::Together);
}

#[test]
fn every_process_is_killed_at_random_with_inventory_and_mothership_apart() {
    everything_is_killed(Layout::Apart);
}
