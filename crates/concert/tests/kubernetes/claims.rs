//! Claims on a real Kubernetes, once the kind ClaimDefinition is there.

use serde_json::{Value, json};

use crate::process::{Provider, Reconciler, config, workspace};
use crate::world::{EXAMPLE, World, eventually, is, message};

const CLAIM: &str = "rediscluster";
const STORE: &str = "cloudmemorystoreinstance";

fn class(name: &str, metadata: Value, reclaim: &str) -> Value {
    let mut class = json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1",
        "kind": "CloudMemorystoreInstanceClass", "metadata": metadata,
        "specTemplate": {"writeConnectionSecretsToNamespace": "default", "providerRef": {"name": "gcp"},
            "reclaimPolicy": reclaim, "forProvider": {"tier": "BASIC", "region": "us", "memorySizeGb": 1}}});
    class["metadata"]["name"] = json!(name);
    class
}

fn class_ref(name: &str) -> Value {
    json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1", "kind": "CloudMemorystoreInstanceClass",
        "name": name})
}

fn store_ref(name: &str) -> Value {
    json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1", "kind": "CloudMemorystoreInstance", "name": name})
}

fn claim(name: &str, mut spec: Value) -> Value {
    spec["writeConnectionSecretToRef"] = json!({"name": format!("{name}-conn")});
    json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

/// Defines everything that is shipped for a Redis, with an account.
fn define(world: &World) {
    world.define(&["example-providerconfigs.yaml", "example-providerconfigusages.yaml"]);
    world.apply(&json!({"apiVersion": EXAMPLE, "kind": "ProviderConfig", "metadata": {"name": "gcp"},
        "spec": {"credentials": {"source": "None"}}}));
    for file in [
        "deploy/crds/claims.yaml",
        "deploy/claims/redisclusters.yaml",
        "deploy/claims/classes.yaml",
        "deploy/claims/managed/cloudmemorystoreinstances.yaml",
    ] {
        let path = workspace().join(file);
        let path = path.to_str().unwrap();
        world.kubectl(&["apply", "-f", path]);
        world.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "-f", path]);
    }
    let definitions = workspace().join("deploy/claims/definitions.yaml");
    world.kubectl(&["apply", "-f", definitions.to_str().unwrap()]);
    world.wait_for("claimdefinitions", "rediscluster", "ready", |it| is(it, "Ready", "True"));
}

fn wait_bound(world: &World, name: &str) -> Value {
    let bound = world.wait_for(CLAIM, name, "bound", |it| it["status"]["bindingPhase"] == "Bound");
    let secret = world.get("secret", &format!("{name}-conn")).expect("it has a secret");
    assert!(secret["data"]["password"].is_string());
    bound
}

#[test]
fn claims_are_bound_by_whatever_they_say_and_let_go() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &["--claims"]);
    let declared = config(&[("cloud", &provider.address, None)]);
    let _reconciler = Reconciler::start(&world, &declared, &["--poll-interval", "1h"]);
    define(&world);
    // One that is not ready for want of kinds says so, and the others play.
    let bucket = world.get("claimdefinitions", "bucket").unwrap();
    assert!(message(&bucket, "Ready").contains("is not defined"), "{bucket}");

    world.apply(&class("by-label", json!({"labels": {"grade": "prod"}}), "Retain"));
    world.apply(&class("by-policy", json!({}), "Delete"));
    let annotations = json!({"annotations": {"resourceclass.crossplane.io/is-default-class": "true"}});
    world.apply(&class("by-default", annotations, "Delete"));
    world.apply(&claim("defaulted", json!({})));
    world.apply(&claim("selected", json!({"classSelector": {"matchLabels": {"grade": "prod"}}})));
    world.apply(&claim("named", json!({"classRef": class_ref("by-policy"), "engineVersion": "5.0"})));
    for (name, class) in [("defaulted", "by-default"), ("selected", "by-label"), ("named", "by-policy")] {
        assert_eq!(wait_bound(&world, name)["spec"]["classRef"]["name"], class);
    }
    world.apply(&json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisClusterPolicy",
        "metadata": {"name": "p", "namespace": "default"}, "defaultClassRef": class_ref("by-policy")}));
    world.apply(&claim("political", json!({})));
    assert_eq!(wait_bound(&world, "political")["spec"]["classRef"]["name"], "by-policy");

    world.apply(&json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1", "kind": "CloudMemorystoreInstance",
        "metadata": {"name": "legacy"}, "spec": {"providerRef": {"name": "gcp"},
            "writeConnectionSecretToRef": {"namespace": "default", "name": "legacy"},
            "forProvider": {"tier": "BASIC", "region": "us", "memorySizeGb": 1}}}));
    world.apply(&claim("static", json!({"resourceRef": store_ref("legacy")})));
    wait_bound(&world, "static");
    world.apply(&claim("forged", json!({"resourceRef": store_ref("legacy")})));
    let forged = world.wait_for(CLAIM, "forged", "refused", |it| is(it, "Synced", "False"));
    assert!(message(&forged, "Synced").contains("belongs to another claim"), "{forged}");

    let retained = wait_bound(&world, "selected")["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned();
    let deleted = wait_bound(&world, "named")["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned();
    world.kubectl(&["delete", CLAIM, "--all", "--timeout=60s"]);
    world.wait_gone(STORE, &deleted);
    for name in [retained.as_str(), "legacy"] {
        world.wait_for(STORE, name, "released", |it| it["status"]["bindingPhase"] == "Released");
    }
    eventually("what nobody keeps is gone", || match provider.count("live") {
        2 => Ok(()),
        live => Err(live.to_string()),
    });
    assert_eq!(provider.count("doubles"), 0);
}

#[test]
fn the_secret_of_a_claim_follows_that_of_its_resource() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &["--claims"]);
    let declared = config(&[("cloud", &provider.address, None)]);
    let _reconciler = Reconciler::start(&world, &declared, &["--poll-interval", "1h"]);
    define(&world);
    world.apply(&class("c", json!({}), "Delete"));
    world.apply(&claim("app", json!({"classRef": class_ref("c")})));
    let bound = wait_bound(&world, "app");
    let source = bound["metadata"]["uid"].as_str().unwrap();
    world.patch("secret", source, &json!({"data": {"extra": "bmV3"}}));
    world.wait_for("secret", "app-conn", "followed", |it| it["data"]["extra"] == "bmV3");
    world.kubectl(&["delete", CLAIM, "app", "--timeout=60s"]);
}
