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
        let mut tried = self.once(entry, inventory, &work).await;
        if matches!(tried, Err(No::Trouble(Trouble::Unauthorized))) {
            self.forget(entry);
            tracing::info!(entry = entry.id, "credentials refused, fetching them again");
            tried = self.once(entry, inventory, &work).await;
        }
        match tried {
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

fn waiting(message: &str) -> Answer {
    Answer::not_ready(message, [Waits::section(CREDENTIALS)])
}
