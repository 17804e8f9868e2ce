use concert_engine::{Phase, Seen, Wait};
use concert_model::{GroupKind, ObjectKey};
use serde_json::json;

use super::scene::{Scene, after, bucket, condition, network, not_synced, ready, synced, up_to_date};
use crate::explain::{Definition, Facts, Relation, Service, State};

#[test]
fn no_provider_serves_the_kind() {
    let nobody = |silent: &[&str]| {
        let silent = silent.iter().map(ToString::to_string).collect();
        bucket(&[]).with_service(Service::Nobody { silent }).says()
    };
    assert_eq!(
        nobody(&[]),
        "[not ready] Bucket default/a is not ready: no provider serves Bucket.cloud.concert.dev."
    );
    assert_eq!(
        nobody(&["other"]),
        "[not ready] Bucket default/a is not ready: no provider serves Bucket.cloud.concert.dev; \
         provider other does not answer and may be the one."
    );
    assert_eq!(
        nobody(&["one", "two"]),
        "[not ready] Bucket default/a is not ready: no provider serves Bucket.cloud.concert.dev; \
         providers one and two do not answer, and one of them may."
    );
}

#[test]
fn provider_unreachable() {
    let down = || Service::Down { provider: "example".into(), why: "connection refused".into() };
    assert_eq!(
        bucket(&[not_synced("connect failed: connection refused")]).with_service(down()).says(),
        "[not ready] Bucket default/a is not ready: provider example cannot be reached (connection refused); \
         it goes on when that answers."
    );
    assert_eq!(
        bucket(&[ready(), synced()]).with_service(down()).says(),
        "[ready] Bucket default/a is ready, but provider example cannot be reached (connection refused); \
         it goes on when that answers."
    );
}

#[test]
fn create_outcome_unknown() {
    let message = "cannot determine creation result - remove the crossplane.io/external-create-pending annotation \
                   if it is safe to proceed; if it was made, first set crossplane.io/external-name to its identity";
    let pending = json!({"crossplane.io/external-create-pending": "2026-11-15T11:58:00Z"});
    let facts = bucket(&[condition("Ready", "False", "Creating", ""), not_synced(message)])
        .with_metadata("annotations", pending)
        .with_item(Phase::DueAt(after(55)));
    assert_eq!(
        facts.says(),
        "[not ready] Bucket default/a is not ready: nobody knows whether the create of 2026-11-15T11:58:00Z made \
         the external resource; look for it, set crossplane.io/external-name if it is there, \
         and then remove crossplane.io/external-create-pending."
    );
}

#[test]
fn paused() {
    let annotation = json!({"crossplane.io/paused": "true"});
    let reason = condition("Synced", "False", "ReconcilePaused", "");
    assert_eq!(
        bucket(std::slice::from_ref(&reason)).with_metadata("annotations", annotation.clone()).says(),
        "[not ready] Bucket default/a is not ready: it is paused by the annotation crossplane.io/paused: \"true\", \
         so nothing is done about it."
    );
    assert_eq!(
        bucket(&[ready(), reason.clone()]).with_metadata("annotations", annotation).says(),
        "[ready] Bucket default/a is ready, but it is paused by the annotation crossplane.io/paused: \"true\", \
         so nothing is done about it."
    );
    let mut by_policy = bucket(&[reason]);
    by_policy.object.set("spec", json!({"managementPolicies": []}));
    assert_eq!(
        by_policy.says(),
        "[not ready] Bucket default/a is not ready: it is paused by an empty list in spec.managementPolicies, \
         so nothing is done about it."
    );
    assert_eq!(
        bucket(&[ready()]).with_item(Phase::Paused).says(),
        "[ready] Bucket default/a is ready, but it is paused by an operator of this server, \
         so nothing is done about it."
    );
}

#[test]
fn provider_config_missing() {
    let key = ObjectKey::cluster(GroupKind::new("cloud.concert.dev", "ClusterProviderConfig"), "default");
    let text = "connect failed: ClusterProviderConfig default does not exist";
    let facts = bucket(&[not_synced(text)])
        .with_item(Phase::ParkedOn(vec![Wait::existence_of(key.clone())]))
        .failing(0, text)
        .with_related(Relation::ProviderConfig, key, State::Missing);
    assert_eq!(
        facts.says(),
        "[not ready] Bucket default/a is not ready: it waits for ClusterProviderConfig default, \
         which does not exist."
    );
}

fn waiting_for_network(state: State) -> Facts {
    let wait = Wait::Object { key: network(), seen: Seen::Unread, condition: Some("Ready".into()) };
    bucket(&[not_synced("reference")]).with_item(Phase::ParkedOn(vec![wait])).with_related(
        Relation::Reference,
        network(),
        state,
    )
}

#[test]
fn reference_not_ready() {
    assert_eq!(
        waiting_for_network(State::NotReady("Creating".into())).says(),
        "[not ready] Bucket default/a is not ready: it waits for Network default/n, which is not ready (Creating)."
    );
    assert_eq!(
        waiting_for_network(State::Missing).says(),
        "[not ready] Bucket default/a is not ready: it waits for Network default/n, which does not exist."
    );
    assert_eq!(
        waiting_for_network(State::Unknown).says(),
        "[not ready] Bucket default/a is not ready: it waits for Network default/n to be Ready."
    );
    assert_eq!(
        waiting_for_network(State::Deleting).says(),
        "[not ready] Bucket default/a is not ready: it waits for Network default/n, which is being deleted."
    );
}

#[test]
fn a_client_without_the_engine_sees_missing_references() {
    let facts = bucket(&[not_synced("cannot resolve references")])
        .with_related(Relation::Owner, network(), State::Missing)
        .with_related(Relation::Reference, network(), State::Missing);
    assert_eq!(
        facts.says(),
        "[not ready] Bucket default/a is not ready: it waits for Network default/n, which does not exist."
    );
    let settled = bucket(&[ready(), synced(), up_to_date()]).with_related(
        Relation::Reference,
        network(),
        State::Missing,
    );
    assert_eq!(settled.says(), "[ready] Bucket default/a is ready and as declared.");
}

#[test]
fn waiting_for_something_that_has_a_name() {
    let waits = vec![Wait::label("section prod of the inventory", None), Wait::existence_of(network())];
    assert_eq!(
        bucket(&[]).with_item(Phase::ParkedOn(waits)).says(),
        "[not ready] Bucket default/a is not ready: it waits for section prod of the inventory \
         and a change of Network default/n."
    );
}

#[test]
fn definition_not_established() {
    let with = |definition: Definition| Facts { definition, ..bucket(&[]) }.says();
    assert_eq!(
        with(Definition::NotEstablished("\"buckets\" is already in use".into())),
        "[not ready] Bucket default/a is not ready: the definition of Bucket.cloud.concert.dev is not established \
         (\"buckets\" is already in use), so nobody works on it."
    );
    assert_eq!(
        with(Definition::Missing),
        "[not ready] Bucket default/a is not ready: its kind Bucket.cloud.concert.dev is not defined any more."
    );
}
