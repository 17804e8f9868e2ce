//! Two reconcilers, of which one works.

use serde_json::Value;

use crate::process::{Provider, Reconciler};
use crate::world::{World, bucket, eventually};

const FLAGS: [&str; 2] = ["--leader-election=true", "--leader-election-namespace=default"];

#[test]
fn the_other_goes_on_when_the_leader_is_killed() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_cloud();
    let mut first = Reconciler::start_for(&world, &provider, &FLAGS);
    eventually("the first leads", || match first.readiness()? {
        (200, text) if !text.contains("standing by") => Ok(()),
        (status, why) => Err(format!("{status} {why}")),
    });
    let second = Reconciler::start_for(&world, &provider, &FLAGS);
    eventually("the second stands by", || match second.readiness()? {
        (200, text) if text.contains("standing by") => Ok(()),
        (status, why) => Err(format!("{status} {why}")),
    });
    world.apply(&bucket("a", &Value::Null));
    world.wait_ready("bucket", "a");

    first.process.kill();
    world.apply(&bucket("b", &Value::Null));
    world.wait_ready("bucket", "b");
    let (status, text) = second.readiness().unwrap();
    assert!(status == 200 && !text.contains("standing by"), "{status} {text}");
    assert_eq!((provider.count("live"), provider.count("doubles")), (2, 0));
}
