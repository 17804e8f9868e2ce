//! Copies of a store that is in use.

use std::path::Path;

use bytes::Bytes;

use super::{Local, Shared};
use crate::backend::{Backend, Failure, Owner};
use crate::contract::Result;
use crate::seal::Keyring;
#[cfg(doc)]
use crate::seal::SealedElsewhere;

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
    /// - Whatever fails, the store is as it was: every payload is opened before anything changes. What was
    ///   sealed with one of `keys` is sealed with the store's own from then on.
    /// - Nobody goes on as if nothing had happened: watches, also running ones, and lists from any earlier
    ///   position are expired, writes based on an earlier state conflict, claims on work are lost.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when the file is no copy of a store, is damaged
    /// ([`OpenError`](crate::backend::sqlite::OpenError) within), or was sealed with keys that are neither
    /// here nor in `keys` ([`SealedElsewhere`] within).
    pub async fn restore_from(&self, source: &Path, keys: Option<Keyring>) -> Result<()> {
        let (source, shared) = (source.to_owned(), self.inner().shared.clone());
        let restore = move |backend: &dyn Backend| {
            let renew = |owner: &Owner, bytes: &Bytes| shared.seal.adopt(keys.as_ref(), owner, bytes);
            let result = backend.restore_from(&source, &renew);
            // On the writer's thread, before the next commit is told to anybody; and also after a failure
            // that may have come too late.
            shared.notice(backend).and(result)
        };
        self.inner().driver.call(restore).await
    }
}

impl Shared {
    /// Starts afresh if the backend has moved on by itself.
    pub(super) fn notice(&self, backend: &dyn Backend) -> Result<(), Failure> {
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
