//! Sets of policies that make no sense.

use crate::bench::{Bench, all_well, allowing, on_change, polled};
use crate::faulty::Verb;
use crate::stores::Subject;

async fn is_refused(bench: &Bench, text: &str) {
    assert_eq!(bench.reconcile().await, on_change());
    assert_eq!(bench.conditions().await, [format!("Synced=False/ReconcileError@1: {text}")]);
    assert_eq!(bench.events(), [format!("CannotUseInvalidManagementPolicy: {text}")]);
    assert_eq!((bench.calls(), bench.writes()), (vec![], vec![Verb::Status]));
}

pub async fn that_are_not_supported_are_refused(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(allowing(&["Create", "Delete"])).await;
    let text = "`spec.managementPolicies` is set to a value([Create Delete]) which is not supported. Check docs for supported policies";
    is_refused(&bench, text).await;
}

pub async fn are_taken_once_they_make_sense(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(allowing(&["Create", "Delete"])).await;
    assert_eq!(bench.reconcile().await, on_change());
    bench.edit(allowing(&["Observe", "Create", "Delete"])).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(2));
}

pub async fn cannot_be_used_where_the_feature_is_off(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.has_policies = false;
    bench.declare(allowing(&["Observe"])).await;
    let text =
        "`spec.managementPolicies` is set to a non-default value([Observe]) but the feature is not enabled";
    is_refused(&bench, text).await;
}

pub async fn that_are_empty_pause_nothing_where_the_feature_is_off(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.rules.has_policies = false;
    bench.declare(allowing(&[])).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
}
