//! What an explanation is made of.

use std::time::Duration;

use concert_engine::{ItemState, Phase};
use concert_model::condition::{self, Condition, Status};
use concert_model::{Object, ObjectKey, Timestamp, time};
use serde_json::Value;

use super::fleet::Component;

/// All that is known about one object. What nobody could find out is left as [`Facts::new`] has it.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The object itself.
    pub object: Object,
    /// The time of day.
    pub now: Timestamp,
    /// The same moment by the clock that the engine's items are timed with.
    pub elapsed: Duration,
    /// How its kind stands.
    pub definition: Definition,
    /// Who makes objects of its kind real.
    pub service: Service,
    /// Its owners, what it refers to, and its ProviderConfig.
    pub related: Vec<Related>,
    /// What was told about it lately, newest first.
    pub events: Vec<Told>,
    /// The engine's items about it.
    pub items: Vec<Item>,
    /// The host that has it, if it is a resource of a remote worker.
    pub holder: Option<Holder>,
    /// Whether it is a claim. Then `service` is about its managed resource.
    pub is_claim: bool,
    /// The reconcilers that work on it, if it is an entry of the inventory.
    pub components: Vec<Component>,
}

/// How a kind stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// Nobody has looked.
    Unknown,
    /// Built in, or defined and served.
    Served,
    /// Defined but not served, for this reason.
    NotEstablished(String),
    /// Not defined any more.
    Missing,
}

/// Who makes objects of a kind real.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// Nobody has looked.
    Unknown,
    /// No provider is needed for it.
    NotNeeded,
    /// No provider serves it. Those that do not answer may be the one.
    Nobody {
        /// The names of providers that do not answer.
        silent: Vec<String>,
    },
    /// A provider that answers.
    Up {
        /// Its name.
        provider: String,
    },
    /// A provider that does not.
    Down {
        /// Its name.
        provider: String,
        /// What happened when it was last asked.
        why: String,
    },
}

/// Another object that this one hangs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// How.
    pub relation: Relation,
    /// Which.
    pub key: ObjectKey,
    /// How that one stands.
    pub state: State,
}

/// What another object is to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It lives and dies with that one.
    Owner,
    /// What a claim is made by.
    Class,
    /// What a claim is made of.
    Managed,
    /// A field of it is taken from that one.
    Reference,
    /// The account that its external thing is in.
    ProviderConfig,
}

/// How another object stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody has looked.
    Unknown,
    /// There is none.
    Missing,
    /// It is there and says nothing about being ready.
    Present,
    /// It is ready.
    Ready,
    /// It is not, for this reason; may be empty.
    NotReady(String),
    /// It is being deleted.
    Deleting,
}

/// What one controller of the engine knows about the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Which controller.
    pub controller: String,
    /// What it knows.
    pub state: ItemState,
}

/// A host of a remote worker that has the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Whose host.
    pub worker: String,
    /// Which.
    pub host: String,
    /// Since when.
    pub since: Timestamp,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// When it was last seen.
    pub at: Timestamp,
    /// Whether something is wrong.
    pub is_warning: bool,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// How often.
    pub count: u64,
}

impl Facts {
    /// What the object says of itself; the rest is unknown.
    pub fn new(object: Object, now: Timestamp) -> Self {
        Self {
            object,
            now,
            elapsed: Duration::ZERO,
            definition: Definition::Unknown,
            service: Service::Unknown,
            related: Vec::new(),
            events: Vec::new(),
            items: Vec::new(),
            holder: None,
            is_claim: false,
            components: Vec::new(),
        }
    }

    pub(super) fn condition(&self, kind: &str) -> Option<Condition> {
        condition::find(self.object.status(), kind)
    }

    /// The condition that says whether it is ready, by the names that kinds have for it.
    pub(super) fn readiness(&self) -> Option<Condition> {
        readiness(&self.object)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.readiness().is_some_and(|it| it.status == Status::True)
    }

    /// The item that has most to tell.
    pub(super) fn item(&self) -> Option<&Item> {
        self.items.iter().min_by_key(|it| match it.state.phase {
            Phase::Terminal => 0,
            Phase::BackingOff { .. } => 1,
            Phase::ParkedOn(_) => 2,
            Phase::Paused => 3,
            Phase::RunningSince(_) => 4,
            Phase::Waiting => 5,
            Phase::DueAt(_) => 6,
            Phase::Idle => 7,
        })
    }

    /// How long until `due` of the engine's clock.
    pub(super) fn until(&self, due: Duration) -> Duration {
        due.saturating_sub(self.elapsed)
    }

    /// When the first of the items runs again.
    pub(super) fn next_try(&self) -> Option<Timestamp> {
        let due = self.items.iter().filter_map(|it| it.state.next_due).min()?;
        self.now.checked_add(concert_model::time::SignedDuration::try_from(self.until(due)).ok()?).ok()
    }
}

impl Definition {
    /// As a CustomResourceDefinition says; none if there is none.
    pub fn of(definition: Option<&Object>) -> Self {
        let Some(definition) = definition else { return Self::Missing };
        match condition::find(definition.status(), "Established") {
            Some(it) if it.status == Status::True => Self::Served,
            _ => {
                let names = condition::find(definition.status(), "NamesAccepted");
                let refused = names.filter(|it| it.status == Status::False).map(|it| it.message);
                Self::NotEstablished(refused.unwrap_or_default())
            }
        }
    }
}

impl Related {
    /// As the object says; none if there is none.
    pub fn of(relation: Relation, key: ObjectKey, object: Option<&Object>) -> Self {
        let state = match object {
            None => State::Missing,
            Some(object) if object.deleted_at().is_some() => State::Deleting,
            Some(object) => match readiness(object) {
                None => State::Present,
                Some(it) if it.status == Status::True => State::Ready,
                Some(it) if it.message.is_empty() => State::NotReady(it.reason),
                Some(it) => State::NotReady(it.message),
            },
        };
        Self { relation, key, state }
    }
}

impl Told {
    /// Reads an Event of the core group; none if it has no time.
    pub fn of(event: &Value) -> Option<Self> {
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let times = [
            &event["series"]["lastObservedTime"],
            &event["lastTimestamp"],
            &event["eventTime"],
            &event["metadata"]["creationTimestamp"],
        ];
        let at = times.into_iter().filter_map(Value::as_str).find_map(time::parse)?;
        let count = event["series"]["count"].as_u64().or(event["count"].as_u64()).unwrap_or(1);
        Some(Self {
            at,
            is_warning: event["type"] == "Warning",
            reason: text("reason"),
            message: text("message"),
            count,
        })
    }
}

/// Kinds name it differently; the first of these that is there counts.
fn readiness(object: &Object) -> Option<Condition> {
    ["Ready", "Established", "Available", "Healthy"]
        .iter()
        .find_map(|kind| condition::find(object.status(), kind))
}
