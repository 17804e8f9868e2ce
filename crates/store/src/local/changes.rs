//! Every change of several kinds, in the order they were made.
//!
//! A watch is of one kind. Whoever needs many, and kinds that are yet to come, reads the log itself: one
//! cursor, so that one position says what was seen of all of them.

use std::pin::pin;
use std::sync::Arc;

use concert_model::{Encoded, GroupKind, ResourceVersion, Revision};

use super::hub::{Batch, Found};
use super::{Local, Shared, watch};
use crate::backend::{Act, Backend};
use crate::contract::Result;

/// One change.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its place among all; a reader that starts here gets what comes after.
    pub revision: Revision,
    /// What was done.
    pub act: Act,
    /// The state after it; for a removal, the final one.
    pub object: Encoded,
    /// The state before it.
    pub previous: Option<Encoded>,
}

/// A reader of the log. Ends after its first error.
pub struct Changes {
    backend: Arc<dyn Backend>,
    is_inline: bool,
    shared: Arc<Shared>,
    is_meant: Box<dyn Fn(&GroupKind) -> bool + Send + Sync>,
    cursor: Revision,
    batch: Option<(Batch, usize)>,
    has_ended: bool,
}

impl Local {
    /// All changes after `from`, or from now on, of the kinds that `is_meant` picks.
    ///
    /// # Errors
    /// [`crate::Error::Expired`] for a position that is compacted; [`crate::Error::Invalid`] for one that
    /// lies in the future.
    pub async fn changes(
        &self,
        from: Option<&ResourceVersion>,
        is_meant: impl Fn(&GroupKind) -> bool + Send + Sync + 'static,
    ) -> Result<Changes> {
        let cursor = match from {
            Some(version) => self.inner().check_position(version).await?,
            None => {
                self.inner().refresh().await?;
                self.inner().shared.hub.newest()
            }
        };
        let inner = self.inner();
        Ok(Changes {
            backend: inner.backend.clone(),
            is_inline: inner.driver.is_inline(),
            shared: inner.shared.clone(),
            is_meant: Box::new(is_meant),
            cursor,
            batch: None,
            has_ended: false,
        })
    }
}

impl Changes {
    /// The next change; none when the store is closed. May be dropped and called again: nothing is lost.
    pub async fn next(&mut self) -> Option<Result<Change>> {
        if self.has_ended {
            return None;
        }
        loop {
            if let Some(change) = self.next_of_batch() {
                return Some(Ok(change));
            }
            let shared = self.shared.clone();
            // Before looking, so that what is published after the look is noticed.
            let mut more = pin!(shared.hub.more());
            more.as_mut().enable();
            match shared.hub.after(self.cursor) {
                Found::Batch(batch) => self.batch = Some((batch, 0)),
                Found::TooOld => {
                    let (backend, is_inline) = (self.backend.clone(), self.is_inline);
                    match watch::read_log(backend, shared.clone(), self.cursor, is_inline).await {
                        Ok(batch) => self.batch = Some((batch, 0)),
                        Err(error) => {
                            self.has_ended = true;
                            return Some(Err(error));
                        }
                    }
                }
                Found::Nothing if shared.hub.is_closed() => return None,
                Found::Nothing => more.await,
            }
        }
    }

    /// Everything up to here was looked at.
    pub fn position(&self) -> Revision {
        self.cursor
    }

    fn next_of_batch(&mut self) -> Option<Change> {
        let (batch, next) = self.batch.as_mut()?;
        while let Some(change) = batch.get(*next) {
            *next += 1;
            if change.revision <= self.cursor {
                continue;
            }
            self.cursor = change.revision;
            if (self.is_meant)(&change.object.key().kind) {
                return Some(Change {
                    revision: change.revision,
                    act: change.act,
                    object: change.object.clone(),
                    previous: change.previous.clone(),
                });
            }
        }
        self.batch = None;
        None
    }
}

#[cfg(test)]
mod tests {
    use concert_model::Object;
    use serde_json::json;

    use super::*;
    use crate::backend::memory::Memory;
    use crate::contract::{By, Delete, Store};
    use crate::{Chance, Config, SystemClock};

    fn thing(kind: &str, name: &str) -> Object {
        let value =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}});
        Object::from_value(value).unwrap()
    }

    #[tokio::test]
    async fn kinds_come_in_one_order_and_any_place_can_be_gone_back_to() {
        let config = Config::new(Arc::new(SystemClock::new()), Chance::seeded(1)).inline();
        let store = Local::open(Arc::new(Memory::new()), config).unwrap();
        let by = By::actor("test");
        let is_meant = |kind: &GroupKind| &*kind.kind != "ServiceAccount";
        let mut changes = store.changes(None, is_meant).await.unwrap();
        for kind in ["ConfigMap", "ServiceAccount", "Secret"] {
            store.create(thing(kind, "a"), &by).await.unwrap();
        }
        let key = thing("ConfigMap", "a").key().unwrap();
        store.delete(&key, &Delete::default(), &by).await.unwrap();
        let mut seen = Vec::new();
        for _ in 0..3 {
            let change = changes.next().await.unwrap().unwrap();
            seen.push((change.revision, change.object.key().kind.kind.to_string(), change.act));
            assert_eq!(change.previous.is_some(), change.act == Act::Removed);
        }
        let kinds: Vec<_> = seen.iter().map(|(_, kind, act)| (kind.as_str(), *act)).collect();
        assert_eq!(
            kinds,
            [("ConfigMap", Act::Created), ("Secret", Act::Created), ("ConfigMap", Act::Removed)]
        );
        assert!(seen.is_sorted_by_key(|(revision, ..)| *revision));
        let mut again = store.changes(Some(&seen[0].0.into()), is_meant).await.unwrap();
        assert_eq!(again.next().await.unwrap().unwrap().revision, seen[1].0);
        let future = Revision(seen[2].0.0 + 1).into();
        assert!(store.changes(Some(&future), is_meant).await.is_err());
        drop(store);
        assert_eq!(again.next().await.unwrap().unwrap().revision, seen[2].0);
        assert!(again.next().await.is_none());
    }
}
