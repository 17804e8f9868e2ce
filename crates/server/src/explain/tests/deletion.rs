use concert_engine::Phase;
use concert_model::Object;
use serde_json::{Value, json};

use super::scene::{Scene, after, bucket, condition, not_synced, object};
use crate::explain::{Facts, Service};

const OURS: &str = "finalizer.managedresource.crossplane.io";

fn leaving(finalizers: &[&str], conditions: &[Value]) -> Facts {
    bucket(conditions)
        .with_metadata("deletionTimestamp", json!("2026-11-15T11:57:00Z"))
        .with_metadata("finalizers", json!(finalizers))
}

#[test]
fn waits_for_the_finalizers_of_others() {
    assert_eq!(
        leaving(&[OURS, "backup.example.com/keep"], &[]).says(),
        "[not ready] Bucket default/a is being deleted (asked 3m ago) and waits for the finalizer \
         backup.example.com/keep of backup.example.com."
    );
    assert_eq!(
        leaving(&["foregroundDeletion", "odd"], &[]).says(),
        "[not ready] Bucket default/a is being deleted (asked 3m ago) and waits for the finalizers foregroundDeletion \
         of the garbage collector, which deletes its dependents first and odd."
    );
}

#[test]
fn waits_for_its_external_resource() {
    let progress = condition("Ready", "False", "Deleting", "80 % emptied");
    assert_eq!(
        leaving(&[OURS], &[progress]).with_item(Phase::BackingOff { until: after(5) }).says(),
        "[not ready] Bucket default/a is being deleted (asked 3m ago) and waits until its external resource is gone \
         (80 % emptied) (provider example, next try in 5s)."
    );
}

#[test]
fn its_external_resource_could_not_be_removed() {
    let text = "delete failed: bucket is not empty";
    assert_eq!(
        leaving(&[OURS], &[not_synced(text)])
            .with_item(Phase::BackingOff { until: after(42) })
            .failing(3, text)
            .says(),
        "[not ready] Bucket default/a is being deleted (asked 3m ago) and its external resource could not be removed: \
         delete failed: bucket is not empty (provider example, attempt 3, next try in 42s)."
    );
}

#[test]
fn nobody_can_remove_the_external_resource() {
    let down = Service::Down { provider: "example".into(), why: "connection refused".into() };
    assert_eq!(
        leaving(&[OURS], &[]).with_service(down).says(),
        "[not ready] Bucket default/a is being deleted (asked 3m ago) and waits for provider example, \
         which cannot be reached (connection refused)."
    );
    assert_eq!(
        leaving(&[OURS], &[]).with_service(Service::Nobody { silent: vec![] }).says(),
        "[not ready] Bucket default/a is being deleted (asked 3m ago) and waits for the finalizer \
         finalizer.managedresource.crossplane.io, but no provider serves its kind that could remove \
         the external resource."
    );
}

#[test]
fn paused_while_being_deleted() {
    let annotation = json!({"crossplane.io/paused": "true"});
    assert_eq!(
        leaving(&[OURS], &[]).with_metadata("annotations", annotation).says(),
        "[not ready] Bucket default/a is being deleted (asked 3m ago) and waits until its pause ends, \
         or until the annotation concert.dev/delete-while-paused: \"true\" allows it."
    );
}

#[test]
fn namespaces_and_definitions_wait_for_what_is_in_them() {
    let namespace = object(json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "team", "deletionTimestamp": "2026-11-15T11:59:18Z"},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating"}}));
    assert_eq!(
        namespace.says(),
        "[not ready] Namespace team is being deleted (asked 42s ago) and waits for the finalizer kubernetes \
         of the namespace controller, which deletes its contents first."
    );
    let mut definition = namespace;
    definition.object = Object::from_value(json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "buckets.cloud.concert.dev", "deletionTimestamp": "2026-11-15T11:59:18Z",
            "finalizers": ["customresourcecleanup.apiextensions.k8s.io"]}}))
    .unwrap();
    assert_eq!(
        definition.says(),
        "[not ready] CustomResourceDefinition buckets.cloud.concert.dev is being deleted (asked 42s ago) and waits for \
         the finalizer customresourcecleanup.apiextensions.k8s.io of the objects of the kind, which go first."
    );
}
