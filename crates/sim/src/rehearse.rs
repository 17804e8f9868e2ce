//! One wish after the other in fine weather, but for one moment.

use std::time::Duration;

use concert_store::Clock;

use super::{Company, Life, Report};
use crate::play::{Play, Stage, Wish};

/// How long one wish takes to come true in fine weather, and then some.
const SCENE: Duration = Duration::from_secs(60);
/// Between looks whether the store has died.
const LOOK: Duration = Duration::from_millis(100);

/// Has users get `before` in peace, and then `act`, after which the store dies at its n-th commit. What follows
/// and is checked is as in every life. In a report without a crash nothing was left to die at.
pub fn rehearse<P: Play>(fuse: u64, before: Vec<Wish>, act: Wish, open: impl Fn(&Stage) -> P) -> Report {
    let mut life = Life::begin(Company::Leader, 1, open);
    life.calm_down();
    life.executor.run_for(SCENE);
    for wish in before {
        life.grant(wish);
        life.executor.run_for(SCENE);
    }
    life.disk.light_fuse(fuse);
    life.grant(act);
    let end = life.executor.elapsed() + SCENE;
    while life.executor.elapsed() < end {
        life.executor.run_for(LOOK);
        if life.disk.is_dead() {
            life.crash();
        }
    }
    life.calm_down();
    life.settle_and_check();
    life.report(fuse)
}
