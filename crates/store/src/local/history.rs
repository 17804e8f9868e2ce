//! What was written, by whom and when; and what was tried.

use std::time::Duration;

use concert_model::{Encoded, Head, ObjectKey, Revision, Uid};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Local;
use super::driver::Job;
use crate::backend::{self, Act, Effect, Owner, Stamp, Txn};
use crate::contract::{ItemKey, Result};
use crate::error::Error;

/// One write of an object. The state is there until it is compacted, the rest until it is forgotten;
/// both outlive the object.
#[derive(Clone, Debug)]
pub struct Past {
    /// When, in the order of the store.
    pub revision: Revision,
    /// What it did.
    pub act: Act,
    /// Who, why, and when by the clock.
    pub stamp: Stamp,
    /// Of which incarnation.
    pub uid: Uid,
    /// Of which generation.
    pub generation: i64,
    /// The state written, or for a removal the final one.
    pub object: Option<Encoded>,
}

/// One attempt at an item of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Which attempt in a row, counted from 1.
    pub attempt: u32,
    /// The generation it was for.
    pub generation: i64,
    /// One word: `done`, `failed`, …
    pub outcome: String,
    /// A sentence for people.
    pub message: String,
    /// What made it happen.
    pub reasons: Vec<String>,
    /// How long it took.
    pub duration: Duration,
    /// Whatever else the controller wants to remember.
    #[serde(default)]
    pub details: Value,
}

impl Local {
    /// The writes of a key, newest first, of all its incarnations.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn history(
        &self,
        key: &ObjectKey,
        before: Option<Revision>,
        limit: usize,
    ) -> Result<Vec<Past>> {
        let (shared, key) = (self.inner().shared.clone(), key.clone());
        let read = move |backend: &dyn backend::Backend| {
            let open = |past: backend::Past| {
                let backend::Past { revision, act, stamp, head, payload } = past;
                let read: Head =
                    serde_json::from_slice(&head).map_err(|e| backend::Failure::Broken(e.into()))?;
                let row = |payload| backend::Row { key: key.clone(), revision, head: head.clone(), payload };
                let object = payload.map(row).map(|row| shared.unseal(row)).transpose()?;
                Ok(Past { revision, act, stamp, uid: read.uid, generation: read.generation, object })
            };
            backend.history(&key, before, limit)?.into_iter().map(open).collect()
        };
        self.inner().read(read).await
    }

    /// Records an attempt at an item.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Full`].
    pub async fn record_attempt(&self, item: &ItemKey, record: &AttemptRecord) -> Result<()> {
        let clear = serde_json::to_vec(record).map_err(|e| Error::Unavailable(e.into()))?;
        let body = self.inner().shared.seal.seal(&Owner::Item(item.clone()), &clear);
        let attempt = backend::Attempt { item: item.clone(), at: self.inner().clock.now(), body };
        let txn = Txn { checks: Vec::new(), effects: vec![Effect::Attempt(attempt)] };
        self.inner()
            .driver
            .commit(Job { txn, writes: Vec::new() })
            .await?
            .map(drop)
            .map_err(|_| unreachable())
    }

    /// Attempts at an item, newest first, each with the time it ended.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn attempts(
        &self,
        item: &ItemKey,
        limit: usize,
    ) -> Result<Vec<(concert_model::Timestamp, AttemptRecord)>> {
        let (shared, item) = (self.inner().shared.clone(), item.clone());
        let read = move |backend: &dyn backend::Backend| {
            let open = |attempt: backend::Attempt| {
                let clear = shared.seal.open(&Owner::Item(attempt.item), &attempt.body)?;
                let record =
                    serde_json::from_slice(&clear).map_err(|e| backend::Failure::Broken(e.into()))?;
                Ok((attempt.at, record))
            };
            backend.attempts(&item, limit)?.into_iter().map(open).collect()
        };
        self.inner().read(read).await
    }
}

fn unreachable() -> Error {
    Error::unavailable("a transaction without checks was refused")
}
