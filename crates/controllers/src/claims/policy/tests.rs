use std::sync::Arc;

use concert_model::GroupKind;
use serde_json::json;

use super::*;
use crate::claims::definition::Implementation;
use crate::claims::vocabulary::annotation;

fn ensemble(has_policy: bool) -> Ensemble {
    let kind = |group: &str, kind: &str| GroupKind::new(group, kind).at_version("v1");
    let implementation = |cloud: &str| {
        Arc::new(Implementation {
            index: 0,
            class: kind(cloud, "StoreClass"),
            managed: kind(cloud, "Store"),
            mapping: Vec::new(),
            allows_external_names: false,
            unusable: None,
        })
    };
    Ensemble {
        claim: kind("cache.dev", "Redis"),
        policy: has_policy.then(|| kind("cache.dev", "RedisPolicy")),
        implementations: vec![implementation("gcp.dev"), implementation("aws.dev")],
        unusable: Vec::new(),
    }
}

fn claim(spec: Value) -> Object {
    Object::from_value(json!({"apiVersion": "cache.dev/v1", "kind": "Redis",
        "metadata": {"name": "a", "namespace": "team"}, "spec": spec}))
    .unwrap()
}

fn policy(name: &str, class: Value) -> Object {
    Object::from_value(json!({"apiVersion": "cache.dev/v1", "kind": "RedisPolicy",
        "metadata": {"name": name, "namespace": "team"}, "defaultClassRef": class}))
    .unwrap()
}

fn class(is_default: &str) -> Object {
    Object::from_value(json!({"apiVersion": "gcp.dev/v1", "kind": "StoreClass", "metadata": {"name": "c",
        "labels": {"grade": "prod"}, "annotations": {annotation::DEFAULT_CLASS: is_default}}}))
    .unwrap()
}

fn reference() -> Value {
    json!({"apiVersion": "gcp.dev/v1", "kind": "StoreClass", "name": "c", "namespace": "ignored"})
}

fn seen(policies: Vec<Object>, classes: Vec<Object>) -> Seen {
    Seen { policies: Some(Ok(policies)), classes: Some(classes) }
}

#[track_caller]
fn said(step: Step) -> (String, Next) {
    match step {
        Step::Rest(Verdict { synced: Some(Err(why)), next, ready: None, .. }) => (why, next),
        other => panic!("{other:?}"),
    }
}

fn silent() -> Step {
    Step::Rest(Verdict::nothing())
}

#[test]
fn policies_are_asked_first_and_classes_only_if_there_is_none() {
    let ensemble = ensemble(true);
    assert_eq!(decide(&claim(json!({})), &ensemble, &Seen::default()), Step::ListPolicies);
    let none = Seen { policies: Some(Ok(Vec::new())), classes: None };
    assert_eq!(decide(&claim(json!({})), &ensemble, &none), Step::ListClasses);
}

#[test]
fn the_one_policy_gives_its_class() {
    let step = decide(&claim(json!({})), &ensemble(true), &seen(vec![policy("p", reference())], vec![]));
    assert_eq!(step, Step::Set(reference()));
}

#[test]
fn a_list_that_fails_is_said_and_tried_again() {
    let failed = Seen { policies: Some(Err("no route".into())), classes: None };
    let (why, next) = said(decide(&claim(json!({})), &ensemble(true), &failed));
    assert_eq!(why, "unable to list policies for claim kind: no route");
    assert_eq!(next, Next::Retry);
}

#[test]
fn without_policy_and_default_it_is_said_what_to_do() {
    let (why, next) = said(decide(&claim(json!({})), &ensemble(true), &seen(vec![], vec![class("false")])));
    assert_eq!(
        why,
        "unable to locate a policy that specifies a default class for claim kind: create a RedisPolicy, annotate a \
         StoreClass.gcp.dev or StoreClass.aws.dev as the default, or set spec.classRef or spec.classSelector"
    );
    assert_eq!(next, Next::After(CLASS_WAIT));
}

#[test]
fn a_default_class_by_annotation_is_enough() {
    let ensemble = ensemble(true);
    assert_eq!(decide(&claim(json!({})), &ensemble, &seen(vec![], vec![class("true")])), silent());
}

#[test]
fn several_policies_are_too_many() {
    let two = vec![policy("p", reference()), policy("q", reference())];
    let (why, next) = said(decide(&claim(json!({})), &ensemble(true), &seen(two, vec![class("true")])));
    assert_eq!(
        why,
        "multiple policies that specify a default class defined for claim kind: p, q; delete all but one"
    );
    assert_eq!(next, Next::After(CLASS_WAIT));
}

#[test]
fn a_policy_that_names_no_class_of_ours_is_refused_until_it_changes() {
    let other = json!({"apiVersion": "x.dev/v1", "kind": "Other", "name": "c"});
    for (class, words) in [(json!(null), "names no class"), (other, "no ClaimDefinition has that")] {
        let step = decide(&claim(json!({})), &ensemble(true), &seen(vec![policy("p", class)], vec![]));
        let (why, next) = said(step);
        assert!(why.starts_with("unable to convert located policy to correct kind: "), "{why}");
        assert!(why.contains(words), "{why}");
        assert_eq!(next, Next::OnChange);
    }
}

#[test]
fn a_definition_without_a_policy_kind_has_only_defaults() {
    let ensemble = ensemble(false);
    assert_eq!(decide(&claim(json!({})), &ensemble, &Seen::default()), Step::ListClasses);
    assert_eq!(decide(&claim(json!({})), &ensemble, &seen(vec![], vec![class("true")])), silent());
    let (why, _) = said(decide(&claim(json!({})), &ensemble, &seen(vec![], vec![])));
    assert!(!why.contains("create a"), "{why}");
}

#[test]
fn a_selector_keeps_policies_out() {
    let claim = claim(json!({"classSelector": {"matchLabels": {"grade": "prod"}}}));
    let policies = vec![policy("p", reference())];
    assert_eq!(decide(&claim, &ensemble(true), &Seen::default()), Step::ListClasses);
    assert_eq!(decide(&claim, &ensemble(true), &seen(policies.clone(), vec![class("false")])), silent());
    let (why, next) = said(decide(&claim, &ensemble(true), &seen(policies, vec![])));
    assert_eq!(
        why,
        "no class matches spec.classSelector: label a StoreClass.gcp.dev or StoreClass.aws.dev, or ask for other labels"
    );
    assert_eq!(next, Next::After(CLASS_WAIT));
}

#[test]
fn a_selector_that_cannot_be_read_says_where() {
    let claim = claim(json!({"classSelector": {"matchLabels": {"a b": "c"}}}));
    let (why, _) = said(decide(&claim, &ensemble(true), &Seen::default()));
    assert!(why.starts_with("spec.classSelector"), "{why}");
}

#[test]
fn those_who_name_something_are_left_to_those_who_bind() {
    let mut resource = reference();
    resource["kind"] = json!("Store");
    for spec in [
        json!({"classRef": reference()}),
        json!({"resourceRef": resource}),
        json!({"resourceRef": resource, "classRef": {"apiVersion": "x.dev/v1", "kind": "Other", "name": "x"}}),
    ] {
        assert_eq!(decide(&claim(spec), &ensemble(true), &Seen::default()), silent());
    }
}

#[test]
fn kinds_that_nobody_binds_are_said() {
    let other = json!({"apiVersion": "x.dev/v1", "kind": "Other", "name": "o"});
    let (why, _) = said(decide(&claim(json!({"classRef": other})), &ensemble(true), &Seen::default()));
    assert_eq!(
        why,
        "spec.classRef names Other o, and no ClaimDefinition has Other.x.dev: name a StoreClass.gcp.dev or \
         StoreClass.aws.dev"
    );
    let (why, _) = said(decide(&claim(json!({"resourceRef": other})), &ensemble(true), &Seen::default()));
    assert!(why.contains("name a Store.gcp.dev or Store.aws.dev"), "{why}");
}

#[test]
fn one_that_is_being_deleted_is_left_alone() {
    let mut claim = claim(json!({}));
    claim.set_metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    assert_eq!(decide(&claim, &ensemble(true), &Seen::default()), silent());
}
