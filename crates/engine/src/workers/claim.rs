//! A host asks for work and waits until there is some.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use concert_model::{Object, ObjectKey, Timestamp};
use serde_json::Value;
use tokio::sync::Notify;

use crate::queue::Reasons;

/// What a host asks for.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Who asks.
    pub host: Arc<str>,
    /// At most so many items.
    pub limit: usize,
    /// How long it is willing to wait for the first.
    pub wait: Duration,
    /// Only objects of kinds called so; of all if none.
    pub kinds: Option<BTreeSet<Arc<str>>>,
    /// What the host calls this claim. Who asks again under the same name gets the same items: the answer
    /// to the first time was lost.
    pub id: Option<Arc<str>>,
}

impl Ask {
    pub(super) fn accepts(&self, kind: &str) -> bool {
        self.kinds.as_ref().is_none_or(|it| it.contains(kind))
    }

    /// Whether `ask` is the same claim, made again.
    pub(super) fn is_repeated_by(&self, ask: &Ask) -> bool {
        self.id.is_some() && self.id == ask.id && self.host == ask.host
    }
}

/// What a host gets.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// What to call it.
    pub item: Arc<str>,
    /// Which object.
    pub key: ObjectKey,
    /// As it was read for this run.
    pub object: Arc<Object>,
    /// Every write must carry it.
    pub fence: u64,
    /// When the lease ends unless it is extended.
    pub expires_at: Timestamp,
    /// Failures in a row before this run.
    pub attempt: u64,
    /// Why it runs.
    pub reasons: Reasons,
    /// What was known when it was offered.
    pub context: Arc<Value>,
}

/// A host that waits.
pub(super) struct Waiting {
    pub ask: Ask,
    /// Items that no run is on its way with yet.
    pub wanted: usize,
    /// Runs that have begun for it and have not brought their item yet.
    pub coming: usize,
    pub got: Vec<Claimed>,
    pub bell: Arc<Notify>,
}

impl Waiting {
    /// Something is there and nothing more is on its way: items that became due together go together.
    pub fn is_served(&self) -> bool {
        !self.got.is_empty() && self.coming == 0
    }
}
