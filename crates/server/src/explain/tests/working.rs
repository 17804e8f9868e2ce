use concert_engine::Phase;
use serde_json::json;

use super::scene::{Scene, after, bucket, condition, not_synced, object, ready, synced, time};
use crate::explain::{Facts, Holder, Service};

#[test]
fn quota_says_who_and_when() {
    let text = "create failed: quota exceeded";
    assert_eq!(
        bucket(&[condition("Ready", "False", "Creating", ""), not_synced(text)])
            .with_item(Phase::BackingOff { until: after(42) })
            .failing(0, text)
            .says(),
        "[not ready] Bucket default/a is not ready: create failed: quota exceeded \
         (provider example, next try in 42s)."
    );
}

#[test]
fn a_failure_says_which_attempt() {
    let text = "create failed: name is taken.";
    assert_eq!(
        bucket(&[not_synced(text)]).with_item(Phase::BackingOff { until: after(42) }).failing(3, text).says(),
        "[not ready] Bucket default/a is not ready: create failed: name is taken \
         (provider example, attempt 3, next try in 42s)."
    );
    let due = bucket(&[not_synced(text)]).with_item(Phase::BackingOff { until: after(0) }).failing(4, text);
    assert_eq!(
        due.says(),
        "[not ready] Bucket default/a is not ready: create failed: name is taken \
         (provider example, attempt 4, next try now)."
    );
}

#[test]
fn a_ready_object_may_fail_to_be_looked_at() {
    let text = "observe failed: timeout";
    assert_eq!(
        bucket(&[ready(), not_synced(text)])
            .with_item(Phase::BackingOff { until: after(8) })
            .failing(1, text)
            .says(),
        "[ready] Bucket default/a is ready, but observe failed: timeout (provider example, attempt 1, next try in 8s)."
    );
}

#[test]
fn a_failure_for_good_waits_for_a_change() {
    assert_eq!(
        bucket(&[]).with_item(Phase::Terminal).failing(1, "region xx does not exist").says(),
        "[not ready] Bucket default/a is not ready: region xx does not exist (provider example, attempt 1); \
         nothing more is tried until it is changed."
    );
}

#[test]
fn a_controller_without_provider_is_named() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"},
        "status": {"conditions": [{"type": "Synced", "status": "False", "reason": "Broken"}]}});
    let facts = object(namespace)
        .with_service(Service::NotNeeded)
        .with_item(Phase::BackingOff { until: after(3) })
        .failing(2, "disk full");
    assert_eq!(
        facts.says(),
        "[not ready] Namespace team is not ready: Broken (controller managed/buckets, attempt 2, next try in 3s)."
    );
}

#[test]
fn a_change_that_nobody_has_seen() {
    let facts = || bucket(&[ready(), synced()]).with_metadata("generation", json!(3));
    let text = "[not ready] Bucket default/a is not ready: its change to generation 3 has not been looked at yet, \
                only that to 2";
    assert_eq!(facts().says(), format!("{text}."));
    assert_eq!(
        facts().with_item(Phase::RunningSince(after(0))).says(),
        format!("{text}; a worker is at it.")
    );
    assert_eq!(facts().with_item(Phase::Waiting).says(), format!("{text}; it is next in line for a worker."));
    assert_eq!(facts().with_item(Phase::DueAt(after(7))).says(), format!("{text}; that is to happen in 7s."));
}

#[test]
fn the_first_look_is_under_way() {
    let fresh = |phase| bucket(&[]).with_item(phase).says();
    assert_eq!(
        fresh(Phase::RunningSince(after(0) - std::time::Duration::from_secs(4))),
        "[not ready] Bucket default/a is not ready: controller managed/buckets has been working on it for 4s."
    );
    assert_eq!(
        fresh(Phase::Waiting),
        "[not ready] Bucket default/a is not ready: it is next in line for a worker of controller managed/buckets."
    );
    assert_eq!(
        fresh(Phase::DueAt(after(9))),
        "[not ready] Bucket default/a is not ready: controller managed/buckets looks at it for the first time in 9s."
    );
}

fn record(conditions: &[serde_json::Value]) -> Facts {
    object(json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord",
        "metadata": {"name": "a", "generation": 2},
        "status": {"conditions": conditions, "message": "Syncing DNS record", "observedGeneration": 1}}))
    .with_service(Service::NotNeeded)
}

fn held(facts: Facts) -> Facts {
    let since = time("2026-11-15T11:58:30Z");
    Facts { holder: Some(Holder { worker: "dns_record".into(), host: "h1:77".into(), since }), ..facts }
}

#[test]
fn a_resource_that_a_host_has_says_which_and_since_when() {
    let started = || condition("Ready", "Unknown", "ReconcileStarted", "Reconciliation in progress");
    let text = "[not ready] DnsRecord a is not ready: host h1:77 of worker dns_record has been working on it \
                for 1m30s, since 2026-11-15T11:58:30Z (Syncing DNS record).";
    let running = || Phase::RunningSince(after(0) - std::time::Duration::from_secs(90));
    assert_eq!(held(record(&[started()])).with_item(running()).says(), text);
    assert_eq!(held(record(&[])).says(), text, "it has not begun to report");
    let seen = || {
        let mut facts = record(&[started()]);
        facts.object.set("status", json!({"conditions": [started()], "observedGeneration": 2}));
        facts
    };
    assert_eq!(
        seen().with_item(running()).says(),
        "[not ready] DnsRecord a is not ready: controller managed/buckets has been working on it for 1m30s."
    );
    let steady = held(record(&[ready()]));
    let mut looked_at = steady.clone();
    looked_at.object.set("status", json!({"conditions": [ready()], "observedGeneration": 2}));
    assert_eq!(looked_at.says(), "[ready] DnsRecord a is ready.");
    assert_eq!(steady.with_metadata("generation", json!(3)).says(), text, "its change is being looked at");
}

#[test]
fn being_created() {
    let creating =
        condition("Ready", "False", "Creating", "Waiting for external resource existence to be confirmed");
    assert_eq!(
        bucket(&[creating, synced()]).with_item(Phase::BackingOff { until: after(2) }).says(),
        "[not ready] Bucket default/a is not ready: its external resource is being created (Waiting for external \
         resource existence to be confirmed) (provider example, next try in 2s)."
    );
}
