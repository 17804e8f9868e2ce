//! Clusters of entries, reached with what the section `credentials` refers to.
//!
//! The credentials are fetched at run time and kept with their version. When a cluster refuses them they
//! are dropped and fetched again, once: whoever rotates them may have been quicker than the news of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use concert_worker::{Answer, Entry, Inventory, Outcome, Waits};

use super::client::{Client, Trouble};
use super::document::Access;

/// The secret section with a restricted kubeconfig.
pub const CREDENTIALS: &str = "credentials";
/// Most clusters that are kept. Beyond it they are fetched anew, which costs a request each.
const KEPT_MAX: usize = 10_000;

/// Clusters that were reached before.
#[derive(Default)]
pub struct Targets(Mutex<BTreeMap<String, Kept>>);

#[derive(Clone)]
struct Kept {
    version: u64,
    client: Client,
}

/// Why there is no cluster to work on.
enum No {
    Credentials,
    Trouble(Trouble),
    Inventory(concert_worker::Error),
}

impl Targets {
    /// Does `work` in the cluster of `entry`.
    pub async fn within<F>(
        &self,
        entry: &Entry,
        inventory: &Inventory,
        work: impl Fn(Client) -> F + Sync,
    ) -> Outcome
    where
        F: Future<Output = Result<Answer, Trouble>> + Send,
    {
        let drop_kept = || {
            self.forget(entry);
            tracing::info!(entry = entry.id, "credentials refused, fetching them again");
        };
        let first = self.once(entry, inventory, &work);
        let second = self.once(entry, inventory, &work);
        match again_if_refused(first, drop_kept, second).await {
            Ok(answer) => Ok(answer),
            Err(No::Credentials) => Ok(waiting("there are no credentials for the cluster yet")),
            Err(No::Trouble(Trouble::Unauthorized)) => {
                self.forget(entry);
                Ok(waiting("the cluster does not accept the credentials"))
            }
            Err(No::Trouble(trouble)) => Err(trouble.into()),
            Err(No::Inventory(error)) => Err(error.into()),
        }
    }

    async fn once<F>(
        &self,
        entry: &Entry,
        inventory: &Inventory,
        work: &(impl Fn(Client) -> F + Sync),
    ) -> Result<Answer, No>
    where
        F: Future<Output = Result<Answer, Trouble>> + Send,
    {
        let client = self.client(entry, inventory).await?;
        work(client).await.map_err(No::Trouble)
    }

    /// Drops what is kept of an entry.
    pub fn forget(&self, entry: &Entry) {
        self.kept().remove(&entry.id);
    }

    async fn client(&self, entry: &Entry, inventory: &Inventory) -> Result<Client, No> {
        let view = inventory.read().await.map_err(No::Inventory)?;
        let version = view.sections.get(CREDENTIALS).ok_or(No::Credentials)?.version;
        let kept = self.kept().get(&entry.id).cloned();
        if let Some(kept) = kept.filter(|it| it.version == version) {
            return Ok(kept.client);
        }
        let section = inventory.section(CREDENTIALS).await.map_err(No::Inventory)?.ok_or(No::Credentials)?;
        let text = section.data["kubeconfig"].as_str().ok_or(No::Credentials)?;
        let access = Access::parse(text).map_err(|why| No::Trouble(Trouble::Unreachable(why)))?;
        let client = Client::open(&access).await.map_err(No::Trouble)?;
        let mut kept = self.kept();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(entry.id.clone(), Kept { version: section.version, client: client.clone() });
        Ok(client)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first try, or, if the credentials were refused, the second one: `drop_kept` has it fetch them anew.
async fn again_if_refused(
    first: impl Future<Output = Result<Answer, No>>,
    drop_kept: impl FnOnce(),
    second: impl Future<Output = Result<Answer, No>>,
) -> Result<Answer, No> {
    match first.await {
        Err(No::Trouble(Trouble::Unauthorized)) => {
            drop_kept();
            second.await
        }
        tried => tried,
    }
}

fn waiting(message: &str) -> Answer {
    Answer::not_ready(message, [Waits::section(CREDENTIALS)])
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A try at a cluster that says 401 so many times.
    async fn attempt(tries: &Cell<usize>, refusals: usize) -> Result<Answer, No> {
        tries.set(tries.get() + 1);
        match tries.get() > refusals {
            true => Ok(Answer::ready("done")),
            false => Err(No::Trouble(Trouble::Unauthorized)),
        }
    }

    #[tokio::test]
    async fn u3_credentials_that_are_refused_are_fetched_again_exactly_once() {
        for (refusals, tries_expected, drops_expected, is_good) in
            [(0, 1, 0, true), (1, 2, 1, true), (usize::MAX, 2, 1, false)]
        {
            let (tries, drops) = (Cell::new(0), Cell::new(0));
            let (first, second) = (attempt(&tries, refusals), attempt(&tries, refusals));
            let came = again_if_refused(first, || drops.set(drops.get() + 1), second).await;
            assert_eq!((tries.get(), drops.get()), (tries_expected, drops_expected), "{refusals} times 401");
            assert_eq!(came.is_ok(), is_good, "{refusals} times 401");
        }
    }
}
