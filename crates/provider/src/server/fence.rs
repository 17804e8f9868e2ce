//! The highest claim that each object was written under.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use concert_model::{Object, Uid};

use crate::contract::{Call, Result};
use crate::error::{Class, Error};

/// Objects that are remembered; the oldest are forgotten first. A claim is only ever too old for a
/// short while after its holder was replaced, so what was written long ago needs no guard.
const OBJECTS_MAX: usize = 65_536;

/// Refuses writers that have been replaced.
#[derive(Default)]
pub(crate) struct Fences(Mutex<State>);

#[derive(Default)]
struct State {
    highest: HashMap<Uid, u64>,
    order: VecDeque<Uid>,
}

impl Fences {
    /// Notes the claim of a call.
    ///
    /// # Errors
    /// [`Class::Conflict`] if a higher one has been seen for the object.
    pub(crate) fn admit(&self, object: &Object, call: &Call) -> Result<()> {
        let (Some(fence), Some(uid)) = (call.fence, object.uid()) else { return Ok(()) };
        let mut state = self.0.lock().expect("nobody panics with the claims in hand");
        match state.highest.get_mut(&uid) {
            Some(seen) if *seen > fence => {
                let message = format!("a newer writer has been here: claim {fence} is older than {seen}");
                Err(Error::new(Class::Conflict, message))
            }
            Some(seen) => {
                *seen = fence;
                Ok(())
            }
            None => {
                if state.order.len() == OBJECTS_MAX
                    && let Some(oldest) = state.order.pop_front()
                {
                    state.highest.remove(&oldest);
                }
                state.order.push_back(uid.clone());
                state.highest.insert(uid, fence);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn an_older_claim_is_refused_for_the_same_object_only() {
        let fences = Fences::default();
        let object = |uid: &str| {
            let whole = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "uid": uid}});
            Object::from_value(whole).unwrap()
        };
        let claim = |fence| Call { fence: Some(fence), ..Call::within(Duration::ZERO) };
        assert!(fences.admit(&object("1"), &claim(5)).is_ok());
        assert_eq!(fences.admit(&object("1"), &claim(4)).unwrap_err().class, Class::Conflict);
        assert!(fences.admit(&object("2"), &claim(4)).is_ok());
        assert!(fences.admit(&object("1"), &claim(5)).is_ok());
        assert!(fences.admit(&object("1"), &Call::within(Duration::ZERO)).is_ok());
    }
}
