//! The life of one object, from before its kind is defined until after.

use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{Provider, Reconciler};
use crate::world::{World, bucket, condition, eventually, eventually_within, external_name, is};

/// Longer than any test: whatever happens, it is not a poll that makes it happen.
const NO_POLL: [&str; 2] = ["--poll-interval", "1h"];
/// Far below [`NO_POLL`], and far above what a push takes.
const AT_ONCE: Duration = Duration::from_secs(30);

fn size_of(provider: &Provider, id: &str) -> Value {
    provider.ask("GET", &format!("/things/{id}"), &Value::Null)["properties"]["size"].clone()
}

fn wait_for_size(provider: &Provider, id: &str, size: i64) {
    eventually_within(AT_ONCE, &format!("{id} has the size {size}"), || match size_of(provider, id) {
        seen if seen == size => Ok(()),
        seen => Err(seen.to_string()),
    });
}

#[test]
fn an_object_is_made_edited_corrected_paused_and_deleted() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    let reconciler = Reconciler::start_for(&world, &provider, &NO_POLL);
    eventually("the probe names what is not defined", || match reconciler.readiness()? {
        (503 | 500, why) if why.contains("Bucket.cloud.concert.dev: there is no definition of it") => Ok(()),
        (status, why) => Err(format!("{status} {why}")),
    });

    // The definition comes after the start.
    world.define_cloud();
    world.apply(&bucket("a", &json!({"writeConnectionSecretToRef": {"name": "a-connection"}})));
    let object = world.wait_ready("bucket", "a");
    let id = external_name(&object).to_owned();
    let things = provider.things_of("default/a");
    assert_eq!((things.len(), things[0]["id"].as_str()), (1, Some(&*id)), "{things:?}");
    assert_eq!(object["status"]["atProvider"]["id"], id);
    assert_eq!(object["spec"]["forProvider"]["tier"], "standard", "filled in by the cloud");

    // The secret of the connection belongs to the object.
    let secret =
        eventually("the secret is written", || world.get("secret", "a-connection").ok_or("no".into()));
    assert_eq!(secret["type"], "connection.crossplane.io/v1alpha1");
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], object["metadata"]["uid"]);
    assert!(secret["data"]["password"].is_string(), "{secret}");

    // An edit reaches the cloud, and a change in the cloud is undone as soon as it is pushed.
    world.patch("bucket", "a", &json!({"spec": {"forProvider": {"size": 2}}}));
    wait_for_size(&provider, &id, 2);
    world.wait_ready("bucket", "a");
    provider.drift(&id, &json!({"size": 77}));
    wait_for_size(&provider, &id, 2);

    // While it is paused neither an edit nor the cloud matters; resumed, both do.
    world.kubectl(&["annotate", "bucket", "a", "crossplane.io/paused=true"]);
    world.wait_for("bucket", "a", "paused", |it| condition(it, "Synced")["reason"] == "ReconcilePaused");
    world.patch("bucket", "a", &json!({"spec": {"forProvider": {"size": 3}}}));
    world.apply(&bucket("b", &Value::Null));
    world.wait_ready("bucket", "b");
    assert_eq!(size_of(&provider, &id), 2, "a later object was served and this one left alone");
    world.kubectl(&["annotate", "bucket", "a", "crossplane.io/paused-"]);
    wait_for_size(&provider, &id, 3);
    world.wait_ready("bucket", "a");

    // With the object goes the thing, and then the secret.
    world.kubectl(&["delete", "bucket", "a", "--timeout=60s"]);
    assert!(provider.things_of("default/a").is_empty());
    world.wait_gone("secret", "a-connection");
    assert_eq!(provider.things_of("default/b").len(), 1);
    assert_eq!(provider.count("doubles"), 0);
}

#[test]
fn drift_is_corrected_at_the_poll_without_a_push() {
    let Some(world) = World::enter() else { return };
    // The prototype's protocol has no push.
    let provider = Provider::start(&world, &["--protocol", "v1alpha1"]);
    world.define_cloud();
    let reconciler = Reconciler::start_for(&world, &provider, &["--poll-interval", "2s"]);
    reconciler.wait_ready();
    world.apply(&bucket("a", &Value::Null));
    let id = external_name(&world.wait_ready("bucket", "a")).to_owned();
    provider.drift(&id, &json!({"size": 77}));
    wait_for_size(&provider, &id, 1);
    world.kubectl(&["delete", "bucket", "a", "--timeout=60s"]);
    assert_eq!(provider.count("live"), 0);
}

#[test]
fn a_definition_that_is_deleted_takes_its_objects_and_their_things_with_it() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_cloud();
    let reconciler = Reconciler::start_for(&world, &provider, &NO_POLL);
    for name in ["a", "b", "c"] {
        world.apply(&bucket(name, &Value::Null));
    }
    for name in ["a", "b", "c"] {
        world.wait_ready("bucket", name);
    }
    assert_eq!(provider.count("live"), 3);
    world.kubectl(&["delete", "crd", "buckets.cloud.concert.dev", "--timeout=90s"]);
    assert_eq!((provider.count("live"), provider.count("created")), (0, 3));

    // Defined anew, the kind is served again.
    world.define(&["buckets.yaml"]);
    world.apply(&bucket("a", &Value::Null));
    let again = world.wait_ready("bucket", "a");
    assert!(is(&again, "UpToDate", "True"), "{again}");
    drop(reconciler);
}
