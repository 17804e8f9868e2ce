//! What a reconciler answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use concert_model::condition::{self, Status};
use concert_model::{Encoded, ObjectKey, ResourceVersion, Uid};
use serde::{Deserialize, Serialize};

use crate::queue::Lane;

/// How one run of a key went, and so what comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do until something changes, or until the next poll.
    Done,
    /// As done, but the next poll comes after this time, whatever the controller's interval; never
    /// after [`Duration::MAX`].
    Poll(Duration),
    /// Another look after this time.
    After(Duration),
    /// The same, in this lane: for who knows better than that it is a retry how urgent the look is.
    AfterIn(Lane, Duration),
    /// Nobody did anything: it is due again at once, in the lane and for the reasons that it was, and what
    /// came of the runs before still holds.
    Returned,
    /// Nothing failed, but it is not there yet, for this reason: another look with back-off, or after
    /// exactly this time, which leaves the back-off as it is.
    Requeue(Arc<str>, Option<Duration>),
    /// Nothing can be done before one of these changes. Costs no retry.
    WaitFor(Vec<Wait>),
    /// The same, but after this time it looks again whatever has changed.
    WaitAtMost(Vec<Wait>, Duration),
    /// It failed and may work later: it is tried again with back-off.
    Transient(Failure),
    /// It failed and will fail again until the object changes; a failure that says after which time looks once
    /// more then all the same.
    Terminal(Failure),
}

impl Outcome {
    /// The outcome in one word.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Outcome::Done => OutcomeKind::Done,
            Outcome::Poll(_) => OutcomeKind::Poll,
            Outcome::After(_) | Outcome::AfterIn(..) | Outcome::Returned => OutcomeKind::After,
            Outcome::Requeue(..) => OutcomeKind::Requeue,
            Outcome::WaitFor(_) | Outcome::WaitAtMost(..) => OutcomeKind::WaitFor,
            Outcome::Transient(_) => OutcomeKind::Transient,
            Outcome::Terminal(_) => OutcomeKind::Terminal,
        }
    }
}

/// An [`Outcome`] without its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// See [`Outcome::Done`].
    Done,
    /// See [`Outcome::Poll`].
    Poll,
    /// See [`Outcome::After`], [`Outcome::AfterIn`] and [`Outcome::Returned`].
    After,
    /// See [`Outcome::Requeue`].
    Requeue,
    /// See [`Outcome::WaitFor`] and [`Outcome::WaitAtMost`].
    WaitFor,
    /// See [`Outcome::Transient`].
    Transient,
    /// See [`Outcome::Terminal`].
    Terminal,
}

/// What went wrong, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For people; each cause after the next.
    pub text: Arc<str>,
    /// Whether the target that the breaker guards is to blame.
    pub is_of_target: bool,
    /// When to try again, if that is known better than by back-off.
    pub after: Option<Duration>,
}

impl Failure {
    /// A failure of the target, in words.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), is_of_target: true, after: None }
    }

    /// A failure of the target: the error and all its causes.
    pub fn from_error(error: &(dyn std::error::Error + 'static)) -> Self {
        let chain = std::iter::successors(Some(error), |it| it.source());
        let texts: Vec<String> = chain.map(ToString::to_string).collect();
        Self::new(texts.join(": "))
    }

    /// The same, to be tried again after exactly this time.
    pub fn retried_after(mut self, after: Duration) -> Self {
        self.after = Some(after);
        self
    }

    /// The same, but the target is not to blame: its breaker does not count it.
    pub fn elsewhere(mut self) -> Self {
        self.is_of_target = false;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What an item waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// An object changes.
    Object {
        /// Which.
        key: ObjectKey,
        /// What the reconciler read of it.
        seen: Seen,
        /// Only once this condition is true, or the object is gone or another one.
        condition: Option<Arc<str>>,
    },
    /// Something else changes that has a name and a version, such as a section of an inventory.
    Label {
        /// Its name, in words that only those who wait and those who signal share.
        label: Arc<str>,
        /// The version that the reconciler read; none if there was nothing.
        seen: Option<Arc<str>>,
    },
}

/// What was read before the decision to wait. Compared by equality with what is there when the wait
/// begins, so that a change in between is not lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// Nothing was read: only changes after the wait began count.
    Unread,
    /// It was not there.
    Absent,
    /// It was there.
    At {
        /// Which incarnation.
        uid: Uid,
        /// In which state.
        resource_version: ResourceVersion,
    },
}

impl Wait {
    /// For a change of what was read.
    pub fn change_of(object: &Encoded) -> Self {
        let (uid, resource_version) = (object.head().uid.clone(), object.resource_version().clone());
        let seen = Seen::At { uid, resource_version };
        Self::Object { key: object.key().clone(), seen, condition: None }
    }

    /// For an object that was looked for and is not there.
    pub fn existence_of(key: ObjectKey) -> Self {
        Self::Object { key, seen: Seen::Absent, condition: None }
    }

    /// For a condition of what was read.
    pub fn condition_of(object: &Encoded, condition: impl Into<Arc<str>>) -> Self {
        match Self::change_of(object) {
            Self::Object { key, seen, .. } => Self::Object { key, seen, condition: Some(condition.into()) },
            label @ Self::Label { .. } => label,
        }
    }

    /// For another version of what has this name.
    pub fn label(label: impl Into<Arc<str>>, seen: Option<Arc<str>>) -> Self {
        Self::Label { label: label.into(), seen }
    }

    /// Whether `now` is something else than what was read. `has_gap` says that changes may have been
    /// missed since.
    pub(crate) fn is_outdated(&self, now: Option<&Encoded>, has_gap: bool) -> bool {
        let Self::Object { seen, condition, .. } = self else { return false };
        match (seen, now) {
            (Seen::Unread, _) => has_gap,
            (Seen::Absent, now) => now.is_some(),
            (Seen::At { .. }, None) => true,
            (Seen::At { uid, .. }, Some(now)) if now.head().uid != *uid => true,
            // Whatever else has been written: it was not true when it was read.
            (Seen::At { .. }, Some(now)) if condition.is_some() => {
                condition.as_deref().is_some_and(|it| has_condition(now, it))
            }
            (Seen::At { resource_version, .. }, Some(now)) => now.resource_version() != resource_version,
        }
    }

    /// Whether the change to `now` is the one waited for; none if the object is gone.
    pub(crate) fn is_woken_by(&self, now: Option<&Encoded>) -> bool {
        let Self::Object { seen, condition, .. } = self else { return false };
        let Some(object) = now else { return *seen != Seen::Absent };
        let is_same = matches!(seen, Seen::At { uid, .. } if object.head().uid == *uid);
        match condition {
            Some(condition) if is_same || *seen == Seen::Unread => has_condition(object, condition),
            _ => self.is_outdated(now, true),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::Object { key, condition: Some(condition), .. } => write!(f, "{condition} of {key}"),
            Wait::Object { key, condition: None, .. } => key.fmt(f),
            Wait::Label { label, .. } => f.write_str(label),
        }
    }
}

fn has_condition(object: &Encoded, kind: &str) -> bool {
    let status = serde_json::from_slice(object.body().status()).unwrap_or_default();
    condition::find(&status, kind).is_some_and(|it| it.status == Status::True)
}
