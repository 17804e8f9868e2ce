//! One external thing.

use std::fmt;

use concert_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Identity of a thing: ids are unique within a type, as names of people are within a family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThingKey {
    /// The cloud's word for the type: `bucket`.
    pub kind: String,
    /// Given by the cloud, or the name that was asked for.
    pub id: String,
}

impl ThingKey {
    /// The key of a thing of this type.
    pub fn new(kind: &str, id: &str) -> Self {
        Self { kind: kind.to_owned(), id: id.to_owned() }
    }
}

impl fmt::Display for ThingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}

/// Who pays.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Account(pub String);

impl Default for Account {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

/// The object a thing was made for. The cloud only writes it down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    /// `Bucket.cloud.concert.dev`.
    pub kind: String,
    /// `namespace/name`, or `name` for cluster-scoped objects.
    pub object: String,
    /// `metadata.uid`; empty for things that were made by hand.
    pub uid: String,
}

/// Where a thing is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not usable yet.
    Creating,
    /// Usable.
    Ready,
    /// Broken by hand.
    Unavailable,
}

impl State {
    /// As the cloud writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Ready => "ready",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A thing as its maker knows it, or as a read shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thing {
    /// Which one.
    #[serde(flatten)]
    pub key: ThingKey,
    /// In whose account.
    pub account: Account,
    /// For which object.
    pub owner: Owner,
    /// Any JSON.
    pub properties: Map<String, Value>,
    /// The password of its one user.
    pub password: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it can be seen.
    pub visible_at: Timestamp,
    /// From when on it is ready.
    pub ready_at: Timestamp,
    /// Whether somebody broke it.
    #[serde(default)]
    pub is_broken: bool,
}

impl Thing {
    /// Where it is in its life.
    pub fn state(&self, now: Timestamp) -> State {
        match (self.is_broken, now >= self.ready_at) {
            (true, _) => State::Unavailable,
            (false, true) => State::Ready,
            (false, false) => State::Creating,
        }
    }

    /// Whether clients can see it.
    pub fn is_visible(&self, now: Timestamp) -> bool {
        now >= self.visible_at
    }

    /// Where it can be reached. Tests may rely on the form.
    pub fn endpoint(&self) -> String {
        format!("https://{}.{}.cloud.example", self.key.id, self.key.kind)
    }
}
