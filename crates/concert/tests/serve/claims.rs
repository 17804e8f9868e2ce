//! Claims on a control plane of our own, from the folder of manifests that is shipped.

use serde_json::{Value, json};

use crate::cloud::World;
use crate::wait::eventually;
use crate::wire::{call, send};

const CLAIMS: &str = "/apis/cache.crossplane.io/v1alpha1/namespaces/default/redisclusters";
const DEFINITIONS: &str = "/apis/concert.dev/v1alpha1/claimdefinitions";
const SHIPPED: [&str; 3] = [
    include_str!("../../../../deploy/claims/redisclusters.yaml"),
    include_str!("../../../../deploy/claims/classes.yaml"),
    include_str!("../../../../deploy/claims/definitions.yaml"),
];
const EXAMPLE: [&str; 3] = [
    include_str!("../../../../examples/claims/memorystore.yaml"),
    include_str!("../../../../examples/claims/policy.yaml"),
    include_str!("../../../../examples/claims/claim.yaml"),
];

fn world() -> World {
    let world = World::with_claims(3);
    for text in SHIPPED.iter().chain(&EXAMPLE[..1]) {
        world.apply_all(text);
    }
    eventually("the definition is ready", || {
        let definition = world.json("GET", &format!("{DEFINITIONS}/rediscluster"), &Value::Null);
        let ready = &definition["status"]["conditions"][0];
        if ready["status"] == "True" { Ok(()) } else { Err(definition.to_string()) }
    });
    world
}

fn claim(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

fn selecting(grade: &str) -> Value {
    json!({"classSelector": {"matchLabels": {"grade": grade}}, "engineVersion": "3.2",
        "writeConnectionSecretToRef": {"name": "redis-conn"}})
}

fn explained(world: &World, name: &str) -> (String, Vec<String>) {
    let told = world.json("GET", &format!("{CLAIMS}/{name}/explain"), &Value::Null);
    let links = told["chain"].as_array().cloned().unwrap_or_default();
    let links = links.iter().map(|it| it["relation"].as_str().unwrap_or_default().to_owned());
    (told["sentence"].as_str().unwrap_or_default().to_owned(), links.collect())
}

#[test]
fn a_claim_is_planned_explained_bound_and_let_go() {
    let world = world();
    let planned = world.plan_of(&claim("app", &selecting("prod")));
    assert_eq!(planned["action"], "create", "{planned}");
    let reason = planned["reason"].as_str().unwrap();
    assert!(
        reason.contains("CloudMemorystoreInstanceClass redis-ha makes a CloudMemorystoreInstance"),
        "{reason}"
    );
    let changes = planned["changes"].to_string();
    assert!(changes.contains("REDIS_3_2"), "{changes}");

    world.json("POST", CLAIMS, &claim("app", &selecting("prod")));
    eventually("it is bound", || {
        let claim = world.json("GET", &format!("{CLAIMS}/app"), &Value::Null);
        if claim["status"]["bindingPhase"] == "Bound" { Ok(()) } else { Err(claim.to_string()) }
    });
    let (sentence, links) = explained(&world, "app");
    assert!(sentence.contains("is ready"), "{sentence}");
    for relation in ["class", "managed", "config", "provider"] {
        assert!(links.iter().any(|it| it == relation), "{relation}: {links:?}");
    }
    let secret = world.json("GET", "/api/v1/namespaces/default/secrets/redis-conn", &Value::Null);
    assert!(secret["data"]["password"].is_string());

    world.json("DELETE", &format!("{CLAIMS}/app"), &json!({}));
    eventually("it and its resource are gone", || {
        match call(&world.address, "GET", &format!("{CLAIMS}/app"), "") {
            Some((404, _)) if world.api.cloud().truth().live().is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

#[test]
fn the_example_ends_in_a_secret() {
    let world = world();
    EXAMPLE.iter().for_each(|text| world.apply_all(text));
    eventually("the claim is bound", || {
        let claim = world.json("GET", &format!("{CLAIMS}/app-redis"), &Value::Null);
        if claim["status"]["bindingPhase"] == "Bound" { Ok(()) } else { Err(claim.to_string()) }
    });
    let secret = world.json("GET", "/api/v1/namespaces/default/secrets/redis-conn", &Value::Null);
    assert!(secret["data"]["endpoint"].is_string());
}

#[test]
fn a_claim_that_waits_is_explained_in_one_sentence() {
    let world = world();
    world.json("POST", CLAIMS, &claim("app", &selecting("test")));
    eventually("it says why", || match explained(&world, "app").0 {
        sentence if sentence.contains("is not ready: no class matches spec.classSelector") => Ok(()),
        sentence => Err(sentence),
    });
    let planned = world.plan_of(&claim("other", &selecting("test")));
    assert_eq!(planned["action"], "unknown", "{planned}");
}

#[test]
fn a_definition_with_a_bad_expression_is_refused_by_place() {
    let world = world();
    let mut bad = world.json("GET", &format!("{DEFINITIONS}/rediscluster"), &Value::Null);
    bad["metadata"] = json!({"name": "bad"});
    bad["spec"]["implementations"][0]["mapping"][0]["expression"] = json!("claim.");
    let (code, text) = call(&world.address, "POST", DEFINITIONS, &bad.to_string()).unwrap();
    assert_eq!(code, 422, "{text}");
    assert!(text.contains("spec.implementations[0].mapping[0].expression"), "{text}");
}

#[test]
fn a_definition_is_refused_for_fields_that_its_kinds_do_not_have_and_not_for_kinds_that_may_come() {
    let world = world();
    let mut definition = world.json("GET", &format!("{DEFINITIONS}/rediscluster"), &Value::Null);
    definition["metadata"] = json!({"name": "other"});
    let mapping = "/spec/implementations/0/mapping/0";
    for (field, bad, words) in [
        ("to", "spec.forProvider.redisVersoin", "there is no field \\\"redisVersoin\\\""),
        ("expression", "claim.spec.engineVersoin", "undefined field 'engineVersoin'"),
    ] {
        let mut broken = definition.clone();
        broken.pointer_mut(mapping).unwrap()[field] = json!(bad);
        let (code, text) = call(&world.address, "POST", DEFINITIONS, &broken.to_string()).unwrap();
        assert_eq!(code, 422, "{text}");
        let place = format!("spec.implementations[0].mapping[0].{field}");
        assert!(text.contains(&place) && text.contains(words), "{text}");
    }
    for field in ["claim", "policy"] {
        definition["spec"][field]["kind"] = json!(format!("Yet{field}"));
    }
    world.json("POST", DEFINITIONS, &definition);
}

#[test]
fn a_claim_is_not_explained_by_what_belongs_to_another() {
    let world = world();
    world.json("POST", CLAIMS, &claim("theirs", &selecting("prod")));
    let managed = eventually("it is bound", || {
        let claim = world.json("GET", &format!("{CLAIMS}/theirs"), &Value::Null);
        match claim["status"]["bindingPhase"] == "Bound" {
            true => Ok(claim["spec"]["resourceRef"].clone()),
            false => Err(claim.to_string()),
        }
    });
    world.json("POST", CLAIMS, &claim("forged", &json!({"resourceRef": managed})));
    eventually("it is refused", || match explained(&world, "forged").0 {
        sentence if sentence.contains("belongs to another claim") => Ok(()),
        sentence => Err(sentence),
    });
    let (_, links) = explained(&world, "forged");
    let is_theirs = |it: &&String| ["managed", "config", "reference", "provider"].contains(&it.as_str());
    assert_eq!(links.iter().find(is_theirs), None, "neither its state nor its account");

    // Nor by what is of another kind altogether, or has an owner's name and not its uid. It is held, for
    // whose owner is not there is collected.
    let node = json!({"apiVersion": "v1", "kind": "Namespace", "name": "default"});
    let mut curious = claim("curious", &json!({"classRef": node}));
    curious["metadata"]["finalizers"] = json!(["example.com/held"]);
    curious["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "guessed"}]);
    world.json("POST", CLAIMS, &curious);
    let told = world.json("GET", &format!("{CLAIMS}/curious/explain"), &Value::Null);
    let links = told["chain"].as_array().unwrap();
    assert!(links.iter().all(|it| it["relation"] != "class"), "{told}");
    assert!(links.iter().all(|it| it["relation"] != "owner" || it["state"] == "missing"), "{told}");
}

#[test]
fn the_author_of_a_claim_cannot_leak_what_was_made_for_it() {
    let world = world();
    world.json("POST", CLAIMS, &claim("app", &selecting("prod")));
    eventually("it is bound", || {
        let claim = world.json("GET", &format!("{CLAIMS}/app"), &Value::Null);
        if claim["status"]["bindingPhase"] == "Bound" { Ok(()) } else { Err(claim.to_string()) }
    });
    for (field, value) in [
        ("apiVersion", "database.gcp.crossplane.io/v1beta1"),
        ("kind", "CloudSQLInstance"),
        ("name", "another"),
    ] {
        let patch = json!({"spec": {"resourceRef": {field: value}}}).to_string();
        let path = format!("{CLAIMS}/app");
        let (code, text) =
            send(&world.address, "PATCH", &path, "application/merge-patch+json", &patch).unwrap();
        assert_eq!(code, 422, "{field}: {text}");
        assert!(text.contains("resourceRef cannot change once it is set"), "{field}: {text}");
    }
    world.json("DELETE", &format!("{CLAIMS}/app"), &json!({}));
    eventually("nothing is left of it", || match world.api.cloud().truth().live().len() {
        0 => Ok(()),
        live => Err(live.to_string()),
    });
}

/// Kinds of a cloud whose provider is yet to come, for the same claim kind.
fn define_orphans(world: &World) {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut status = free.clone();
    status["properties"] = json!({"bindingPhase": {"type": "string"}});
    let schema =
        json!({"type": "object", "properties": {"spec": free, "specTemplate": free, "status": status}});
    for (kind, plural) in [("OrphanClass", "orphanclasses"), ("Orphan", "orphans")] {
        let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema}});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.orphan.dev")},
            "spec": {"group": "orphan.dev", "scope": "Cluster", "names": {"kind": kind, "plural": plural},
                "versions": [version]}});
        world.apply_all(&definition.to_string());
    }
    let kind = |group: &str, kind: &str| json!({"apiVersion": group, "kind": kind});
    let made =
        json!({"class": kind("orphan.dev/v1", "OrphanClass"), "managed": kind("orphan.dev/v1", "Orphan")});
    let claim = kind("cache.crossplane.io/v1alpha1", "RedisCluster");
    let definition = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "ClaimDefinition",
        "metadata": {"name": "orphan"}, "spec": {"claim": claim, "implementations": [made]}});
    let class = json!({"apiVersion": "orphan.dev/v1", "kind": "OrphanClass", "metadata": {"name": "c"},
        "specTemplate": {"writeConnectionSecretsToNamespace": "default", "forProvider": {}}});
    for object in [definition, class] {
        world.apply_all(&object.to_string());
    }
}

#[test]
fn a_class_whose_kind_nobody_serves_is_said_and_others_are_unaffected() {
    let world = world();
    define_orphans(&world);
    let class = json!({"apiVersion": "orphan.dev/v1", "kind": "OrphanClass", "name": "c"});
    world.json("POST", CLAIMS, &claim("lost", &json!({"classRef": class})));
    world.json("POST", CLAIMS, &claim("app", &selecting("prod")));
    eventually("the claim says what it waits for", || {
        let claim = world.json("GET", &format!("{CLAIMS}/lost"), &Value::Null);
        let mut all = claim["status"]["conditions"].as_array().into_iter().flatten();
        let ready = all.find(|it| it["type"] == "Ready").cloned().unwrap_or_default();
        let is_said = ready["message"].as_str().unwrap_or_default().starts_with("waiting for Orphan ");
        if is_said && ready["status"] == "False" { Ok(()) } else { Err(claim.to_string()) }
    });
    let (sentence, links) = explained(&world, "lost");
    assert!(sentence.contains("no provider serves Orphan.orphan.dev"), "{sentence}");
    assert!(links.iter().any(|it| it == "managed"), "{links:?}");
    eventually("the other is bound", || {
        let claim = world.json("GET", &format!("{CLAIMS}/app"), &Value::Null);
        if claim["status"]["bindingPhase"] == "Bound" { Ok(()) } else { Err(claim.to_string()) }
    });
}

#[test]
fn a_plan_shows_nothing_of_what_another_claim_has() {
    let world = world();
    world.json("POST", CLAIMS, &claim("theirs", &selecting("prod")));
    let theirs = eventually("it is bound", || {
        let claim = world.json("GET", &format!("{CLAIMS}/theirs"), &Value::Null);
        if claim["status"]["bindingPhase"] == "Bound" { Ok(claim) } else { Err(claim.to_string()) }
    });
    // By the uid of another claim one would be shown how that one's resource differs.
    let mut forged = claim("forged", &selecting("prod"));
    forged["metadata"]["uid"] = theirs["metadata"]["uid"].clone();
    assert_eq!(world.plan_of(&forged)["action"], "create");
    let named = claim("forged", &json!({"resourceRef": theirs["spec"]["resourceRef"]}));
    let planned = world.plan_of(&named);
    assert_eq!(planned["action"], "unknown", "{planned}");
    assert!(planned["reason"].as_str().unwrap().contains("belongs to another claim"), "{planned}");
    let mut missing = named.clone();
    missing["spec"]["resourceRef"]["name"] = json!("none");
    let planned = world.plan_of(&missing);
    assert!(planned["reason"].as_str().unwrap().contains("does not exist"), "{planned}");
}
