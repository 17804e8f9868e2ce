//! A provider that goes away and comes back, and what the probes and numbers say.

use serde_json::Value;

use crate::process::{Provider, Reconciler};
use crate::web;
use crate::world::{World, bucket, eventually, external_name, is};

/// Section 1.11 of the specification.
const NUMBERS: [&str; 20] = [
    "crossplane_managed_resource_first_time_to_reconcile_seconds",
    "crossplane_managed_resource_first_time_to_readiness_seconds",
    "crossplane_managed_resource_deletion_seconds",
    "crossplane_managed_resource_drift_seconds",
    "crossplane_managed_resource_exists",
    "crossplane_managed_resource_ready",
    "crossplane_managed_resource_synced",
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_terminal_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "controller_runtime_reconcile_time_seconds",
    "controller_runtime_max_concurrent_reconciles",
    "controller_runtime_active_workers",
    "controller_runtime_reconcile_timeouts_total",
    "workqueue_depth",
    "workqueue_adds_total",
    "workqueue_queue_duration_seconds",
    "workqueue_work_duration_seconds",
    "workqueue_retries_total",
];

#[test]
fn objects_go_on_when_their_provider_is_killed_and_started_again() {
    let Some(world) = World::enter() else { return };
    let truth = world.new_file("truth.jsonl");
    let truth = truth.to_str().unwrap();
    let mut provider = Provider::start(&world, &["--truth", truth]);
    world.define_cloud();
    let reconciler = Reconciler::start_for(&world, &provider, &["--poll-interval", "2s"]);
    reconciler.wait_ready();
    world.apply(&bucket("before", &Value::Null));
    let before = external_name(&world.wait_ready("bucket", "before")).to_owned();

    provider.process.kill();
    eventually("the probe names the provider", || match reconciler.readiness()? {
        (status, why) if status != 200 && why.contains("provider example: ") => Ok(()),
        (status, why) => Err(format!("{status} {why}")),
    });
    world.apply(&bucket("during", &Value::Null));
    world.wait_for("bucket", "during", "said not to be served", |it| is(it, "Synced", "False"));
    world.kubectl(&["delete", "bucket", "before", "--wait=false"]);

    let provider = Provider::start(&world, &["--truth", truth, "--address", &provider.address]);
    reconciler.wait_ready();
    world.wait_ready("bucket", "during");
    world.wait_gone("bucket", "before");
    assert!(provider.things().iter().all(|it| it["id"] != before));
    assert_eq!((provider.count("live"), provider.count("doubles")), (1, 0));

    assert_eq!(web::get(&reconciler.probes, "/healthz").unwrap().0, 200);
}

#[test]
fn controllers_that_stay_say_when_their_provider_is_lost_and_back() {
    let Some(world) = World::enter() else { return };
    let truth = world.new_file("truth.jsonl");
    let truth = truth.to_str().unwrap();
    let mut provider = Provider::start(&world, &["--truth", truth]);
    world.define_cloud();
    let flags = ["--poll-interval", "2s", "--restart-on-provider-disconnect=false"];
    let reconciler = Reconciler::start_for(&world, &provider, &flags);
    reconciler.wait_ready();
    world.apply(&bucket("before", &Value::Null));
    world.wait_ready("bucket", "before");

    provider.process.kill();
    eventually("the probe names the provider", || match reconciler.readiness()? {
        (status, why) if status != 200 && why.contains("provider example: ") => Ok(()),
        (status, why) => Err(format!("{status} {why}")),
    });
    // Its controllers run on, so the object itself says so, by a poll.
    world.wait_for("bucket", "before", "said to be out of reach", |it| is(it, "Synced", "False"));

    let provider = Provider::start(&world, &["--truth", truth, "--address", &provider.address]);
    reconciler.wait_ready();
    world.wait_ready("bucket", "before");
    world.apply(&bucket("after", &Value::Null));
    world.wait_ready("bucket", "after");
    assert_eq!((provider.count("live"), provider.count("doubles")), (2, 0));
}

#[test]
fn the_numbers_have_the_names_of_the_specification() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_cloud();
    let flags = ["--poll-interval", "2s", "--max-reconcile-rate", "7"];
    let reconciler = Reconciler::start_for(&world, &provider, &flags);
    reconciler.wait_ready();
    world.apply(&bucket("a", &Value::Null));
    world.wait_ready("bucket", "a");
    let (status, numbers) = web::get(&reconciler.metrics, "/metrics").unwrap();
    assert_eq!(status, 200);
    let has = |name: &str| ["{", "_bucket{"].iter().any(|end| numbers.contains(&format!("\n{name}{end}")));
    let missing: Vec<_> = NUMBERS.iter().filter(|name| !has(name)).collect();
    assert!(missing.is_empty(), "{missing:?} are not there");
    let controller = "managed/bucket.cloud.concert.dev";
    let most = format!("controller_runtime_max_concurrent_reconciles{{controller=\"{controller}\"}} 7.0\n");
    assert!(numbers.contains(&most), "{numbers}");
    let one = r#"crossplane_managed_resource_ready{gvk="cloud.concert.dev/v1alpha1, Kind=Bucket"} 1"#;
    eventually("the numbers count the ready object", || {
        let (_, numbers) = web::get(&reconciler.metrics, "/metrics")?;
        if numbers.contains(one) { Ok(()) } else { Err(numbers) }
    });
}
