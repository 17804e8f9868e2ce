//! The gate before the queue: a run starts only when a host waits for it.

use std::sync::{Arc, Weak};

use tokio::sync::Notify;

use super::board::Board;

/// What hosts ask of one worker for objects of one kind.
#[derive(Clone)]
pub struct Demand {
    pub(super) board: Board,
    pub(super) worker: Arc<str>,
    pub(super) kind: Arc<str>,
}

impl Demand {
    /// Leave to start one run, for a host that waits; none if none does.
    pub(crate) fn take(&self) -> Option<Permit> {
        let claim = self.board.reserve(&self.worker, &self.kind)?;
        Some(Permit { board: self.board.clone(), worker: self.worker.clone(), claim: Some(claim) })
    }

    /// Whether a run could start.
    pub(crate) fn is_open(&self) -> bool {
        self.board.is_wanted(&self.worker, &self.kind)
    }

    /// Has `bell` rung when runs may start again.
    pub(crate) fn attach(&self, bell: &Arc<Notify>) {
        self.board.attach(&self.worker, Arc::downgrade(bell));
    }
}

/// Leave to bring one item to the host that it was taken for. Dropped unused, the host waits for
/// another.
pub struct Permit {
    board: Board,
    worker: Arc<str>,
    claim: Option<u64>,
}

impl Permit {
    /// The claim to serve; from here on the permit is used.
    pub(super) fn spend(mut self) -> Option<u64> {
        self.claim.take()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            self.board.give_back(&self.worker, claim);
        }
    }
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permit").field("worker", &self.worker).field("claim", &self.claim).finish()
    }
}

impl std::fmt::Debug for Demand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Demand").field("worker", &self.worker).field("kind", &self.kind).finish()
    }
}

/// Rings all that are still there.
pub(super) fn ring(bells: Vec<Weak<Notify>>) {
    for bell in bells.iter().filter_map(Weak::upgrade) {
        bell.notify_one();
    }
}
