use concert_model::Object;
use serde_json::{Value, json};

use super::*;
use crate::claims::definition::served::{former, remembered, to_remember};
use crate::claims::definition::{Known, parse};

fn kinds(names: &[&str]) -> Kinds {
    names.iter().map(|name| known(name)).collect()
}

fn known(name: &str) -> (GroupKind, Known) {
    let scope = if name.starts_with("Redis") { "Namespaced" } else { "Cluster" };
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"bindingPhase": {"type": "string"}}}}});
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
    Declared { name: name.into(), definition, errors, former: Vec::new(), is_leaving: false }
}

fn names(cast: &Cast) -> Vec<&str> {
    cast.parts.keys().map(|it| &**it).collect()
}

fn said(cast: &Cast, name: &str) -> (String, String) {
    let condition = &cast.reports[name];
    (condition.reason.clone(), condition.message.clone())
}

#[test]
fn each_implementation_has_those_who_choose_one_who_binds_and_one_who_lets_go() {
    let cast = cast(&[declared("d", Some("RedisPolicy"), &["A"])], &kinds(&ALL));
    assert_eq!(
        names(&cast),
        [
            "claims/defaulter/redis.x.dev/a.x.dev",
            "claims/reclaimer/redis.x.dev/a.x.dev",
            "claims/redis.x.dev.defaultclass",
            "claims/redis.x.dev/a.x.dev",
            "claims/scheduler/redis.x.dev/a.x.dev",
        ]
    );
    assert_eq!(said(&cast, "d"), ("Available".into(), String::new()));
    assert_eq!(cast.reports["d"].status, Status::True);
}

#[test]
fn nothing_begins_for_a_definition_that_is_not_held_and_for_the_others_what_is_the_same() {
    let (both, kinds) = ([declared("d", None, &["A"]), declared("e", None, &["B"])], kinds(&ALL));
    let all = cast(&both, &kinds);
    let some = all.without(&BTreeSet::from([Arc::from("e")]), &both, &kinds);
    // Who chooses among A and B waits for both.
    assert_eq!(names(&some), ["claims/reclaimer/redis.x.dev/a.x.dev", "claims/redis.x.dev/a.x.dev"]);
    assert_eq!(all.without(&BTreeSet::new(), &both, &kinds).parts, all.parts);
}

#[test]
fn claim_kinds_of_one_name_in_two_groups_have_controllers_each() {
    let mut all = kinds(&ALL);
    all.insert(GroupKind::new("y.dev", "Redis"), known("Redis").1);
    let mut other = declared("e", None, &["A"]);
    let claim = GroupVersionKind::parse("y.dev/v1", "Redis").unwrap();
    other.definition = other.definition.map(|it| Definition { claim, ..it });
    let cast = cast(&[declared("d", None, &["A"]), other], &all);
    assert_eq!(cast.parts.len(), 10, "{:?}", names(&cast));
    for group in ["x.dev", "y.dev"] {
        let claim = GroupKind::new(group, "Redis");
        assert!(cast.makes(&claim, &GroupKind::new("x.dev", "A")), "{claim}");
        assert!(cast.ensemble_of(&claim).is_some(), "{claim}");
    }
}

#[test]
fn definitions_of_one_claim_play_together() {
    let both = [declared("d", Some("RedisPolicy"), &["A"]), declared("e", None, &["B"])];
    let cast = cast(&both, &kinds(&ALL));
    assert_eq!(cast.parts.len(), 9);
    let Part::DefaultClass(ensemble) = &cast.parts["claims/redis.x.dev.defaultclass"] else { panic!() };
    assert_eq!(ensemble.implementations.len(), 2);
    assert!(ensemble.policy.is_some());
}

#[test]
fn what_is_not_there_is_waited_for_and_the_rest_plays() {
    let declared = [declared("d", None, &["A", "B"])];
    let cast = cast(&declared, &kinds(&["Redis", "AClass", "A", "BClass"]));
    assert_eq!(cast.parts.len(), 6, "nothing is left behind of a kind that is gone: {:?}", names(&cast));
    let Part::Bind(_, lame) = &cast.parts["claims/redis.x.dev/b.x.dev"] else { panic!() };
    let unusable = lame.unusable.as_ref().unwrap();
    assert!(unusable.has_class && !unusable.has_managed, "it lets go of what is bound, and says why not");
    assert!(!cast.makes(&lame.class.group_kind, &lame.managed.group_kind));
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
    assert_eq!(cast.parts.len(), 5);
}

#[test]
fn two_policy_kinds_are_one_too_many() {
    let mut all = kinds(&ALL);
    all.extend([known("RedisOther")]);
    let both = [declared("d", Some("RedisPolicy"), &["A"]), declared("e", Some("RedisOther"), &["B"])];
    let cast = cast(&both, &all);
    assert_eq!(said(&cast, "e").0, "Taken");
    assert_eq!(cast.parts.len(), 9);
}

#[test]
fn one_that_cannot_be_read_says_so_and_harms_nobody() {
    let object = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "ClaimDefinition",
        "metadata": {"name": "bad"}, "spec": {}});
    let (definition, errors) = parse(&Object::from_value(object).unwrap());
    let bad = Declared { name: "bad".into(), definition, errors, former: Vec::new(), is_leaving: false };
    let cast = cast(&[bad, declared("d", None, &["A"])], &kinds(&ALL));
    assert_eq!(said(&cast, "bad").0, "Invalid");
    assert!(said(&cast, "bad").1.contains("spec.claim: Required value"));
    assert_eq!(cast.parts.len(), 5);
}

/// What a definition has served, as its status would say.
fn served(managed: &str) -> Served {
    let status = json!({"served": [{"claim": named("Redis"), "class": named("AClass"),
        "managed": named(managed)}]});
    let object = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "ClaimDefinition",
        "metadata": {"name": "d"}, "status": status});
    remembered(&Object::from_value(object).unwrap()).remove(0)
}

#[test]
fn what_was_taken_out_is_served_and_its_class_is_another_ones() {
    let mut now = declared("d", None, &["A"]);
    now.former = former(&[served("A"), served("B")], now.definition.as_ref());
    assert_eq!(now.former, [served("B")]);
    let cast = cast(&[now.clone()], &kinds(&ALL));
    assert_eq!(cast.parts.len(), 7);
    let Part::Bind(_, lame) = &cast.parts["claims/redis.x.dev/b.x.dev"] else { panic!() };
    let unusable = lame.unusable.as_ref().unwrap();
    assert!(!unusable.has_class && unusable.has_managed);
    assert!(unusable.why.contains("ClaimDefinition d no longer has B.x.dev"), "{}", unusable.why);
    assert!(cast.managed.contains(&GroupKind::new("x.dev", "B")), "its secrets are followed");
    assert_eq!(said(&cast, "d").0, "Available");
    let memory = to_remember(now.definition.as_ref(), &now.former);
    assert_eq!(memory.as_array().unwrap().len(), 2);
}

#[test]
fn who_leaves_makes_nothing_new_unless_another_does() {
    let leaving = Declared { is_leaving: true, ..declared("d", Some("RedisPolicy"), &["A"]) };
    let alone = cast(std::slice::from_ref(&leaving), &kinds(&ALL));
    assert_eq!(names(&alone), ["claims/reclaimer/redis.x.dev/a.x.dev", "claims/redis.x.dev/a.x.dev"]);
    let (claim, managed) = (GroupKind::new("x.dev", "Redis"), GroupKind::new("x.dev", "A"));
    assert!(!alone.makes(&claim, &managed));
    let both = cast(&[leaving, declared("e", None, &["A"])], &kinds(&ALL));
    assert!(both.makes(&claim, &managed));
    assert_eq!(said(&both, "e").0, "Available");
}

#[test]
fn without_policies_nothing_is_chosen_and_what_is_bound_is_served() {
    let cast = cast(&[declared("d", Some("RedisPolicy"), &["A"])], &kinds(&["Redis", "AClass", "A"]));
    assert_eq!(names(&cast), ["claims/reclaimer/redis.x.dev/a.x.dev", "claims/redis.x.dev/a.x.dev"]);
    assert_eq!(said(&cast, "d").0, "WaitingForKinds");
}
