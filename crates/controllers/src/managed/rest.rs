//! Objects at rest: a poll that finds what the last one found needs nothing more of a pass.
//!
//! Most passes by far are polls of objects that nobody has touched, at things that nobody has touched. What
//! such a pass would come to is known: nothing. So what the last one was shown is remembered as a number,
//! and as long as neither it nor the object has changed, a poll is one question to the provider.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_model::{Encoded, ObjectKey, ResourceVersion, Uid};
use concert_provider::Observation;

/// What is known of the objects of one kind that are at rest.
#[derive(Default)]
pub struct AtRest {
    hasher: RandomState,
    known: Mutex<HashMap<Uid, Rest>>,
}

/// One object at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// The state of the object that was looked at.
    pub version: ResourceVersion,
    /// The account it was looked at in.
    pub account: Option<ObjectKey>,
    /// How often it is looked at.
    pub interval: Duration,
    /// Of what was seen.
    sight: u64,
    /// How often it was looked at since the last whole pass.
    glances: u16,
}

/// Glances before a whole pass, which notices what nobody tells of: a connection secret, say, whose end was
/// lost in a gap of a watch. At a poll each minute within the hour.
pub const GLANCES_MAX: u16 = 60;

impl AtRest {
    /// Notes that there is nothing to do about an object in this state as long as this is what is seen.
    pub fn note(
        &self,
        uid: Uid,
        version: ResourceVersion,
        account: Option<ObjectKey>,
        interval: Duration,
        seen: &Observation,
    ) {
        let rest = Rest { version, account, interval, sight: self.hasher.hash_one(seen), glances: 0 };
        self.lock().insert(uid, rest);
    }

    /// What is known of an object in this very state.
    pub fn of(&self, object: &Encoded) -> Option<Rest> {
        self.lock().get(&object.head().uid).filter(|it| it.version == *object.resource_version()).cloned()
    }

    /// An object is about to be looked at from afar; whether it is time for more than that.
    pub fn is_due(&self, uid: &Uid) -> bool {
        let mut known = self.lock();
        let Some(rest) = known.get_mut(uid) else { return true };
        rest.glances += 1;
        let is_due = rest.glances > GLANCES_MAX;
        if is_due {
            known.remove(uid);
        }
        is_due
    }

    /// Whether this is what was seen.
    pub fn is_same(&self, rest: &Rest, seen: &Observation) -> bool {
        rest.sight == self.hasher.hash_one(seen)
    }

    /// Forgets an object that is up and about, or gone.
    pub fn forget(&self, uid: &Uid) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uid, Rest>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use concert_model::{Body, GroupKind, Head, Object, Timestamp};
    use serde_json::json;

    use super::*;

    fn stored(version: &str) -> Encoded {
        let key = ObjectKey::cluster(GroupKind::new("example.com", "Thing"), "a");
        let head = Head {
            version: "v1".into(),
            uid: Uid("u".into()),
            generation: 1,
            created_at: Timestamp::UNIX_EPOCH,
            deleted_at: None,
            labels: Default::default(),
            owners: Vec::new(),
            fields: Default::default(),
        };
        let object = Object::from_value(json!({"apiVersion": "example.com/v1", "kind": "Thing"})).unwrap();
        Encoded::new(Arc::new(Body::encode(key, head, &object)), ResourceVersion(version.into()))
    }

    fn seen(size: i64) -> Observation {
        let mut seen = Observation { exists: true, is_up_to_date: true, ..Observation::default() };
        seen.delta.status = json!({"atProvider": {"size": size}}).as_object().cloned();
        seen
    }

    #[test]
    fn a_whole_pass_comes_now_and_then() {
        let at_rest = AtRest::default();
        let (uid, version) = (Uid("u".into()), ResourceVersion("7".into()));
        at_rest.note(uid.clone(), version, None, Duration::from_secs(60), &seen(1));
        for _ in 0..GLANCES_MAX {
            assert!(!at_rest.is_due(&uid));
        }
        assert!(at_rest.is_due(&uid));
        assert_eq!(at_rest.of(&stored("7")), None);
    }

    #[test]
    fn rest_ends_with_another_state_of_the_object_and_with_another_sight() {
        let at_rest = AtRest::default();
        assert_eq!(at_rest.of(&stored("7")), None);
        let (uid, version) = (Uid("u".into()), ResourceVersion("7".into()));
        at_rest.note(uid.clone(), version, None, Duration::from_secs(60), &seen(1));
        let rest = at_rest.of(&stored("7")).unwrap();
        assert!(at_rest.is_same(&rest, &seen(1)) && !at_rest.is_same(&rest, &seen(2)));
        assert_eq!(at_rest.of(&stored("8")), None);
        at_rest.forget(&uid);
        assert_eq!(at_rest.of(&stored("7")), None);
    }
}
