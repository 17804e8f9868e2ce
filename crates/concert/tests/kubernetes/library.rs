//! The managed reconciler inside a program of somebody's own.

use std::process::Command;

use serde_json::json;

use crate::process::{Process, Provider};
use crate::world::{EXAMPLE, World};

#[test]
fn the_example_of_the_library_reconciles() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_examples();
    let mut command = Command::new(concert_testbed::example("managed").unwrap());
    command.arg(&provider.address).env("KUBECONFIG", world.kubeconfig());
    let _program = Process::start(&world, "example", &mut command);
    world.apply(&json!({"apiVersion": EXAMPLE, "kind": "ExampleResource", "metadata": {"name": "a"},
        "spec": {"forProvider": {"region": "eu", "size": 3}}}));
    world.wait_ready("exampleresource", "a");
    world.kubectl(&["delete", "exampleresource", "a", "--timeout=60s"]);
    assert_eq!((provider.count("created"), provider.count("live")), (1, 0));
}
