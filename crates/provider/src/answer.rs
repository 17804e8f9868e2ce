//! What providers answer: deltas, never whole objects.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::details::Details;

/// What a provider may change of an object.
#[derive(Clone, Debug, Default, PartialEq, Hash)]
pub struct Delta {
    /// The new status, none to leave it alone. Its `conditions` merge by type; all else replaces.
    pub status: Option<Map<String, Value>>,
    /// Annotations to set. Never removes one.
    pub annotations: BTreeMap<String, String>,
    /// The identity of the external thing, where it was learnt.
    pub external_name: Option<String>,
    /// Late-initialised fields of `spec`: set where the object has nothing, ignored elsewhere.
    pub spec: Option<Map<String, Value>>,
}

impl Delta {
    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One field that is not as declared.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Change {
    /// Where, as in `spec.forProvider.size`.
    pub path: String,
    /// What is; none if absent or not told.
    pub from: Option<Value>,
    /// What is wanted; none if it is to go.
    pub to: Option<Value>,
    /// Whether the external thing must be made anew for it.
    pub replaces: bool,
    /// Whether the values must not be shown.
    pub is_sensitive: bool,
}

/// What the external thing looks like.
#[derive(Clone, Debug, Default, PartialEq, Hash)]
pub struct Observation {
    /// Whether it exists.
    pub exists: bool,
    /// Whether it is as declared.
    pub is_up_to_date: bool,
    /// What is not as declared, as far as the provider tells.
    pub diff: Vec<Change>,
    /// What the provider learnt.
    pub delta: Delta,
    /// How to connect to the external thing.
    pub connection: Details,
}

/// An external thing was made, or its making has begun.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Created {
    /// What the provider learnt; the external name above all.
    pub delta: Delta,
    /// How to connect to it.
    pub connection: Details,
    /// Where the making stands, for people.
    pub progress: Option<String>,
    /// When it is worth looking again.
    pub again_after: Option<Duration>,
    /// Details for change logs.
    pub notes: BTreeMap<String, String>,
}

/// An external thing was changed, or its changing has begun. As [`Created`].
pub type Updated = Created;

/// An external thing goes, or its going has begun.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deleted {
    /// What the provider learnt.
    pub delta: Delta,
    /// Where it stands, for people.
    pub progress: Option<String>,
    /// When it is worth looking again.
    pub again_after: Option<Duration>,
    /// Details for change logs.
    pub notes: BTreeMap<String, String>,
}

/// What became of a create whose answer was lost.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// It happened, and left this behind.
    Found(Delta),
    /// It did not happen, and no longer can: the token is burnt.
    CertainlyNone,
    /// The provider cannot tell.
    Unknown,
}

/// What a provider would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The verb.
    pub action: PlanAction,
    /// Field by field.
    pub changes: Vec<Change>,
    /// A sentence, where there is more to say.
    pub reason: String,
}

/// The verb of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlanAction {
    /// Make it.
    Create,
    /// Change it in place.
    Update,
    /// Remove it and make another.
    Replace,
    /// Remove it.
    Delete,
    /// It is as declared.
    None,
    /// The provider cannot tell.
    Unknown,
}
