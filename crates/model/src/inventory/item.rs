//! An item: one reconciler on one entry.

use std::fmt;
use std::str::FromStr;

use serde_json::json;

use super::entry::Entry;
use super::names;
use crate::key::Uid;
use crate::object::Object;

/// Where an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Nobody has worked on it yet, or something has changed since.
    Pending,
    /// Somebody has it.
    Running,
    /// It is as it should be.
    Ready,
    /// It waits for something that is not there yet.
    NotReady,
    /// The last try failed.
    Failed,
    /// Its entry is paused.
    Paused,
    /// Somebody stopped it.
    Stopped,
}

/// A word that is no state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a state of an item")]
pub struct UnknownState(pub String);

impl State {
    /// All of them, in the order in which they are shown.
    pub const ALL: [State; 7] = [
        State::Pending,
        State::Running,
        State::Ready,
        State::NotReady,
        State::Failed,
        State::Paused,
        State::Stopped,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Running => "running",
            State::Ready => "ready",
            State::NotReady => "not_ready",
            State::Failed => "failed",
            State::Paused => "paused",
            State::Stopped => "stopped",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        State::ALL.into_iter().find(|it| it.as_str() == text).ok_or_else(|| UnknownState(text.to_owned()))
    }
}

/// An object read as an item.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a>(pub &'a Object);

impl<'a> Item<'a> {
    /// Which entry.
    pub fn entry(self) -> &'a str {
        self.0.spec()["entry"].as_str().unwrap_or_default()
    }

    /// Whether it is of this incarnation of its entry. In those of earlier versions that is not written.
    pub fn is_of(self, entry: &Uid) -> bool {
        self.0.spec()["entryUid"].as_str().is_none_or(|it| *it == *entry.0)
    }

    /// Which reconciler, as it calls itself.
    pub fn reconciler(self) -> &'a str {
        self.0.spec()["reconciler"].as_str().unwrap_or_default()
    }

    /// Where it stands.
    pub fn state(self) -> State {
        self.0.status()["state"].as_str().and_then(|it| it.parse().ok()).unwrap_or(State::Pending)
    }

    /// The revision of the entry that the last outcome is about.
    pub fn observed_revision(self) -> u64 {
        self.0.status()["observedRevision"].as_u64().unwrap_or_default()
    }

    /// An item of which nothing is known yet.
    pub fn of(entry: Entry<'_>, reconciler: &str) -> Object {
        let kind = names::versioned(&names::item_kind());
        let mut object = Object::new(&kind, "", &names::item_object(entry.id(), reconciler));
        let spec = json!({"entry": entry.id(), "entryUid": entry.uid(), "reconciler": reconciler});
        object.set("spec", spec);
        object.set_label(names::ENTRY, entry.id());
        object.set_label(names::RECONCILER, &crate::no8s::names::worker_object(reconciler));
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_word() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        assert_eq!("done".parse::<State>(), Err(UnknownState("done".into())));
    }

    #[test]
    fn an_item_says_what_it_is_about() {
        let mut cluster = Object::new(&names::versioned(&names::entry_kind()), "", "rt-1");
        cluster.set_metadata("uid", json!("u"));
        let object = Item::of(Entry(&cluster), "shoot");
        let item = Item(&object);
        assert!(item.is_of(&Uid("u".into())) && !item.is_of(&Uid("v".into())));
        assert_eq!((item.entry(), item.reconciler(), item.state()), ("rt-1", "shoot", State::Pending));
    }
}
