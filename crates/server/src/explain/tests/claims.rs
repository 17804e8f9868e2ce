use concert_model::{GroupKind, ObjectKey};
use serde_json::{Value, json};

use super::scene::{condition, object};
use crate::explain::{Facts, Related, Relation, Service, State, explain};

fn claim(conditions: &[Value]) -> Facts {
    let claim = json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
        "metadata": {"name": "app", "namespace": "team", "generation": 2}, "spec": {},
        "status": {"conditions": conditions}});
    Facts { is_claim: true, ..object(claim) }
}

fn related(relation: Relation, kind: &str, state: State) -> Related {
    let key = ObjectKey::cluster(GroupKind::new("cache.gcp.crossplane.io", kind), "x");
    Related { relation, key, state }
}

#[test]
fn a_claim_says_itself_why_it_is_not_bound() {
    let binding =
        condition("Ready", "False", "waits", "waiting for CloudMemorystoreInstance x: quota exceeded");
    let facts = claim(&[binding, condition("Synced", "True", "fine", "")]);
    assert_eq!(
        explain(&facts).sentence,
        "RedisCluster team/app is not ready: waiting for CloudMemorystoreInstance x: quota exceeded."
    );
    let facts = claim(&[condition("Synced", "False", "failed", "no class matches spec.classSelector")]);
    assert!(explain(&facts).sentence.ends_with("not ready: no class matches spec.classSelector."));
}

#[test]
fn a_provider_that_is_missing_is_named() {
    let waiting = condition("Ready", "False", "waits", "waiting for CloudMemorystoreInstance x");
    let mut facts = claim(&[waiting]);
    facts.related.push(related(Relation::Managed, "CloudMemorystoreInstance", State::Present));
    facts.service = Service::Nobody { silent: Vec::new() };
    let sentence = explain(&facts).sentence;
    assert!(
        sentence.ends_with("; no provider serves CloudMemorystoreInstance.cache.gcp.crossplane.io."),
        "{sentence}"
    );
    facts.service = Service::Down { provider: "gcp".into(), why: "no route".into() };
    let sentence = explain(&facts).sentence;
    assert!(
        sentence.ends_with("provider gcp of CloudMemorystoreInstance x cannot be reached (no route)."),
        "{sentence}"
    );
}

#[test]
fn the_chain_goes_from_class_to_managed_resource_to_provider() {
    let mut facts = claim(&[condition("Ready", "True", "Available", "")]);
    facts.related.push(related(Relation::Managed, "CloudMemorystoreInstance", State::Ready));
    facts.related.push(related(Relation::Class, "CloudMemorystoreInstanceClass", State::Present));
    facts.service = Service::Up { provider: "gcp".into() };
    let explained = explain(&facts);
    assert!(explained.is_ready);
    let relations: Vec<&str> = explained.chain.iter().map(|it| it.relation.as_str()).collect();
    assert_eq!(relations, ["class", "managed", "provider"]);
}

#[test]
fn one_that_nobody_has_looked_at_asks_for_a_definition() {
    assert!(explain(&claim(&[])).sentence.contains("is there a ClaimDefinition of its kind"));
}
