use concert_model::Object;
use serde_json::{Value, json};

use super::*;
use crate::claims::definition::{Known, parse};

fn kinds(names: &[&str]) -> Kinds {
    names.iter().map(|name| known(name)).collect()
}

fn known(name: &str) -> (GroupKind, Known) {
    let scope = if name.starts_with("Redis") { "Namespaced" } else { "Cluster" };
    let schema = json!({"type": "object", "properties": {
        "status": {"type": "object", "properties": {"bindingPhase": {"type": "string"}}}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": {"scope": scope, "versions": [{"name": "v1", "served": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema}}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]}});
    (GroupKind::new("x.dev", name), Known::of(&Object::from_value(definition).unwrap()))
}

const ALL: [&str; 6] = ["Redis", "RedisPolicy", "AClass", "A", "BClass", "B"];

fn named(kind: &str) -> Value {
    json!({"apiVersion": "x.dev/v1", "kind": kind})
}

fn declared(name: &str, policy: Option<&str>, managed: &[&str]) -> Declared {
    let implementations =
        managed.iter().map(|it| json!({"class": named(&format!("{it}Class")), "managed": named(it)}));
    let spec = json!({"claim": named("Redis"), "policy": policy.map(named),
        "implementations": implementations.collect::<Vec<_>>()});
    let object = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "ClaimDefinition",
        "metadata": {"name": name}, "spec": spec});
    let (definition, errors) = parse(&Object::from_value(object).unwrap());
    Declared { name: name.into(), definition, errors }
}

fn names(cast: &Cast) -> Vec<&str> {
    cast.parts.keys().map(|it| &**it).collect()
}

fn said(cast: &Cast, name: &str) -> (String, String) {
    let condition = &cast.reports[name];
    (condition.reason.clone(), condition.message.clone())
}

#[test]
fn each_implementation_has_those_who_choose_and_one_who_binds() {
    let cast = cast(&[declared("d", Some("RedisPolicy"), &["A"])], &kinds(&ALL));
    assert_eq!(
        names(&cast),
        [
            "claims/defaulter.redis.a.x.dev",
            "claims/redis.a.x.dev",
            "claims/redis.x.dev.defaultclass",
            "claims/scheduler.redis.a.x.dev",
        ]
    );
    assert_eq!(said(&cast, "d"), ("Available".into(), String::new()));
    assert_eq!(cast.reports["d"].status, Status::True);
}

#[test]
fn definitions_of_one_claim_play_together() {
    let both = [declared("d", Some("RedisPolicy"), &["A"]), declared("e", None, &["B"])];
    let cast = cast(&both, &kinds(&ALL));
    assert_eq!(cast.parts.len(), 7);
    let Part::DefaultClass(ensemble) = &cast.parts["claims/redis.x.dev.defaultclass"] else { panic!() };
    assert_eq!(ensemble.implementations.len(), 2);
    assert!(ensemble.policy.is_some());
}

#[test]
fn what_is_not_there_is_waited_for_and_the_rest_plays() {
    let declared = [declared("d", None, &["A", "B"])];
    let cast = cast(&declared, &kinds(&["Redis", "AClass", "A", "BClass"]));
    assert_eq!(cast.parts.len(), 4);
    let (reason, message) = said(&cast, "d");
    assert_eq!(reason, "WaitingForKinds");
    assert_eq!(
        message,
        "spec.implementations[1].managed: B.x.dev is not defined: apply its CustomResourceDefinition"
    );
}

#[test]
fn without_the_claim_nobody_plays() {
    let cast = cast(&[declared("d", None, &["A"])], &kinds(&["AClass", "A"]));
    assert!(cast.parts.is_empty() && cast.claims.is_empty());
    assert_eq!(said(&cast, "d").0, "WaitingForKinds");
}

#[test]
fn of_two_who_want_the_same_the_first_has_it() {
    let both = [declared("e", None, &["A"]), declared("d", None, &["A"])];
    let cast = cast(&both, &kinds(&ALL));
    assert_eq!(said(&cast, "d").0, "Available");
    let (reason, message) = said(&cast, "e");
    assert_eq!(reason, "Taken");
    assert!(message.contains("another definition of Redis.x.dev has AClass.x.dev or A.x.dev"), "{message}");
    assert_eq!(cast.parts.len(), 4);
}

#[test]
fn two_policy_kinds_are_one_too_many() {
    let mut all = kinds(&ALL);
    all.extend([known("RedisOther")]);
    let both = [declared("d", Some("RedisPolicy"), &["A"]), declared("e", Some("RedisOther"), &["B"])];
    let cast = cast(&both, &all);
    assert_eq!(said(&cast, "e").0, "Taken");
    assert_eq!(cast.parts.len(), 7);
}

#[test]
fn one_that_cannot_be_read_says_so_and_harms_nobody() {
    let object = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "ClaimDefinition",
        "metadata": {"name": "bad"}, "spec": {}});
    let (definition, errors) = parse(&Object::from_value(object).unwrap());
    let bad = Declared { name: "bad".into(), definition, errors };
    let cast = cast(&[bad, declared("d", None, &["A"])], &kinds(&ALL));
    assert_eq!(said(&cast, "bad").0, "Invalid");
    assert!(said(&cast, "bad").1.contains("spec.claim: Required value"));
    assert_eq!(cast.parts.len(), 4);
}
