//! What stays behind on purpose, and what cannot go yet.

use serde_json::{Value, json};

use crate::process::{Provider, Reconciler, config};
use crate::world::{EXAMPLE, World, bucket, condition, eventually, external_name, is};

#[test]
fn an_orphan_stays_in_the_cloud_and_can_be_adopted_again() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_examples();
    let kind = Some((EXAMPLE, "ExampleResource"));
    let declared = config(&[("example", &provider.address, kind)]);
    let _reconciler = Reconciler::start(&world, &declared, &["--poll-interval", "1h"]);
    let object = |annotations: Value| {
        json!({"apiVersion": EXAMPLE, "kind": "ExampleResource",
        "metadata": {"name": "a", "annotations": annotations},
        "spec": {"deletionPolicy": "Orphan", "forProvider": {"region": "eu", "size": 3}}})
    };
    world.apply(&object(json!({})));
    let id = external_name(&world.wait_ready("exampleresource", "a")).to_owned();
    world.kubectl(&["delete", "exampleresource", "a", "--timeout=60s"]);
    assert_eq!((provider.count("live"), provider.count("deleted")), (1, 0));

    world.apply(&object(json!({"crossplane.io/external-name": id})));
    let adopted = world.wait_ready("exampleresource", "a");
    assert_eq!(external_name(&adopted), id);
    assert_eq!(provider.count("created"), 1);
    world.patch("exampleresource", "a", &json!({"spec": {"deletionPolicy": "Delete"}}));
    world.kubectl(&["delete", "exampleresource", "a", "--timeout=60s"]);
    assert_eq!(provider.count("live"), 0);
}

#[test]
fn a_provider_config_stays_while_it_is_used() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_cloud();
    let _reconciler = Reconciler::start_for(&world, &provider, &["--poll-interval", "1h"]);
    world.apply(&bucket("a", &Value::Null));
    world.wait_ready("bucket", "a");
    world.wait_for("clusterproviderconfig", "default", "used once", |it| it["status"]["users"] == 1);

    world.kubectl(&["delete", "clusterproviderconfig", "default", "--wait=false"]);
    world.wait_for("clusterproviderconfig", "default", "in use", |it| {
        is(it, "Terminating", "True") && condition(it, "Terminating")["reason"] == "InUse"
    });
    world.wait_ready("bucket", "a");
    world.kubectl(&["delete", "bucket", "a", "--timeout=60s"]);
    world.wait_gone("clusterproviderconfig", "default");
}

#[test]
fn a_deletion_in_the_foreground_does_not_wait_for_itself() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_cloud();
    let _reconciler = Reconciler::start_for(&world, &provider, &["--poll-interval", "1h"]);
    let secret = json!({"writeConnectionSecretToRef": {"name": "a"}});
    world.apply(&bucket("a", &secret));
    world.wait_ready("bucket", "a");
    world.kubectl(&["delete", "bucket", "a", "--cascade=foreground", "--timeout=60s"]);
    assert_eq!((provider.count("live"), provider.count("deleted")), (0, 1));
    world.wait_for("clusterproviderconfig", "default", "used by nobody", |it| it["status"]["users"] == 0);
}

#[test]
fn an_object_without_its_provider_config_leaves_nothing_behind() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_cloud();
    let _reconciler = Reconciler::start_for(&world, &provider, &["--poll-interval", "1h"]);
    world.apply(&bucket(
        "a",
        &json!({"providerConfigRef": {"kind": "ClusterProviderConfig", "name": "none"}}),
    ));
    world.wait_for("bucket", "a", "said to have no account", |it| is(it, "Synced", "False"));
    assert_eq!(world.list("providerconfigusages").len(), 1);
    world.kubectl(&["delete", "bucket", "a", "--timeout=60s"]);
    eventually("the usage is gone", || match &world.list("providerconfigusages")[..] {
        [] => Ok(()),
        left => Err(format!("{left:?}")),
    });
}
