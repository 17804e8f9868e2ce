//! The seam to what reconciles.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_model::ObjectKey;
use concert_store::Fence;

use crate::outcome::Outcome;
use crate::queue::{Lane, Reasons};
use crate::workers::Permit;

/// Makes the world match one object.
///
/// # Guarantees
/// A key runs at most once at a time in one process. A change while it runs gives one more run.
///
/// # Assumptions
/// A run may come twice, late, or after a crash between any two lines of an earlier one. It is dropped
/// where it waits when its deadline has passed or its controller stops.
///
/// # Errors
/// A panic is contained, counted and treated as [`Outcome::Transient`].
#[async_trait]
pub trait Reconciler: Send + Sync + 'static {
    /// One run. The key is all there is: what the object looks like now is for the reconciler to read.
    async fn reconcile(&self, request: Request) -> Outcome;

    /// What a run of `key` draws on. Asked before each run, so it must be quick.
    fn labels(&self, key: &ObjectKey) -> Labels {
        let _ = key;
        Labels::default()
    }
}

/// One run of one key.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which object.
    pub key: ObjectKey,
    /// Failures in a row before this run.
    pub attempt: u32,
    /// Why it runs. For logs: what to do is decided by what is, not by what happened.
    pub reasons: Reasons,
    /// How urgent it was.
    pub lane: Lane,
    /// The claim it runs under: writes that carry it are refused once a successor has claimed.
    pub fence: Option<Fence>,
    /// Whether another member holds the key, and this one is to know of it and to write nothing.
    pub is_onlooker: bool,
    /// When the run is dropped, by the clock's `elapsed`.
    pub deadline: Duration,
    /// Whom it runs for, where runs start on demand only.
    pub permit: Option<Arc<Permit>>,
}

/// What a run draws on, by labels that controllers may share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Budgets that a run takes one from each.
    pub budgets: Vec<Arc<str>>,
    /// The target whose breaker must let it pass.
    pub target: Option<Arc<str>>,
}

impl Labels {
    /// Whether a run is free.
    pub fn is_empty(&self) -> bool {
        self.budgets.is_empty() && self.target.is_none()
    }
}
