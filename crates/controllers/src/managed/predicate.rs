//! Which changes of a managed resource are worth a pass.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use concert_model::Encoded;
use concert_model::condition::{self, Status};
use serde_json::Value;

use super::vocabulary::{annotation, condition as kind};

/// Annotations that we write on the way, and whose change tells us nothing.
const OUR_OWN: [&str; 3] = [annotation::CREATE_PENDING, annotation::CREATE_FAILED, annotation::CREATE_TOKEN];

/// Differs when generation, labels or annotations other than our own have changed; and, once the
/// object is being deleted, when somebody took a finalizer away. Writes of status wake nobody.
pub fn fingerprint(object: &Encoded) -> u64 {
    // Keyed with zeros, so the same in each process; it need only differ, not to be kept.
    let mut hasher = DefaultHasher::new();
    let head = object.head();
    (&head.uid, head.generation, &head.labels, head.deleted_at).hash(&mut hasher);
    let metadata: Value = serde_json::from_slice(object.body().metadata()).unwrap_or_default();
    let annotations = metadata.get("annotations").and_then(Value::as_object);
    for (name, value) in annotations.into_iter().flatten() {
        if !OUR_OWN.contains(&name.as_str()) {
            (name, value.as_str()).hash(&mut hasher);
        }
    }
    if head.deleted_at.is_some() {
        metadata.get("finalizers").map(ToString::to_string).hash(&mut hasher);
    }
    hasher.finish()
}

/// What an object says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Of whatever generation.
    pub is_ready: bool,
    /// Of whatever generation.
    pub is_synced: bool,
    /// Whether all is well, so that it need not be looked at before its poll when a controller starts.
    pub is_settled: bool,
}

/// What `object` says of itself.
pub fn standing(object: &Encoded) -> Standing {
    let status: Value = serde_json::from_slice(object.body().status()).unwrap_or_default();
    let holds = |name| condition::find(&status, name).filter(|it| it.status == Status::True);
    let (ready, synced) = (holds(kind::READY), holds(kind::SYNCED));
    let (is_ready, is_synced) = (ready.is_some(), synced.is_some());
    let is_current = |it: condition::Condition| it.observed_generation == Some(object.head().generation);
    let is_settled =
        object.head().deleted_at.is_none() && ready.is_some_and(is_current) && synced.is_some_and(is_current);
    Standing { is_ready, is_synced, is_settled }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use concert_model::{Body, Head, Object, ResourceVersion, Timestamp, Uid};
    use serde_json::json;

    use super::*;

    fn encoded(object: &Object, generation: i64, deleted_at: Option<Timestamp>) -> Encoded {
        let head = Head {
            version: "v1".into(),
            uid: Uid("u".into()),
            generation,
            created_at: Timestamp::UNIX_EPOCH,
            deleted_at,
            labels: object.labels(),
            owners: Vec::new(),
            fields: Default::default(),
        };
        let body = Body::encode(object.key().unwrap(), head, object);
        Encoded::new(Arc::new(body), ResourceVersion("1".into()))
    }

    fn object() -> Object {
        Object::from_value(json!({"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": "a", "finalizers": ["x.dev/a"]}}))
        .unwrap()
    }

    #[test]
    fn our_own_notes_and_status_wake_nobody() {
        let before = fingerprint(&encoded(&object(), 1, None));
        let mut changed = object();
        changed.set_annotation(annotation::CREATE_PENDING, "t");
        changed.set_annotation(annotation::CREATE_FAILED, "t");
        changed.set_annotation(annotation::CREATE_TOKEN, "t");
        changed.set("status", json!({"conditions": []}));
        changed.remove_finalizer("x.dev/a");
        assert_eq!(fingerprint(&encoded(&changed, 1, None)), before);
    }

    #[test]
    fn what_people_change_counts() {
        let before = fingerprint(&encoded(&object(), 1, None));
        let mut labelled = object();
        labelled.set_label("a", "b");
        let mut annotated = object();
        annotated.set_annotation(annotation::CREATE_SUCCEEDED, "t");
        for changed in
            [encoded(&labelled, 1, None), encoded(&annotated, 1, None), encoded(&object(), 2, None)]
        {
            assert_ne!(fingerprint(&changed), before);
        }
    }

    #[test]
    fn a_finalizer_that_goes_counts_once_the_object_is_to_go() {
        let deleted_at = Some(Timestamp::UNIX_EPOCH);
        let mut less = object();
        less.remove_finalizer("x.dev/a");
        assert_ne!(
            fingerprint(&encoded(&less, 1, deleted_at)),
            fingerprint(&encoded(&object(), 1, deleted_at))
        );
    }

    #[test]
    fn only_what_is_ready_and_synced_for_its_generation_is_settled() {
        let condition = |kind: &str| json!({"type": kind, "status": "True", "observedGeneration": 1});
        let mut object = object();
        object.set("status", json!({"conditions": [condition("Ready"), condition("Synced")]}));
        let said = |generation, deleted_at| standing(&encoded(&object, generation, deleted_at));
        let well = Standing { is_ready: true, is_synced: true, is_settled: true };
        assert_eq!(said(1, None), well);
        assert_eq!(said(2, None), Standing { is_settled: false, ..well });
        assert_eq!(said(1, Some(Timestamp::UNIX_EPOCH)), Standing { is_settled: false, ..well });
    }
}
