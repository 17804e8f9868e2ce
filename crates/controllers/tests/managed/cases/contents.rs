//! What is not understood is not lost.

use concert_model::Patch;
use concert_store::Part;
use serde_json::json;

use crate::bench::{Bench, all_well, polled, user};
use crate::stores::Subject;

/// One more than what a double can tell from its neighbour.
const BIG: i64 = 9_007_199_254_740_993;

pub async fn whole_numbers_keep_their_last_digit(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({"spec": {"forProvider": {"size": i64::MAX, "free": BIG}}})).await;
    assert_eq!(bench.reconcile().await, polled());
    let wanted = json!({"size": i64::MAX, "free": BIG});
    assert_eq!(bench.provider.things()["thing-1"], wanted);
    let object = bench.get().await;
    assert_eq!(object.spec()["forProvider"], wanted);
    assert_eq!(object.pointer("/status/atProvider/seen"), Some(&wanted));
    bench.edit(json!({"spec": {"forProvider": {"free": BIG - 1}}})).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.provider.things()["thing-1"]["free"], json!(BIG - 1));
    assert_eq!(bench.conditions().await, all_well(2));
}

pub async fn unknown_fields_stay_where_they_are(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench
        .declare(json!({
            "metadata": {"labels": {"example.com/l": "x"}, "annotations": {"example.com/a": "y"}},
            "spec": {"unknown": {"list": [1, "two", 3.5], "empty": {}}},
            "unheardOf": {"list": [1, "two", 3.5], "empty": {}},
        }))
        .await;
    let theirs = json!({"type": "Custom", "status": "True", "reason": "Theirs", "message": "kept",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "unknown": "kept"});
    let patch = Patch::merge(json!({"status": {"conditions": [theirs]}})).unwrap();
    bench.direct.patch(&bench.key, Part::Status, &patch, &user()).await.unwrap();
    let before = bench.get().await;
    assert_eq!(bench.reconcile().await, polled());
    bench.edit(json!({"spec": {"forProvider": {"size": 2}}})).await;
    assert_eq!(bench.reconcile().await, polled());
    let after = bench.get().await;
    for field in ["/spec/unknown", "/unheardOf", "/metadata/labels"] {
        assert!(after.pointer(field).is_some(), "{field}");
        assert_eq!(after.pointer(field), before.pointer(field), "{field}");
    }
    assert_eq!(after.annotation("example.com/a"), Some("y"));
    assert_eq!(after.status()["conditions"][0], theirs);
}
