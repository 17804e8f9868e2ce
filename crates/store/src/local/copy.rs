//! Copies of a store that is in use.

use std::path::Path;

use bytes::Bytes;

use super::{Local, Shared};
use crate::backend::{Backend, Failure, Owner};
use crate::contract::Result;

impl Local {
    /// Copies everything to a new file, as of one moment, while others read and write. Payloads in it are
    /// sealed as they are here: it is of no use without the keys.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when there is such a file already, it cannot be written, or the
    /// backend makes no copies.
    pub async fn backup_to(&self, target: &Path) -> Result<()> {
        let target = target.to_owned();
        self.inner().read(move |backend| backend.backup_to(&target)).await
    }

    /// Takes a copy in the place of everything there is. Writers wait meanwhile.
    ///
    /// # Guarantees
    /// - Whatever fails, the store is as it was: every payload is opened before anything changes.
    /// - Nobody goes on as if nothing had happened: watches, also running ones, and lists from any earlier
    ///   position are expired, writes based on an earlier state conflict, claims on work are lost.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when the file is no copy of a store, is damaged, or was sealed with
    /// keys that are not here.
    pub async fn restore_from(&self, source: &Path) -> Result<()> {
        let (source, shared) = (source.to_owned(), self.inner().shared.clone());
        let restore = move |backend: &dyn Backend| {
            let opens = |owner: &Owner, bytes: &Bytes| shared.seal.open(owner, bytes).map(drop);
            let result = backend.restore_from(&source, &opens);
            // On the writer's thread, before the next commit is told to anybody; and also after a failure
            // that may have come too late.
            shared.notice(backend).and(result)
        };
        self.inner().driver.call(restore).await
    }
}

impl Shared {
    /// Starts afresh if the backend has moved on by itself.
    fn notice(&self, backend: &dyn Backend) -> Result<(), Failure> {
        let newest = backend.bounds()?.newest;
        if newest == self.hub.newest() {
            return Ok(());
        }
        // Watches first: whatever else fails, none of them may go on.
        self.hub.restart(newest);
        self.recent.clear();
        self.load_kinds(backend)
    }
}
