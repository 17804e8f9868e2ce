//! The manifests of `deploy/`: what they let the reconciler do is what it needs.

use serde_json::{Value, json};

use crate::claims::{CLAIM, STORE, claim, class, class_ref, define, wait_bound};
use crate::process::{Provider, Reconciler, config, workspace};
use crate::world::{CLOUD, World, bucket, eventually};

/// The account that the Deployment runs as.
const ACCOUNT: &str = "system:serviceaccount:concert-system:managed-reconciler";

/// Starts a reconciler by the manifests, as their account, once that may write this resource.
fn start(world: &World, declared: &Value, resource: &str) -> Reconciler {
    world.kubectl(&["apply", "-f", &manifests()]);
    eventually("the roles are put together", || world.may(ACCOUNT, "update", resource, "default"));
    let token = world.kubectl(&["create", "token", "managed-reconciler", "-n", "concert-system"]);
    let kubeconfig = world.kubeconfig_of(token.trim());
    let flags = ["--leader-election=true", "--leader-election-namespace=concert-system"];
    Reconciler::start_as(world, &kubeconfig, declared, &flags)
}

fn manifests() -> String {
    workspace().join("deploy/managed-reconciler.yaml").to_str().unwrap().to_owned()
}

#[test]
fn the_roles_that_are_shipped_are_enough_for_a_whole_life() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_cloud();
    let declared = config(&[("example", &provider.address, Some((CLOUD, "Bucket")))]);
    let reconciler = start(&world, &declared, "buckets.cloud.concert.dev");

    world.apply(&bucket("a", &json!({"writeConnectionSecretToRef": {"name": "a-details"}})));
    world.wait_ready("bucket", "a");
    world.wait_for("secret", "a-details", "filled", |it| it["data"].is_object());
    reconciler.wait_ready();
    world.kubectl(&["delete", "bucket", "a", "--timeout=60s"]);
    assert_eq!(provider.count("live"), 0);
    world.wait_gone("secret", "a-details");
    assert!(!reconciler.process.log().contains("forbidden"), "{}", reconciler.process.log());

    drop(reconciler);
    world.kubectl(&["delete", "-f", &manifests(), "--wait=false"]);
}

#[test]
fn the_roles_that_are_shipped_are_enough_for_a_claim() {
    let Some(world) = World::apart() else { return };
    let provider = Provider::start(&world, &["--claims"]);
    // What is not defined nobody can be asked about.
    world.define_file(&workspace().join("deploy/claims/redisclusters.yaml"));
    let declared = config(&[("cloud", &provider.address, None)]);
    let reconciler = start(&world, &declared, "redisclusters.cache.crossplane.io");
    define(&world);
    world.apply(&class("c", json!({}), "Delete"));
    world.apply(&claim("app", json!({"classRef": class_ref("c")})));
    let bound = wait_bound(&world, "app");
    world.kubectl(&["delete", CLAIM, "app", "--timeout=60s"]);
    world.wait_gone(STORE, bound["spec"]["resourceRef"]["name"].as_str().unwrap());
    eventually("what was made for it is gone", || match provider.count("live") {
        0 => Ok(()),
        live => Err(live.to_string()),
    });
    assert!(!reconciler.process.log().contains("forbidden"), "{}", reconciler.process.log());
}
