//! What to do next, given all we know.

use concert_model::Object;
use concert_model::condition::{self, Status};

use super::FINALIZER;

/// What was seen besides the object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The thing: not looked at, not there, or there with a size.
    pub thing: Option<Option<i64>>,
    /// Whether what the object comes after is ready.
    pub is_predecessor_ready: Option<bool>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// See whether the predecessor is ready.
    LookAtPredecessor,
    /// Come back when the predecessor has changed.
    WaitForPredecessor,
    /// Look at the world.
    Observe,
    /// Make sure the object waits for us.
    AddFinalizer,
    /// Let it go.
    RemoveFinalizer,
    /// Make the thing, of this size.
    Create(i64),
    /// Give it this size.
    Update(i64),
    /// Remove it.
    Delete,
    /// Say that all is well.
    WriteStatus,
}

/// Touches nothing: `run` has the hands.
pub fn decide(object: &Object, seen: &Seen) -> Step {
    let is_deleting = object.deleted_at().is_some();
    let is_ours = object.finalizers().iter().any(|f| f == FINALIZER);
    let size = object.spec()["size"].as_i64().unwrap_or_default();
    match (is_deleting, is_ours, seen.thing) {
        (true, false, _) => Step::Rest,
        (false, false, _) => Step::AddFinalizer,
        (_, true, None) if is_deleting || seen.is_predecessor_ready == Some(true) => Step::Observe,
        (false, true, None) => match (object.spec().get("after"), seen.is_predecessor_ready) {
            (None, _) => Step::Observe,
            (Some(_), None) => Step::LookAtPredecessor,
            (Some(_), Some(_)) => Step::WaitForPredecessor,
        },
        (true, true, Some(None) | None) => Step::RemoveFinalizer,
        (true, true, Some(Some(_))) => Step::Delete,
        (false, true, Some(None)) => Step::Create(size),
        (false, true, Some(Some(there))) if there != size => Step::Update(size),
        (false, true, Some(Some(_))) if !is_ready(object) => Step::WriteStatus,
        (false, true, Some(Some(_))) => Step::Rest,
    }
}

/// True if the status says that the thing is as the spec wants it now.
pub fn is_ready(object: &Object) -> bool {
    condition::find(object.status(), "Ready").is_some_and(|ready| {
        ready.status == Status::True && ready.observed_generation == Some(object.generation())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::widget;
    use super::*;

    fn ours() -> Object {
        let mut object = widget("a", 3, None);
        object.add_finalizer(FINALIZER);
        object
    }

    fn thing(size: Option<i64>) -> Seen {
        Seen { thing: Some(size), is_predecessor_ready: None }
    }

    #[test]
    fn takes_hold_of_an_object_before_it_makes_anything() {
        assert_eq!(decide(&widget("a", 3, None), &thing(None)), Step::AddFinalizer);
        assert_eq!(decide(&ours(), &Seen::default()), Step::Observe);
        assert_eq!(decide(&ours(), &thing(None)), Step::Create(3));
    }

    #[test]
    fn lets_an_object_go_only_when_the_thing_is_gone() {
        let mut object = ours();
        object.set_metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
        assert_eq!(decide(&object, &Seen::default()), Step::Observe);
        assert_eq!(decide(&object, &thing(Some(3))), Step::Delete);
        assert_eq!(decide(&object, &thing(None)), Step::RemoveFinalizer);
    }

    #[test]
    fn waits_for_its_predecessor_without_touching_the_world() {
        let mut object = ours();
        object.get_mut("spec")["after"] = json!("b");
        assert_eq!(decide(&object, &Seen::default()), Step::LookAtPredecessor);
        let not_yet = Seen { thing: None, is_predecessor_ready: Some(false) };
        assert_eq!(decide(&object, &not_yet), Step::WaitForPredecessor);
    }
}
