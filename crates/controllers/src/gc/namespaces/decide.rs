//! What to do about a namespace, given what is left in it. Touches nothing: `run.rs` has the hands.

use std::collections::BTreeMap;

use concert_model::condition::{self, Condition, Status};
use concert_model::{Object, Timestamp};
use serde_json::Value;

use super::super::contents::Remains;
pub use super::super::leaving::Step;
use super::super::vocabulary::finalizer::NAMESPACE;
use super::super::vocabulary::namespace::{
    CONTENT_FAILURE, CONTENT_REMAINING, DELETED, DELETION_FAILED, FINALIZERS_REMAINING, NO_FINALIZERS,
    REMOVED, SOME_FINALIZERS, SOME_REMAIN,
};

/// Whether its contents are to go.
pub fn is_terminating(namespace: &Object) -> bool {
    namespace.deleted_at().is_some() && own_finalizers(namespace).any(|it| it == NAMESPACE)
}

/// What to do next about `namespace`.
pub fn decide(namespace: &Object, remains: &Remains, now: Timestamp) -> Step {
    if !is_terminating(namespace) {
        return Step::Rest;
    }
    // One that goes with this finalizer needs no last words.
    let is_last = namespace.finalizers().is_empty() && own_finalizers(namespace).count() == 1;
    if remains.is_empty() && is_last {
        return Step::Finish;
    }
    let mut status = namespace.status().clone();
    for condition in conditions(remains) {
        condition::set(&mut status, condition, now);
    }
    match (status == *namespace.status(), remains.is_empty()) {
        (false, _) => Step::Report(status),
        (true, true) => Step::Finish,
        (true, false) => Step::Rest,
    }
}

/// Takes the finalizer away that stands for the contents.
pub fn finish(namespace: &mut Object) {
    let others: Vec<Value> =
        own_finalizers(namespace).filter(|it| *it != NAMESPACE).map(Value::from).collect();
    namespace.get_mut("spec")["finalizers"] = others.into();
}

fn own_finalizers(namespace: &Object) -> impl Iterator<Item = &str> {
    let list = namespace.spec().get("finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

fn conditions(remains: &Remains) -> [Condition; 3] {
    let failure = match remains.failures.as_slice() {
        [] => Condition::new(
            CONTENT_FAILURE,
            Status::False,
            DELETED,
            "All content successfully deleted, may be waiting on finalization",
        ),
        failures => Condition::new(CONTENT_FAILURE, Status::True, DELETION_FAILED, failures.join("; ")),
    };
    let content = if remains.kinds.is_empty() {
        Condition::new(CONTENT_REMAINING, Status::False, REMOVED, "All content successfully removed")
    } else {
        let listed = listed(&remains.kinds, |kind, count| format!("{kind} has {count} resource instances"));
        let message = format!("Some resources are remaining: {listed}");
        Condition::new(CONTENT_REMAINING, Status::True, SOME_REMAIN, message)
    };
    let finalizers = if remains.finalizers.is_empty() {
        let message = "All content-preserving finalizers finished";
        Condition::new(FINALIZERS_REMAINING, Status::False, NO_FINALIZERS, message)
    } else {
        let listed = listed(&remains.finalizers, |it, count| format!("{it} in {count} resource instances"));
        let message = format!("Some content in the namespace has finalizers remaining: {listed}");
        Condition::new(FINALIZERS_REMAINING, Status::True, SOME_FINALIZERS, message)
    };
    [failure, content, finalizers]
}

fn listed(counts: &BTreeMap<String, usize>, print: impl Fn(&str, usize) -> String) -> String {
    counts.iter().map(|(name, count)| print(name, *count)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn namespace(is_deleting: bool, finalizers: &[&str], own: &[&str]) -> Object {
        let mut metadata = json!({"name": "a", "finalizers": finalizers});
        if is_deleting {
            metadata["deletionTimestamp"] = json!("2026-11-15T20:31:16Z");
        }
        Object::from_value(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata,
            "spec": {"finalizers": own}, "status": {"phase": "Terminating"}}))
        .unwrap()
    }

    fn two_widgets() -> Remains {
        Remains {
            kinds: [("widgets.example.com".to_owned(), 2)].into(),
            finalizers: [("example.com/hold".to_owned(), 1)].into(),
            ..Remains::default()
        }
    }

    #[test]
    fn only_one_that_is_to_go_and_waits_for_its_contents_is_touched() {
        for other in [namespace(false, &[], &["kubernetes"]), namespace(true, &["a.dev/f"], &[])] {
            assert_eq!(decide(&other, &two_widgets(), at(1)), Step::Rest);
        }
    }

    #[test]
    fn an_empty_one_goes_at_once_and_without_last_words() {
        let namespace = namespace(true, &[], &["kubernetes"]);
        assert_eq!(decide(&namespace, &Remains::default(), at(1)), Step::Finish);
    }

    #[test]
    fn what_is_left_is_told_once() {
        let mut namespace = namespace(true, &[], &["kubernetes"]);
        let Step::Report(status) = decide(&namespace, &two_widgets(), at(1)) else { panic!("silent") };
        let remaining = condition::find(&status, CONTENT_REMAINING).unwrap();
        assert_eq!(
            remaining.message,
            "Some resources are remaining: widgets.example.com has 2 resource instances"
        );
        let finalizers = condition::find(&status, FINALIZERS_REMAINING).unwrap();
        let text = "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances";
        assert_eq!((finalizers.message.as_str(), finalizers.status), (text, Status::True));
        assert_eq!(status["phase"], "Terminating");
        namespace.set("status", status);
        assert_eq!(decide(&namespace, &two_widgets(), at(2)), Step::Rest);
    }

    #[test]
    fn one_that_others_keep_says_that_its_contents_are_gone() {
        let mut namespace = namespace(true, &["a.dev/f"], &["kubernetes", "other"]);
        let Step::Report(status) = decide(&namespace, &Remains::default(), at(1)) else { panic!("silent") };
        assert_eq!(condition::find(&status, CONTENT_REMAINING).unwrap().status, Status::False);
        namespace.set("status", status);
        assert_eq!(decide(&namespace, &Remains::default(), at(1)), Step::Finish);
        finish(&mut namespace);
        assert_eq!(namespace.spec()["finalizers"], json!(["other"]));
    }

    #[test]
    fn a_failure_is_told_and_keeps_the_namespace() {
        let namespace = namespace(true, &[], &["kubernetes"]);
        let remains = Remains { failures: vec!["the disk is full".into()], ..Remains::default() };
        let Step::Report(status) = decide(&namespace, &remains, at(1)) else { panic!("silent") };
        let failure = condition::find(&status, CONTENT_FAILURE).unwrap();
        assert_eq!(
            (failure.reason.as_str(), failure.message.as_str()),
            (DELETION_FAILED, "the disk is full")
        );
    }
}
