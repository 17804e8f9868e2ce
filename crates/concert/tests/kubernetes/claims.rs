//! Claims on a real Kubernetes, once the kind ClaimDefinition is there.

use serde_json::{Value, json};

use crate::process::{Provider, Reconciler, config, workspace};
use crate::world::{EXAMPLE, World, eventually, is, list_of, message};

const CLAIM: &str = "rediscluster";
const BUCKET: &str = "buckets.storage.crossplane.io";
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

/// A cluster with a reconciler, a provider, and the kinds that a claim needs. Fields are dropped in order:
/// the reconciler ends first.
struct Scene {
    _reconciler: Reconciler,
    provider: Provider,
    world: World,
}

impl Scene {
    fn open() -> Option<Self> {
        let world = World::apart()?;
        let provider = Provider::start(&world, &["--claims"]);
        let declared = config(&[("cloud", &provider.address, None)]);
        let reconciler = Reconciler::start(&world, &declared, &["--poll-interval", "1h"]);
        define(&world);
        Some(Self { _reconciler: reconciler, provider, world })
    }
}

/// Defines everything that is shipped for a Redis and for buckets, with an account.
fn define(world: &World) {
    world.define(&["example-providerconfigs.yaml", "example-providerconfigusages.yaml"]);
    world.apply(&json!({"apiVersion": EXAMPLE, "kind": "ProviderConfig", "metadata": {"name": "gcp"},
        "spec": {"credentials": {"source": "None"}}}));
    for file in [
        "deploy/crds/claims.yaml",
        "deploy/claims/redisclusters.yaml",
        "deploy/claims/buckets.yaml",
        "deploy/claims/classes.yaml",
        "deploy/claims/managed/cloudmemorystoreinstances.yaml",
        "deploy/claims/managed/gcpbuckets.yaml",
        "deploy/claims/managed/s3buckets.yaml",
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
    let Some(scene) = Scene::open() else { return };
    let world = &scene.world;
    // One that is not ready for want of kinds says so, and the others play.
    let waiting = world.get("claimdefinitions", "mysqlinstance").unwrap();
    assert!(message(&waiting, "Ready").contains("is not defined"), "{waiting}");

    world.apply(&class("by-label", json!({"labels": {"grade": "prod"}}), "Retain"));
    world.apply(&class("by-policy", json!({}), "Delete"));
    let annotations = json!({"annotations": {"resourceclass.crossplane.io/is-default-class": "true"}});
    world.apply(&class("by-default", annotations, "Delete"));
    world.apply(&claim("defaulted", json!({})));
    world.apply(&claim("selected", json!({"classSelector": {"matchLabels": {"grade": "prod"}}})));
    world.apply(&claim("named", json!({"classRef": class_ref("by-policy"), "engineVersion": "5.0"})));
    for (name, class) in [("defaulted", "by-default"), ("selected", "by-label"), ("named", "by-policy")] {
        assert_eq!(wait_bound(world, name)["spec"]["classRef"]["name"], class);
    }
    world.apply(&json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisClusterPolicy",
        "metadata": {"name": "p", "namespace": "default"}, "defaultClassRef": class_ref("by-policy")}));
    world.apply(&claim("political", json!({})));
    assert_eq!(wait_bound(world, "political")["spec"]["classRef"]["name"], "by-policy");

    world.apply(&json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1", "kind": "CloudMemorystoreInstance",
        "metadata": {"name": "legacy"}, "spec": {"providerRef": {"name": "gcp"},
            "writeConnectionSecretToRef": {"namespace": "default", "name": "legacy"},
            "forProvider": {"tier": "BASIC", "region": "us", "memorySizeGb": 1}}}));
    world.apply(&claim("static", json!({"resourceRef": store_ref("legacy")})));
    wait_bound(world, "static");
    world.apply(&claim("forged", json!({"resourceRef": store_ref("legacy")})));
    let forged = world.wait_for(CLAIM, "forged", "refused", |it| is(it, "Synced", "False"));
    assert!(message(&forged, "Synced").contains("belongs to another claim"), "{forged}");

    let retained = wait_bound(world, "selected")["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned();
    let deleted = wait_bound(world, "named")["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned();
    world.kubectl(&["delete", CLAIM, "--all", "--timeout=60s"]);
    world.wait_gone(STORE, &deleted);
    for name in [retained.as_str(), "legacy"] {
        world.wait_for(STORE, name, "released", |it| it["status"]["bindingPhase"] == "Released");
    }
    eventually("what nobody keeps is gone", || match scene.provider.count("live") {
        2 => Ok(()),
        live => Err(live.to_string()),
    });
    assert_eq!(scene.provider.count("doubles"), 0);
}

#[test]
fn the_secret_of_a_claim_follows_that_of_its_resource() {
    let Some(scene) = Scene::open() else { return };
    let world = &scene.world;
    world.apply(&class("c", json!({}), "Delete"));
    world.apply(&claim("app", json!({"classRef": class_ref("c")})));
    let bound = wait_bound(world, "app");
    let source = bound["metadata"]["uid"].as_str().unwrap();
    for value in ["bmV3", "bmV3ZXI=", "bmV3ZXN0"] {
        world.patch("secret", source, &json!({"data": {"extra": value}}));
        world.wait_for("secret", "app-conn", "followed", |it| it["data"]["extra"] == value);
    }

    // A definition stays for those that are bound by it.
    world.kubectl(&["delete", "claimdefinition", "rediscluster", "--wait=false"]);
    let held = world.wait_for("claimdefinition", "rediscluster", "held", |it| is(it, "Ready", "False"));
    assert!(message(&held, "Ready").starts_with("1 claim is bound by it"), "{held}");
    world.kubectl(&["delete", CLAIM, "app", "--timeout=60s"]);
    world.wait_gone("claimdefinition", "rediscluster");
}

/// A bucket of one cloud, by what its class has for a label.
fn bucket(name: &str, cloud: &str) -> Value {
    json!({"apiVersion": "storage.crossplane.io/v1alpha1", "kind": "Bucket",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"classSelector": {"matchLabels": {"cloud": cloud}}}})
}

#[test]
fn one_kind_is_claimed_on_two_clouds_and_one_of_many_goes_alone() {
    let Some(scene) = Scene::open() else { return };
    let world = &scene.world;
    world.wait_for("claimdefinitions", "bucket", "ready", |it| is(it, "Ready", "True"));
    for (cloud, kind, fields) in
        [("aws", "S3BucketClass", json!({"region": "us"})), ("gcp", "BucketClass", json!({"location": "US"}))]
    {
        world.apply(&json!({"apiVersion": format!("storage.{cloud}.crossplane.io/v1beta1"), "kind": kind,
            "metadata": {"name": "buckets", "labels": {"cloud": cloud}},
            "specTemplate": {"writeConnectionSecretsToNamespace": "default", "providerRef": {"name": "gcp"},
                "forProvider": fields}}));
        world.apply(&bucket(&format!("in-{cloud}"), cloud));
    }
    for (name, kind) in [("in-aws", "S3Bucket"), ("in-gcp", "Bucket")] {
        let bound = world.wait_for(BUCKET, name, "bound", |it| it["status"]["bindingPhase"] == "Bound");
        assert_eq!(bound["spec"]["resourceRef"]["kind"], kind);
    }

    world.apply(&class("c", json!({}), "Delete"));
    let names: Vec<String> = (0..10).map(|number| format!("of-ten-{number}")).collect();
    let ten: Vec<Value> = names.iter().map(|it| claim(it, json!({"classRef": class_ref("c")}))).collect();
    world.create(&list_of(&ten));
    let before: Vec<Value> = names.iter().map(|it| wait_bound(world, it)).collect();
    let gone = before[3]["spec"]["resourceRef"]["name"].as_str().unwrap();
    world.kubectl(&["delete", CLAIM, &names[3], "--timeout=60s"]);
    world.wait_gone(STORE, gone);
    for (name, before) in names.iter().zip(&before).filter(|(name, _)| **name != names[3]) {
        assert_eq!(world.get(CLAIM, name).as_ref(), Some(before));
    }
    eventually("what was made for it is gone", || match scene.provider.count("live") {
        11 => Ok(()),
        live => Err(live.to_string()),
    });
}

#[test]
fn who_may_write_in_one_namespace_gets_nothing_of_another() {
    let Some(scene) = Scene::open() else { return };
    let world = &scene.world;
    world.apply(&class("c", json!({}), "Delete"));
    world.apply(&claim("theirs", json!({"classRef": class_ref("c")})));
    let theirs = wait_bound(world, "theirs");
    let store = theirs["spec"]["resourceRef"]["name"].as_str().unwrap();
    let source = world.get("secret", theirs["metadata"]["uid"].as_str().unwrap()).unwrap();

    // Somebody who may do everything in another namespace, and nothing elsewhere.
    world.kubectl(&["create", "namespace", "team"]);
    world.kubectl(&[
        "create",
        "rolebinding",
        "all",
        "-n",
        "team",
        "--clusterrole=cluster-admin",
        "--user=eve",
    ]);
    let as_eve = |manifest: &Value| {
        let file = world.new_file("eve.json");
        std::fs::write(&file, manifest.to_string()).unwrap();
        world.kubectl(&["apply", "--as=eve", "-f", file.to_str().unwrap()]);
    };
    let mine = |name: &str, spec: Value| {
        let mut claim = claim(name, spec);
        claim["metadata"]["namespace"] = json!("team");
        claim
    };
    let refused = |name: &str| {
        eventually(&format!("{name} is refused"), || {
            let text = world.kubectl(&["get", CLAIM, name, "-n", "team", "-o", "json"]);
            let claim: Value = serde_json::from_str(&text).unwrap();
            if is(&claim, "Synced", "False") { Ok(claim) } else { Err(text) }
        })
    };

    as_eve(&mine("forged", json!({"resourceRef": store_ref(store)})));
    let forged = refused("forged");
    assert!(message(&forged, "Synced").contains("belongs to another claim (another namespace)"), "{forged}");

    as_eve(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "taken-conn", "namespace": "team"},
        "stringData": {"mine": "x"}}),
    );
    as_eve(&mine("taken", json!({"classRef": class_ref("c")})));
    let taken = refused("taken");
    assert!(message(&taken, "Synced").starts_with("cannot establish control of existing"), "{taken}");

    as_eve(&mine("tricky", json!({"classSelector": {"matchLabels": {"kind": "RedisCluster"}}})));
    assert!(refused("tricky")["spec"]["classRef"].is_null());

    // One that says that it is a copy of theirs, and has an owner who might have one.
    let owner = json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster", "name": "forged",
        "uid": forged["metadata"]["uid"], "controller": true});
    as_eve(&json!({"apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1",
        "metadata": {"name": "loot", "namespace": "team", "ownerReferences": [owner], "annotations": {
            "from.propagate.crossplane.io/namespace": source["metadata"]["namespace"],
            "from.propagate.crossplane.io/name": source["metadata"]["name"],
            "from.propagate.crossplane.io/uid": source["metadata"]["uid"]}}}));
    // Theirs follows the next change, so by then hers would have, too.
    let name = source["metadata"]["name"].as_str().unwrap();
    world.patch("secret", name, &json!({"data": {"again": "eA=="}}));
    world.wait_for("secret", "theirs-conn", "followed", |it| it["data"]["again"] == "eA==");
    let hers: Value =
        serde_json::from_str(&world.kubectl(&["get", "secrets", "-n", "team", "-o", "json"])).unwrap();
    for secret in hers["items"].as_array().unwrap() {
        assert!(secret["data"]["password"].is_null() && secret["data"]["again"].is_null(), "{secret}");
    }
    let untouched = world.get(CLAIM, "theirs").unwrap();
    assert_eq!(untouched["status"]["bindingPhase"], "Bound");
}
