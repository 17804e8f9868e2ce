//! Providers declared as objects, and two of them for one kind.

use serde_json::{Value, json};

use crate::process::{Provider, Reconciler, config, workspace};
use crate::world::{CLOUD, World, bucket, condition, eventually, is, message};

/// A provider object for Buckets.
pub fn declared(name: &str, endpoint: &str) -> Value {
    json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider", "metadata": {"name": name},
        "spec": {"endpoint": endpoint, "resourceTypes": [{"apiVersion": CLOUD, "kind": "Bucket"}]}})
}

/// Defines the kind of such objects.
pub fn define_providers(world: &World) {
    world.define_file(&workspace().join("deploy/crds/providers.yaml"));
}

#[test]
fn a_provider_object_is_served_changed_and_taken_away_while_the_reconciler_runs() {
    let Some(world) = World::enter() else { return };
    let truth = world.new_file("truth.jsonl");
    let flags = ["--truth", truth.to_str().unwrap()];
    let mut provider = Provider::start(&world, &flags);
    world.define_cloud();
    let reconciler = Reconciler::start(&world, &json!({"providers": []}), &["--poll-interval", "1h"]);
    define_providers(&world);
    world.apply(&bucket("a", &Value::Null));

    world.apply(&declared("cloud", &provider.address));
    let object = world.wait_for("providers.concert.dev", "cloud", "available", |it| is(it, "Ready", "True"));
    assert_eq!(object["status"]["kinds"], json!(["Bucket.v1alpha1.cloud.concert.dev"]), "{object}");
    world.wait_ready("bucket", "a");

    // It moves, and its objects with it.
    provider.process.kill();
    let provider = Provider::start(&world, &flags);
    world.apply(&declared("cloud", &provider.address));
    world.apply(&bucket("b", &Value::Null));
    world.wait_ready("bucket", "b");

    // An endpoint that is none is refused where it was written.
    world.apply(&declared("odd", "not an endpoint"));
    let odd = world.wait_for("providers.concert.dev", "odd", "refused", |it| {
        condition(it, "Ready")["reason"] == "Invalid"
    });
    assert!(message(&odd, "Ready").contains("endpoint"), "{odd}");

    // Without it nobody serves the object, which says so, and nothing is lost.
    world.kubectl(&["delete", "providers.concert.dev", "cloud", "odd", "--timeout=60s"]);
    world.wait_for("bucket", "a", "said not to be served", |it| {
        is(it, "Synced", "False") && message(it, "Synced").contains("provider")
    });
    assert_eq!(provider.count("live"), 2);
    world.apply(&declared("again", &provider.address));
    world.wait_ready("bucket", "a");
    world.kubectl(&["delete", "bucket", "a", "b", "--timeout=60s"]);
    world.kubectl(&["delete", "providers.concert.dev", "again", "--timeout=60s"]);
    assert_eq!((provider.count("live"), provider.count("doubles")), (0, 0));
    drop(reconciler);
}

#[test]
fn the_first_of_two_providers_keeps_a_kind_and_the_probe_names_both() {
    let Some(world) = World::enter() else { return };
    let (first, second) = (Provider::start(&world, &[]), Provider::start(&world, &[]));
    world.define_cloud();
    world.define(&["exampleresources.yaml", "anotherresources.yaml", "example-providerconfigs.yaml"]);
    // Neither says what it is wanted for, so both are in charge of all they serve.
    let declared = config(&[("first", &first.address, None), ("second", &second.address, None)]);
    let reconciler = Reconciler::start(&world, &declared, &["--poll-interval", "1h"]);
    world.apply(&bucket("a", &Value::Null));
    world.wait_ready("bucket", "a");
    assert_eq!((first.count("live"), second.count("live")), (1, 0));
    let told = "Bucket.cloud.concert.dev is served by the providers first and second: first keeps it";
    eventually("the probe names both", || match reconciler.readiness()? {
        (503, why) if why.contains(told) => Ok(()),
        (status, why) => Err(format!("{status} {why}")),
    });
}
