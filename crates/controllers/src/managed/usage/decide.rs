//! What to do about a configuration, given who uses it. Touches nothing: `run.rs` has the hands.

use concert_model::condition::{self, Condition, Status};
use concert_model::{Object, Timestamp};
use serde_json::{Value, json};

use super::super::vocabulary::config::{FINALIZER, IN_USE, IN_USE_MESSAGE, TERMINATING};

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Keep it from going while it is used.
    AddFinalizer,
    /// Nobody uses it and it is to go: let it.
    RemoveFinalizer,
    /// Write this status.
    Report(Value),
    /// Nothing is left to do. It is to go, but somebody uses it, if so said.
    Rest {
        /// Whether a deletion waits.
        is_blocked: bool,
    },
}

/// What to do next about `config`, which so many objects use.
pub fn decide(config: &Object, users: usize, now: Timestamp) -> Step {
    let is_deleted = config.deleted_at().is_some();
    let is_held = config.finalizers().iter().any(|it| it == FINALIZER);
    match (is_deleted, is_held) {
        (true, false) => return Step::Rest { is_blocked: false },
        (true, true) if users == 0 => return Step::RemoveFinalizer,
        // Before anything is said about users, for what is said must stay true.
        (false, false) => return Step::AddFinalizer,
        _ => {}
    }
    let status = status(config, users, is_deleted, now);
    if status == *config.status() { Step::Rest { is_blocked: is_deleted } } else { Step::Report(status) }
}

fn status(config: &Object, users: usize, is_deleted: bool, now: Timestamp) -> Value {
    let mut status = config.status().clone();
    if !status.is_object() {
        status = json!({});
    }
    status["users"] = json!(users);
    if is_deleted {
        let terminating = Condition::new(TERMINATING, Status::True, IN_USE, IN_USE_MESSAGE);
        condition::set(&mut status, terminating.observed(config.generation()), now);
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(finalizers: &[&str], deleted: bool, status: Value) -> Object {
        let mut config = json!({"apiVersion": "example.com/v1", "kind": "ProviderConfig",
            "metadata": {"name": "p", "generation": 2, "finalizers": finalizers}, "status": status});
        if deleted {
            config["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Object::from_value(config).unwrap()
    }

    fn decided(config: &Object, users: usize) -> Step {
        decide(config, users, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_configuration_is_held_before_its_users_are_counted() {
        assert_eq!(decided(&config(&[], false, Value::Null), 3), Step::AddFinalizer);
        let report = Step::Report(json!({"users": 3}));
        assert_eq!(decided(&config(&[FINALIZER], false, Value::Null), 3), report);
    }

    #[test]
    fn a_count_that_is_written_is_not_written_again() {
        let counted = config(&[FINALIZER], false, json!({"users": 3, "more": 1}));
        assert_eq!(decided(&counted, 3), Step::Rest { is_blocked: false });
        assert_eq!(decided(&counted, 0), Step::Report(json!({"users": 0, "more": 1})));
    }

    #[test]
    fn a_deletion_waits_for_the_last_user_and_says_so() {
        let Step::Report(status) = decided(&config(&[FINALIZER], true, json!({"users": 1})), 1) else {
            panic!("it says so");
        };
        let condition = condition::find(&status, "Terminating").unwrap();
        assert_eq!((condition.status, &*condition.reason), (Status::True, "InUse"));
        assert_eq!(condition.message, "Blocking deletion while usages still exist");
        assert_eq!(condition.observed_generation, Some(2));
        assert_eq!(decided(&config(&[FINALIZER], true, status), 1), Step::Rest { is_blocked: true });
        assert_eq!(decided(&config(&[FINALIZER, "x.dev/y"], true, Value::Null), 0), Step::RemoveFinalizer);
        assert_eq!(decided(&config(&["x.dev/y"], true, Value::Null), 1), Step::Rest { is_blocked: false });
    }
}
