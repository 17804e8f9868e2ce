//! Claims on a real Kubernetes, once the kind ClaimDefinition is there.

use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{Provider, Reconciler, config, workspace};
use crate::world::{EXAMPLE, World, eventually, external_name, is, list_of, message, timed};

pub const CLAIM: &str = "rediscluster";
const BUCKET: &str = "buckets.storage.crossplane.io";
const MADE_BUCKETS: [&str; 2] = ["s3buckets.storage.aws.crossplane.io", "buckets.storage.gcp.crossplane.io"];
pub const STORE: &str = "cloudmemorystoreinstance";
/// In which a secret has to follow, with the time that kubectl takes to see it: of several changes one has to,
/// since the others may have met with a machine that is busy.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(1);
/// Far more than that, for each of them, and far less than it takes if nobody is woken by it.
const FOLLOWED_SECONDS_MAX: i64 = 10;

pub fn class(name: &str, metadata: Value, reclaim: &str) -> Value {
    let mut class = json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1",
        "kind": "CloudMemorystoreInstanceClass", "metadata": metadata,
        "specTemplate": {"writeConnectionSecretsToNamespace": "default", "providerRef": {"name": "gcp"},
            "reclaimPolicy": reclaim, "forProvider": {"tier": "BASIC", "region": "us", "memorySizeGb": 1}}});
    class["metadata"]["name"] = json!(name);
    class
}

pub fn class_ref(name: &str) -> Value {
    json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1", "kind": "CloudMemorystoreInstanceClass",
        "name": name})
}

fn store_ref(name: &str) -> Value {
    json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1", "kind": "CloudMemorystoreInstance", "name": name})
}

pub fn claim(name: &str, mut spec: Value) -> Value {
    spec["writeConnectionSecretToRef"] = json!({"name": format!("{name}-conn")});
    json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

/// A cluster with a reconciler, a provider, and the kinds that a claim needs. Fields are dropped in order:
/// the reconciler ends first.
pub struct Scene {
    reconciler: Reconciler,
    pub provider: Provider,
    pub world: World,
}

impl Scene {
    pub fn open() -> Option<Self> {
        let world = World::apart()?;
        let provider = Provider::start(&world, &["--claims"]);
        let reconciler = reconcile(&world, &provider);
        define(&world);
        Some(Self { reconciler, provider, world })
    }
}

fn reconcile(world: &World, provider: &Provider) -> Reconciler {
    let declared = config(&[("cloud", &provider.address, None)]);
    Reconciler::start(world, &declared, &["--poll-interval", "1h"])
}

/// Takes a claim away by force while nobody is there who could let go of it.
fn tear(world: &World, provider: &Provider, reconciler: &mut Reconciler, name: &str) {
    reconciler.process.kill();
    world.kubectl(&["delete", CLAIM, name, "--wait=false"]);
    world.patch(CLAIM, name, &json!({"metadata": {"finalizers": null}}));
    world.wait_gone(CLAIM, name);
    *reconciler = reconcile(world, provider);
}

/// Defines everything that is shipped for a Redis and for buckets, with an account.
pub fn define(world: &World) {
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
        world.define_file(&workspace().join(file));
    }
    let definitions = workspace().join("deploy/claims/definitions.yaml");
    world.kubectl(&["apply", "-f", definitions.to_str().unwrap()]);
    world.wait_for("claimdefinitions", "rediscluster", "ready", |it| is(it, "Ready", "True"));
}

pub fn wait_bound(world: &World, name: &str) -> Value {
    let bound = world.wait_for(CLAIM, name, "bound", |it| it["status"]["bindingPhase"] == "Bound");
    let secret = world.get("secret", &format!("{name}-conn")).expect("it has a secret");
    assert!(secret["data"]["password"].is_string());
    bound
}

#[test]
fn claims_are_bound_by_whatever_they_say_and_let_go() {
    let Some(mut scene) = Scene::open() else { return };
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
    world.wait_for(CLAIM, "forged", "refused", |it| {
        is(it, "Synced", "False") && message(it, "Synced").contains("belongs to another claim")
    });

    let torn = wait_bound(world, "political")["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned();
    tear(world, &scene.provider, &mut scene.reconciler, "political");
    world.wait_gone(STORE, &torn);

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

    // It plays as soon as the last of them is there, whichever comes last.
    for file in ["managed/cloudsqlinstances.yaml", "mysqlinstances.yaml"] {
        world.define_file(&workspace().join("deploy/claims").join(file));
    }
    world.wait_for("claimdefinitions", "mysqlinstance", "ready", |it| is(it, "Ready", "True"));
}

#[test]
fn the_secret_of_a_claim_follows_that_of_its_resource() {
    let Some(scene) = Scene::open() else { return };
    let world = &scene.world;
    world.apply(&class("c", json!({}), "Delete"));
    world.apply(&claim("app", json!({"classRef": class_ref("c")})));
    let bound = wait_bound(world, "app");
    let source = bound["metadata"]["uid"].as_str().unwrap();
    let mut all_seen = Vec::new();
    for value in ["bmV3", "bmV3ZXI=", "bmV3ZXN0"] {
        world.patch("secret", source, &json!({"data": {"extra": value}}));
        let ((), seen) = timed(|| {
            world.wait_for("secret", "app-conn", "followed", |it| it["data"]["extra"] == value);
        });
        let took = written(world, "app-conn", "claims/") - written(world, source, "kubectl");
        eprintln!(
            "the secret followed within {took} s by the server's clock, seen by kubectl after {seen:?}"
        );
        assert!(took < FOLLOWED_SECONDS_MAX, "it has followed only after {took} s");
        all_seen.push(seen);
    }
    assert!(all_seen.iter().any(|it| *it < FOLLOWS_WITHIN), "none has followed in time: {all_seen:?}");

    // A definition stays for those that are bound by it.
    world.kubectl(&["delete", "claimdefinition", "rediscluster", "--wait=false"]);
    let held = world.wait_for("claimdefinition", "rediscluster", "held", |it| is(it, "Ready", "False"));
    assert!(message(&held, "Ready").starts_with("1 claim is bound by it"), "{held}");
    world.kubectl(&["delete", CLAIM, "app", "--timeout=60s"]);
    world.wait_gone("claimdefinition", "rediscluster");
}

/// When somebody whose name begins like this has last changed a secret, in seconds by the server's clock: how
/// long a test takes to look is no matter.
fn written(world: &World, secret: &str, by: &str) -> i64 {
    let text = world.kubectl(&["get", "secret", secret, "-o", "json", "--show-managed-fields"]);
    let secret: Value = serde_json::from_str(&text).unwrap();
    let entries = secret["metadata"]["managedFields"].as_array().unwrap().iter();
    let theirs = entries.filter(|it| it["manager"].as_str().unwrap().starts_with(by));
    let times = theirs.map(|it| it["time"].as_str().and_then(concert_model::time::parse).unwrap());
    times.max().unwrap_or_else(|| panic!("{by} has not written {text}")).as_second()
}

/// A bucket by what its class has for a label.
fn bucket(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "storage.crossplane.io/v1alpha1", "kind": "Bucket",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"classSelector": {"matchLabels": labels}}})
}

/// Claims that classes of two clouds fit: whoever of their schedulers is first, each has one bucket.
fn race(world: &World) {
    let names: Vec<String> = (0..5).map(|number| format!("raced-{number}")).collect();
    let claims: Vec<Value> = names.iter().map(|it| bucket(it, &json!({"any": "yes"}))).collect();
    world.create(&list_of(&claims));
    for name in &names {
        let bound = world.wait_for(BUCKET, name, "bound", |it| it["status"]["bindingPhase"] == "Bound");
        let made = MADE_BUCKETS.iter().flat_map(|it| world.list(it));
        let its: Vec<Value> =
            made.filter(|it| it["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]).collect();
        assert_eq!(its.len(), 1, "{name} has {its:?}");
        assert_eq!(bound["spec"]["resourceRef"]["kind"], its[0]["kind"]);
        assert_eq!(bound["spec"]["classRef"]["uid"], its[0]["spec"]["classRef"]["uid"]);
    }
}

/// What must not change of a managed resource when another goes.
fn essence(store: &Value) -> [Value; 4] {
    let external = json!(external_name(store));
    [
        store["metadata"]["uid"].clone(),
        store["spec"].clone(),
        store["status"]["bindingPhase"].clone(),
        external,
    ]
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
            "metadata": {"name": "buckets", "labels": {"cloud": cloud, "any": "yes"}},
            "specTemplate": {"writeConnectionSecretsToNamespace": "default", "providerRef": {"name": "gcp"},
                "forProvider": fields}}));
        world.apply(&bucket(&format!("in-{cloud}"), &json!({"cloud": cloud})));
    }
    for (name, kind) in [("in-aws", "S3Bucket"), ("in-gcp", "Bucket")] {
        let bound = world.wait_for(BUCKET, name, "bound", |it| it["status"]["bindingPhase"] == "Bound");
        assert_eq!(bound["spec"]["resourceRef"]["kind"], kind);
    }
    race(world);

    world.apply(&class("c", json!({}), "Delete"));
    let names: Vec<String> = (0..10).map(|number| format!("of-ten-{number}")).collect();
    let ten: Vec<Value> = names.iter().map(|it| claim(it, json!({"classRef": class_ref("c")}))).collect();
    world.create(&list_of(&ten));
    let before: Vec<Value> = names.iter().map(|it| wait_bound(world, it)).collect();
    let made = |claim: &Value| world.get(STORE, claim["spec"]["resourceRef"]["name"].as_str().unwrap());
    let stores: Vec<Value> = before.iter().map(|it| made(it).expect("it is made of something")).collect();
    let gone = before[3]["spec"]["resourceRef"]["name"].as_str().unwrap();
    world.kubectl(&["delete", CLAIM, &names[3], "--timeout=60s"]);
    world.wait_gone(STORE, gone);
    for (number, name) in names.iter().enumerate().filter(|(number, _)| *number != 3) {
        assert_eq!(world.get(CLAIM, name).as_ref(), Some(&before[number]));
        let store = made(&before[number]).expect("it is still there");
        assert_eq!(essence(&store), essence(&stores[number]));
    }
    eventually("what was made for it is gone", || match scene.provider.count("live") {
        16 => Ok(()),
        live => Err(live.to_string()),
    });
}

/// Eve may do everything in the namespace `team`, and Mallory nothing there but claim; neither may do anything
/// elsewhere.
fn let_in(world: &World) {
    world.kubectl(&["create", "namespace", "team"]);
    let bind = |name: &str, role: &str, user: &str| {
        let (role, user) = (format!("--{role}"), format!("--user={user}"));
        world.kubectl(&["create", "rolebinding", name, "-n", "team", &role, &user]);
    };
    let verbs = "--verb=create,get,list,patch,delete";
    let resource = "--resource=redisclusters.cache.crossplane.io";
    world.kubectl(&["create", "role", "claims", "-n", "team", verbs, resource]);
    bind("all", "clusterrole=cluster-admin", "eve");
    bind("claims", "role=claims", "mallory");
    // A real server knows of a binding only some time after it has taken it.
    for (user, resource) in [
        ("eve", "rediscluster.cache.crossplane.io"),
        ("eve", "secret"),
        ("mallory", "rediscluster.cache.crossplane.io"),
    ] {
        eventually(&format!("{user} may write"), || world.may(user, "create", resource, "team"));
    }
}

fn what_is_of_others_cannot_even_be_read(world: &World, store: &str, source: &Value) {
    let source = source["metadata"]["name"].as_str().unwrap();
    for arguments in [
        ["get", "secret", source, "--namespace=default"],
        ["get", "secret", "theirs-conn", "--namespace=default"],
        ["get", "secret", "theirs-conn", "--namespace=team"],
        ["get", CLAIM, "theirs", "--namespace=default"],
        ["get", STORE, store, "--namespace=team"],
        ["delete", STORE, store, "--namespace=team"],
    ] {
        let refused = world.try_kubectl(&[&arguments[..], &["--as=mallory"]].concat()).unwrap_err();
        assert!(refused.contains("Forbidden"), "{arguments:?}: {refused}");
    }
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

    let_in(world);
    what_is_of_others_cannot_even_be_read(world, store, &source);
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
    let hers = |name: &str| -> Result<Value, String> {
        let text = world.try_kubectl(&["get", CLAIM, name, "-n", "team", "-o", "json"])?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    };
    let refused = |name: &str, words: &str| {
        eventually(&format!("{name} is refused"), || {
            let claim = hers(name)?;
            let is_said = is(&claim, "Synced", "False") && message(&claim, "Synced").contains(words);
            if is_said { Ok(claim) } else { Err(claim.to_string()) }
        })
    };

    as_eve(&mine("forged", json!({"resourceRef": store_ref(store)})));
    let forged = refused("forged", "belongs to another claim (another namespace)");

    as_eve(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "taken-conn", "namespace": "team"},
        "stringData": {"mine": "x"}}),
    );
    as_eve(&mine("taken", json!({"classRef": class_ref("c")})));
    refused("taken", "cannot establish control of existing");

    as_eve(&mine("tricky", json!({"classSelector": {"matchLabels": {"kind": "RedisCluster"}}})));
    assert!(refused("tricky", "no class matches spec.classSelector")["spec"]["classRef"].is_null());

    // One that says that it is a copy of theirs, and has an owner who might have one.
    let owner = json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster", "name": "forged",
        "uid": forged["metadata"]["uid"], "controller": true});
    as_eve(&json!({"apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1",
        "metadata": {"name": "loot", "namespace": "team", "ownerReferences": [owner], "annotations": {
            "from.propagate.crossplane.io/namespace": source["metadata"]["namespace"],
            "from.propagate.crossplane.io/name": source["metadata"]["name"],
            "from.propagate.crossplane.io/uid": source["metadata"]["uid"]}}}));
    // Theirs follows a change; then hers is looked at because of hers; and when theirs has followed another
    // one after that, whoever copies has had hers in hand.
    let name = source["metadata"]["name"].as_str().unwrap();
    world.patch("secret", name, &json!({"data": {"again": "eA=="}}));
    world.wait_for("secret", "theirs-conn", "followed", |it| it["data"]["again"] == "eA==");
    world.kubectl(&["label", "secret", "loot", "-n", "team", "--as=eve", "touched=yes"]);
    world.patch("secret", name, &json!({"data": {"later": "eA=="}}));
    world.wait_for("secret", "theirs-conn", "followed again", |it| it["data"]["later"] == "eA==");
    let secrets: Value =
        serde_json::from_str(&world.kubectl(&["get", "secrets", "-n", "team", "-o", "json"])).unwrap();
    for secret in secrets["items"].as_array().unwrap() {
        let is_clean = ["password", "again", "later"].into_iter().all(|it| secret["data"][it].is_null());
        assert!(is_clean, "{secret}");
    }
    for name in ["forged", "taken", "tricky"] {
        let claim = hers(name).unwrap();
        assert_ne!(claim["status"]["bindingPhase"], "Bound", "{claim}");
    }
    let untouched = world.get(CLAIM, "theirs").unwrap();
    assert_eq!(untouched["status"]["bindingPhase"], "Bound");
}
