//! The manifests of `deploy/`: what they let the reconciler do is what it needs.

use serde_json::json;

use crate::process::{Provider, Reconciler, config, workspace};
use crate::world::{CLOUD, World, bucket, eventually};

/// The account that the Deployment runs as.
const ACCOUNT: &str = "system:serviceaccount:concert-system:managed-reconciler";

#[test]
fn the_roles_that_are_shipped_are_enough_for_a_whole_life() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_cloud();
    let manifests = workspace().join("deploy/managed-reconciler.yaml");
    let manifests = manifests.to_str().unwrap();
    world.kubectl(&["apply", "-f", manifests]);
    eventually("the roles are put together", || {
        world.may(ACCOUNT, "update", "buckets.cloud.concert.dev", "default")
    });
    let token = world.kubectl(&["create", "token", "managed-reconciler", "-n", "concert-system"]);
    let kubeconfig = world.kubeconfig_of(token.trim());
    let declared = config(&[("example", &provider.address, Some((CLOUD, "Bucket")))]);
    let flags = ["--leader-election=true", "--leader-election-namespace=concert-system"];
    let reconciler = Reconciler::start_as(&world, &kubeconfig, &declared, &flags);

    world.apply(&bucket("a", &json!({"writeConnectionSecretToRef": {"name": "a-details"}})));
    world.wait_ready("bucket", "a");
    world.wait_for("secret", "a-details", "filled", |it| it["data"].is_object());
    reconciler.wait_ready();
    world.kubectl(&["delete", "bucket", "a", "--timeout=60s"]);
    assert_eq!(provider.count("live"), 0);
    world.wait_gone("secret", "a-details");
    assert!(!reconciler.process.log().contains("forbidden"), "{}", reconciler.process.log());

    drop(reconciler);
    world.kubectl(&["delete", "-f", manifests, "--wait=false"]);
}
