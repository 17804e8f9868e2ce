//! Conditions: one per type, and `lastTransitionTime` moves only when `status` changes.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::time::{self, Timestamp};

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can tell.
    Unknown,
}

/// One observation about an object, as `status.conditions` holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is observed: `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: Status,
    /// One word for programs: `ReconcileError`.
    #[serde(default)]
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
    /// The generation this was observed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    #[serde(default)]
    pub last_transition_time: String,
}

impl Condition {
    /// A condition that has no time yet: [`set`] gives it one.
    pub fn new(kind: &str, status: Status, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            status,
            reason: reason.to_owned(),
            message: message.into(),
            observed_generation: None,
            last_transition_time: String::new(),
        }
    }

    /// The same condition, observed for `generation`.
    pub fn observed(mut self, generation: i64) -> Self {
        self.observed_generation = Some(generation);
        self
    }
}

/// The conditions in `status`; those that cannot be read as conditions are left out.
pub fn all(status: &Value) -> Vec<Condition> {
    let list = status.get("conditions").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|c| serde_json::from_value(c.clone()).ok()).collect()
}

/// The condition of this type, if there is one.
pub fn find(status: &Value, kind: &str) -> Option<Condition> {
    all(status).into_iter().find(|c| c.kind == kind)
}

/// Puts `condition` into `status`, in the place of an older one of its type. Says whether anything
/// changed.
///
/// Fields of the stored condition that [`Condition`] does not know are kept.
pub fn set(status: &mut Value, condition: Condition, now: Timestamp) -> bool {
    if !status.is_object() {
        *status = json!({});
    }
    let list = &mut status["conditions"];
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return false };
    let mut places = (0..list.len()).filter(|&i| list[i]["type"] == condition.kind.as_str());
    let place = places.next();
    let repeated: Vec<usize> = places.collect();
    for &i in repeated.iter().rev() {
        list.remove(i);
    }
    let Some(place) = place else {
        let condition = Condition { last_transition_time: time::seconds(now), ..condition };
        list.push(json!(condition));
        return true;
    };
    let stored = &mut list[place];
    let before = stored.clone();
    let is_transition = stored["status"] != json!(condition.status);
    let kept = stored["lastTransitionTime"].as_str().filter(|t| !t.is_empty() && !is_transition);
    let last_transition_time = kept.map_or_else(|| time::seconds(now), str::to_owned);
    let Value::Object(fields) = json!(Condition { last_transition_time, ..condition }) else { return false };
    match stored.as_object_mut() {
        Some(stored) => stored.extend(fields),
        None => *stored = Value::Object(fields),
    }
    !repeated.is_empty() || list[place] != before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn ready(status: Status, message: &str) -> Condition {
        Condition::new("Ready", status, "Because", message)
    }

    #[test]
    fn transition_time_moves_only_with_the_status() {
        let mut status = json!(null);
        assert!(set(&mut status, ready(Status::False, "a"), at(10)));
        assert!(set(&mut status, ready(Status::False, "b"), at(20)));
        let kept = find(&status, "Ready").unwrap();
        assert_eq!((kept.message.as_str(), kept.last_transition_time), ("b", time::seconds(at(10))));
        assert!(set(&mut status, ready(Status::True, "b"), at(30)));
        assert_eq!(find(&status, "Ready").unwrap().last_transition_time, time::seconds(at(30)));
    }

    #[test]
    fn the_same_again_changes_nothing() {
        let mut status = json!({"phase": "x"});
        assert!(set(&mut status, ready(Status::True, "a"), at(10)));
        let before = status.clone();
        assert!(!set(&mut status, ready(Status::True, "a"), at(99)));
        assert_eq!(status, before);
    }

    #[test]
    fn there_is_one_of_each_type_and_foreign_fields_stay() {
        let mut status = json!({"conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "t", "severity": 3},
            {"type": "Synced", "status": "True"},
            {"type": "Ready", "status": "False"},
        ]});
        assert!(set(&mut status, ready(Status::True, "a"), at(10)));
        assert_eq!(status["conditions"].as_array().unwrap().len(), 2);
        assert_eq!(status["conditions"][0]["severity"], 3);
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "t");
    }

    #[test]
    fn garbage_in_the_status_is_replaced() {
        for mut status in [json!(7), json!({"conditions": "no"}), json!({"conditions": ["no"]})] {
            assert!(set(&mut status, ready(Status::True, "a"), at(10)));
            assert!(find(&status, "Ready").is_some());
        }
    }
}
