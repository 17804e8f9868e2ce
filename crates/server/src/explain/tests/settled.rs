use concert_engine::Phase;
use serde_json::json;

use super::scene::{Scene, after, bucket, condition, object, ready, synced, up_to_date};
use crate::explain::Service;

#[test]
fn healthy() {
    let healthy = || bucket(&[ready(), synced(), up_to_date()]);
    assert_eq!(
        healthy().with_item(Phase::DueAt(after(35))).says(),
        "[ready] Bucket default/a is ready and as declared; the next look is in 35s."
    );
    assert_eq!(healthy().with_item(Phase::Idle).says(), "[ready] Bucket default/a is ready and as declared.");
    assert_eq!(bucket(&[ready(), synced()]).says(), "[ready] Bucket default/a is ready.");
}

#[test]
fn drift_that_policy_leaves_alone() {
    let drift =
        condition("UpToDate", "False", "UpdateRestricted", "spec.forProvider.size: 3 -> 5\nspec.x: 1 -> 2");
    assert_eq!(
        bucket(&[ready(), synced(), drift]).with_item(Phase::DueAt(after(35))).says(),
        "[ready] Bucket default/a is ready, but it differs from what is declared and is left so, because \
         spec.managementPolicies does not allow Update: spec.forProvider.size: 3 -> 5; spec.x: 1 -> 2."
    );
}

#[test]
fn drift_that_is_being_corrected() {
    let drift = condition("UpToDate", "False", "UpdateRequested", "spec.forProvider.size: 3 -> 5");
    assert_eq!(
        bucket(&[ready(), synced(), drift]).with_item(Phase::DueAt(after(4))).says(),
        "[ready] Bucket default/a is ready, but it is being changed to what is declared: \
         spec.forProvider.size: 3 -> 5 (provider example, next try in 4s)."
    );
    let unexplained = condition("UpToDate", "False", "Other", "");
    assert_eq!(
        bucket(&[ready(), unexplained]).with_service(Service::Unknown).says(),
        "[ready] Bucket default/a is ready, but it differs from what is declared."
    );
}

#[test]
fn kinds_that_have_nothing_to_become() {
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}});
    assert_eq!(
        object(secret.clone()).with_service(Service::NotNeeded).says(),
        "[ready] Secret default/s exists, and its kind has nothing to wait for."
    );
    assert_eq!(
        object(secret).says(),
        "[not ready] Secret default/s exists; nothing is known that works on it."
    );
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"},
        "status": {"phase": "Active"}});
    assert_eq!(
        object(namespace).with_service(Service::NotNeeded).says(),
        "[ready] Namespace team exists, and its kind has nothing to wait for."
    );
}

#[test]
fn served_but_never_asked_about() {
    assert_eq!(
        bucket(&[]).says(),
        "[not ready] Bucket default/a is not ready: provider example has not been asked about it yet."
    );
}

#[test]
fn other_kinds_say_it_in_their_own_words() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "buckets.cloud.concert.dev"}, "status": {"conditions": [
            {"type": "Established", "status": "False", "reason": "NotAccepted", "message": "not all names are accepted"}]}});
    assert_eq!(
        object(definition).with_service(Service::NotNeeded).says(),
        "[not ready] CustomResourceDefinition buckets.cloud.concert.dev is not ready: NotAccepted \
         (not all names are accepted)."
    );
    let progress = json!({"apiVersion": "g.io/v1", "kind": "Job", "metadata": {"name": "j"},
        "status": {"conditions": [{"type": "Started", "status": "True"}]}});
    assert_eq!(
        object(progress).says(),
        "[not ready] Job j is not ready: nothing has been reported about it."
    );
}
