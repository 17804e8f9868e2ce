//! What an author writes.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::answer::Outcome;
use crate::inventory::Inventory;

/// A component reconciler.
pub trait Component: Send + Sync + 'static {
    /// Makes the world match what the inventory says of `entry`.
    ///
    /// # Guarantees
    /// Nobody else reconciles this entry with this component at the same time, unless this host is cut off
    /// from the server for longer than a lease; then the future is dropped.
    /// # Assumptions
    /// It may run twice, late, or after a crash between any two of its lines, so it compares and corrects.
    /// It answers soon: what takes long is begun, and looked at again later ([`crate::Answer::requeue`]).
    /// While [`Entry::is_deleting`] it takes away what it made, and is ready when nothing is left.
    /// # Errors
    /// [`crate::Failed`], which says whether trying again can help. No secret may be in its message.
    fn reconcile(&self, entry: &Entry, inventory: &Inventory) -> impl Future<Output = Outcome> + Send;
}

/// One entry of the fleet, as it was when it was claimed.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Entry {
    /// Its name.
    #[serde(rename = "entry")]
    pub id: String,
    /// What sort of cluster it is: `runtime`, `byoc`.
    #[serde(default)]
    pub kind: String,
    /// Whose it is.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Its labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Whether it is to go.
    #[serde(default, rename = "deleting")]
    pub is_deleting: bool,
    /// How often in a row it has failed.
    #[serde(skip)]
    pub attempt: u64,
    /// Why it is due, for people.
    #[serde(skip)]
    pub reasons: Vec<String>,
}
