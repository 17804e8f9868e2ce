//! What is told of claims and their definitions on a real Kubernetes: plans, explanations, conditions.

use std::process::Command;

use serde_json::{Value, json};

use crate::claims::{CLAIM, STORE, Scene, claim, class, class_ref, wait_bound};
use crate::process::{config, reconciler};
use crate::world::{World, condition, is, list_of};

/// What `managed-reconciler plan` says of claims.
fn plan(scene: &Scene, claims: &[Value]) -> Vec<Value> {
    let world = &scene.world;
    let (file, config_file) = (world.new_file("claims.json"), world.new_file("config.json"));
    std::fs::write(&file, list_of(claims).to_string()).unwrap();
    let declared = config(&[("cloud", &scene.provider.address, None)]);
    std::fs::write(&config_file, declared.to_string()).unwrap();
    let mut command = reconciler(world, &config_file);
    let output = command.args(["plan", "-o", "json", "-f"]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn plans_explanations_and_definitions_tell_the_same_as_on_a_plane_of_our_own() {
    let Some(scene) = Scene::open() else { return };
    scene.world.apply(&class("c", json!({}), "Delete"));
    a_plan_says_what_would_become_of_claims_and_makes_nothing(&scene);
    an_explanation_walks_from_a_claim_to_its_class_and_its_managed_resource(&scene.world);
    a_definition_that_fits_no_kind_is_refused_when_it_is_applied(&scene.world);
    a_definition_that_makes_no_sense_says_so_and_harms_no_other(&scene.world);
}

fn a_plan_says_what_would_become_of_claims_and_makes_nothing(scene: &Scene) {
    let world = &scene.world;
    let app = claim("app", json!({"classRef": class_ref("c"), "engineVersion": "3.2"}));
    let lost = claim("lost", json!({"classRef": class_ref("nobody")}));
    let plans = plan(scene, &[app.clone(), lost]);
    let reason = |plan: &Value| plan["reason"].as_str().unwrap().to_owned();
    assert_eq!(plans[0]["action"], "create", "{plans:?}");
    let made = "CloudMemorystoreInstanceClass c makes a CloudMemorystoreInstance of it";
    assert!(reason(&plans[0]).contains(made), "{plans:?}");
    assert!(plans[0]["changes"].to_string().contains("REDIS_3_2"), "{plans:?}");
    assert_eq!(plans[1]["action"], "unknown");
    assert!(reason(&plans[1]).contains("CloudMemorystoreInstanceClass nobody does not exist"), "{plans:?}");
    assert_eq!((world.list(CLAIM).len(), world.list(STORE).len(), scene.provider.count("live")), (0, 0, 0));

    world.apply(&app);
    wait_bound(world, "app");
    let stored = world.get(CLAIM, "app").unwrap();
    let plans = plan(scene, &[stored]);
    assert_eq!(plans[0]["action"], "none");
    assert!(
        reason(&plans[0]).starts_with("it is, or will be, bound to CloudMemorystoreInstance"),
        "{plans:?}"
    );
}

/// What `concert explain` says of a claim, where no server of ours is asked.
fn explain(world: &World, name: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_concert"));
    command.arg("--kubeconfig").arg(world.kubeconfig());
    let output = command.args(["explain", &format!("{CLAIM}/{name}"), "-o", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn an_explanation_walks_from_a_claim_to_its_class_and_its_managed_resource(world: &World) {
    let made = wait_bound(world, "app")["spec"]["resourceRef"]["name"].clone();
    let told = explain(world, "app");
    assert!(told["sentence"].as_str().unwrap().contains("is ready"), "{told}");
    let named = |relation: &str| {
        let chain = told["chain"].as_array().unwrap();
        let found = chain.iter().find(|it| it["relation"] == relation);
        found.unwrap_or_else(|| panic!("no {relation}: {told}"))["name"].as_str().unwrap().to_owned()
    };
    assert!(named("class").ends_with('c'), "{told}");
    assert!(named("managed").ends_with(made.as_str().unwrap()), "{told}");

    world.apply(&claim("lost", json!({"classRef": class_ref("nobody")})));
    world.wait_for(CLAIM, "lost", "refused", |it| is(it, "Synced", "False"));
    let sentence = explain(world, "lost")["sentence"].as_str().unwrap().to_owned();
    assert!(sentence.contains("CloudMemorystoreInstanceClass nobody does not exist"), "{sentence}");
}

/// A definition whose only rule is this.
fn definition(rule: &Value) -> Value {
    let kind = |group: &str, kind: &str| json!({"apiVersion": group, "kind": kind});
    let broken = json!({"class": kind("storage.aws.crossplane.io/v1beta1", "S3BucketClass"),
        "managed": kind("storage.aws.crossplane.io/v1beta1", "S3Bucket"), "mapping": [rule]});
    json!({"apiVersion": "concert.dev/v1alpha1", "kind": "ClaimDefinition", "metadata": {"name": "broken"},
        "spec": {"claim": kind("cache.crossplane.io/v1alpha1", "RedisCluster"), "implementations": [broken]}})
}

fn a_definition_that_fits_no_kind_is_refused_when_it_is_applied(world: &World) {
    for (rule, field, words) in [
        (json!({"to": "metadata.name", "value": "x"}), ".to", "must start with"),
        (json!({"to": "spec.claimRef.name", "value": "x"}), ".to", "not for a mapping to set"),
        (json!({"to": "spec.a", "from": "managed.spec.b"}), ".from", "must start with"),
        (json!({"to": "spec.a"}), "", "oneOf"),
        (json!({"to": "spec.a", "from": "claim.spec.b", "value": 1}), "", "oneOf"),
    ] {
        let refused = world.try_apply(&definition(&rule)).expect_err("it is refused");
        let place = format!("spec.implementations[0].mapping[0]{field}");
        assert!(refused.contains(&place) && refused.contains(words), "{rule}: {refused}");
    }
}

fn a_definition_that_makes_no_sense_says_so_and_harms_no_other(world: &World) {
    world.apply(&definition(&json!({"to": "spec.forProvider.noSuchField", "from": "claim.metadata.name"})));
    let said = world.wait_for("claimdefinitions", "broken", "refused", |it| is(it, "Ready", "False"));
    let ready = condition(&said, "Ready");
    assert_eq!(ready["reason"], "Invalid", "{said}");
    assert!(ready["message"].as_str().unwrap().contains("noSuchField"), "{said}");

    world.apply(&claim("later", json!({"classRef": class_ref("c")})));
    wait_bound(world, "later");
}
