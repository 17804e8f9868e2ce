//! What to do about a definition, given what is left of its objects. Touches nothing: `run.rs` has the
//! hands.

use concert_model::condition::{self, Condition, Status};
use concert_model::{GroupKind, Object, Timestamp};
use concert_store::local::CLEANUP_FINALIZER;
use serde_json::Value;

use super::super::contents::Remains;
pub use super::super::leaving::Step;
use super::super::vocabulary::definition::{COMPLETED, FAILED, IN_PROGRESS, TERMINATING};

/// Whether its objects are to go.
pub fn is_terminating(definition: &Object) -> bool {
    definition.deleted_at().is_some() && definition.finalizers().iter().any(|it| it == CLEANUP_FINALIZER)
}

/// The kind whose objects are this definition's to take along. None for one that was never accepted:
/// what goes by that name belongs to another.
pub fn kind(definition: &Object) -> Option<GroupKind> {
    let established = condition::find(definition.status(), "Established")?;
    let text = |pointer| definition.pointer(pointer).and_then(Value::as_str);
    let kind = GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?);
    (established.status == Status::True).then_some(kind)
}

/// What to do next about `definition`.
pub fn decide(definition: &Object, remains: &Remains, now: Timestamp) -> Step {
    if !is_terminating(definition) {
        return Step::Rest;
    }
    // One that goes with this finalizer needs no last words.
    if remains.is_empty() && definition.finalizers().len() == 1 {
        return Step::Finish;
    }
    let mut status = definition.status().clone();
    condition::set(&mut status, condition(remains), now);
    match (status == *definition.status(), remains.is_empty()) {
        (false, _) => Step::Report(status),
        (true, true) => Step::Finish,
        (true, false) => Step::Rest,
    }
}

fn condition(remains: &Remains) -> Condition {
    if !remains.failures.is_empty() {
        return Condition::new(TERMINATING, Status::True, FAILED, remains.failures.join("; "));
    }
    if remains.is_empty() {
        return Condition::new(TERMINATING, Status::False, COMPLETED, "removed all instances");
    }
    let finalizers: Vec<&str> = remains.finalizers.keys().map(String::as_str).collect();
    let message = format!("{} instances remain, with finalizers {}", remains.count(), finalizers.join(", "));
    Condition::new(TERMINATING, Status::True, IN_PROGRESS, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(finalizers: &[&str], established: &str) -> Object {
        Object::from_value(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com", "finalizers": finalizers,
                "deletionTimestamp": "2026-11-15T20:31:16Z"},
            "spec": {"group": "example.com", "names": {"kind": "Widget"}},
            "status": {"conditions": [{"type": "Established", "status": established}]},
        }))
        .unwrap()
    }

    fn held() -> Remains {
        let finalizers = [("a.dev/f".to_owned(), 2), ("b.dev/g".to_owned(), 1)].into();
        Remains { kinds: [("widgets".to_owned(), 2)].into(), finalizers, ..Remains::default() }
    }

    #[test]
    fn only_an_accepted_definition_has_objects() {
        let widget = GroupKind::new("example.com", "Widget");
        assert_eq!(kind(&definition(&[], "True")), Some(widget));
        assert_eq!(kind(&definition(&[], "False")), None);
    }

    #[test]
    fn it_goes_when_no_objects_are_left() {
        let now = Timestamp::UNIX_EPOCH;
        let definition = definition(&[CLEANUP_FINALIZER], "True");
        assert_eq!(decide(&definition, &Remains::default(), now), Step::Finish);
        let failed = Remains { failures: vec!["no".into()], ..Remains::default() };
        assert!(matches!(decide(&definition, &failed, now), Step::Report(_)));
    }

    #[test]
    fn it_says_once_what_it_waits_for() {
        let now = Timestamp::UNIX_EPOCH;
        let mut definition = definition(&[CLEANUP_FINALIZER, "other.dev/f"], "True");
        let Step::Report(status) = decide(&definition, &held(), now) else { panic!("silent") };
        let told = condition::find(&status, TERMINATING).unwrap();
        assert_eq!(told.message, "2 instances remain, with finalizers a.dev/f, b.dev/g");
        definition.set("status", status);
        assert_eq!(decide(&definition, &held(), now), Step::Rest);
        let Step::Report(status) = decide(&definition, &Remains::default(), now) else { panic!("silent") };
        definition.set("status", status);
        assert_eq!(decide(&definition, &Remains::default(), now), Step::Finish);
    }

    #[test]
    fn one_that_does_not_wait_for_objects_is_left_alone() {
        let definition = definition(&["other.dev/f"], "True");
        assert_eq!(decide(&definition, &held(), Timestamp::UNIX_EPOCH), Step::Rest);
    }
}
