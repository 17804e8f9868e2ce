//! What a life is about: who reconciles what, what users wish for, and what must hold in the end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use concert_engine::leader::Duty;
use concert_engine::{Engine, Tasks};
use concert_model::{GroupKind, Object, ObjectKey, Revision};
use concert_store::{Chance, Clock, Local};
use serde_json::Value;

use crate::executor::Executor;
use crate::faults::{Remote, Weather, Witness};

/// What a play may use of the life it is in.
pub struct Stage {
    /// Runs everything, and tells the time.
    pub executor: Executor,
    /// A source of its own.
    pub chance: Chance,
    /// Good or bad.
    pub weather: Weather,
    /// Of the life.
    pub seed: u64,
}

/// One process, to be given its part.
pub struct Actor {
    /// The store as the process sees it.
    pub remote: Arc<Remote>,
    /// Runs its controllers.
    pub engine: Engine,
    /// Owns what it runs.
    pub tasks: Tasks,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
    /// Its chance.
    pub chance: Chance,
}

/// What a user wants.
pub enum Wish {
    /// An object as this one.
    There(Object),
    /// None.
    Gone(ObjectKey),
    /// This merged into an object, if there is one.
    Changed(ObjectKey, Value),
    /// The same for one of a kind, or none of it: a number says which, of those that there are.
    OneOf(GroupKind, u64, Option<Value>),
    /// What somebody makes of one of a kind.
    Forged(GroupKind, u64, fn(&Object) -> Object),
}

impl Wish {
    /// What it is about.
    pub fn kind(&self) -> Option<GroupKind> {
        match self {
            Wish::There(object) => object.gvk().ok().map(|it| it.group_kind),
            Wish::Gone(key) | Wish::Changed(key, _) => Some(key.kind.clone()),
            Wish::OneOf(kind, ..) | Wish::Forged(kind, ..) => Some(kind.clone()),
        }
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wish::There(object) => write!(f, "{} {}: {}", object.kind(), object.name(), object.spec()),
            Wish::Gone(key) => write!(f, "no {key}"),
            Wish::Changed(key, change) => write!(f, "{key} with {change}"),
            Wish::OneOf(kind, number, Some(change)) => write!(f, "{kind} number {number} with {change}"),
            Wish::OneOf(kind, number, None) => write!(f, "no {kind} number {number}"),
            Wish::Forged(kind, number, _) => write!(f, "something of {kind} number {number}"),
        }
    }
}

/// What was done to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Things made.
    pub creates: u64,
    /// Things removed.
    pub deletes: u64,
    /// All effects.
    pub effects: u64,
    /// Calls of former owners turned away.
    pub fenced: u64,
    /// Runs of reconcilers.
    pub runs: u64,
}

/// A subject for a life.
pub trait Play: 'static {
    /// The kinds it needs, as definitions, and what else must be there from the start.
    fn definitions(&self) -> Vec<Value>;

    /// The kinds whose objects users make.
    fn kinds(&self) -> Vec<GroupKind>;

    /// What a process does when it leads.
    fn duty(&self, actor: Actor) -> Arc<dyn Duty>;

    /// What the user wants next.
    fn wish(&self) -> Wish;

    /// Who is to see every write.
    fn witness(&self) -> Option<Arc<dyn Witness>> {
        None
    }

    /// The bad weather is over: so are the play's own faults.
    fn calm_down(&self) {}

    /// What was done so far.
    fn done(&self) -> Done;

    /// Most runs in a time in which nothing happens.
    fn runs_max(&self, quiet: Duration) -> f64;

    /// What of `objects`, all there are, and of the world is not as it must be.
    fn check(&self, objects: &[Object]) -> Vec<String>;

    /// What of the past of an object must never have happened; `past` is all that was ever stored under its
    /// key, oldest first.
    fn check_history(&self, _object: &Object, _past: &[Object]) -> Vec<String> {
        Vec::new()
    }

    /// Where objects of a kind are, if not in the store of the life. It is never lost.
    fn store_of(&self, _kind: &GroupKind) -> Option<Local> {
        None
    }

    /// The last revision of that other store.
    fn newest_elsewhere(&self) -> Revision {
        Revision(0)
    }

    /// What was seen on the way that must never happen.
    fn violations(&self) -> Vec<String>;
}
