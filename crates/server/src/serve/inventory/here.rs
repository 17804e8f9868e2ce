//! An inventory in this process.

use std::sync::Arc;
use std::time::Duration;

use concert_api::audit::Audit;
use concert_api::auth::{Gate, Keys};
use concert_api::inventory::{self, Door};
use concert_engine::{OnExit, Tasks};
use concert_model::Object;
use concert_store::{By, Clock, Local, Part};
use serde_json::json;
use tracing::{info, warn};

use super::Inventory;
use crate::serve::error::Error;

/// How often Secrets are looked for that no section points at.
const SWEEP_EVERY: Duration = Duration::from_secs(10 * 60);

impl Inventory {
    /// One in this process, which is reached at `address`.
    pub fn here(
        store: &Local,
        gate: &Gate,
        keys: &Keys,
        clock: &Arc<dyn Clock>,
        audit: &Audit,
        address: &str,
    ) -> Self {
        let door = Door::new(inventory::Parts {
            store: store.clone(),
            gate: gate.clone(),
            clock: clock.clone(),
            keys: keys.clone(),
            audit: audit.clone(),
        });
        let minter = door.minter(address);
        Self { store: Arc::new(store.clone()), minting: Arc::new(minter), here: Some(door) }
    }
}

/// Makes what an inventory needs beside its kinds.
pub(in crate::serve) async fn prepare(store: &Local, by: &By) -> Result<(), Error> {
    let namespace = concert_model::inventory::NAMESPACE;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let namespace = Object::from_value(namespace).map_err(Error::store)?;
    store.apply(namespace, Part::Main, true, by).await.map(drop).map_err(Error::store)
}

/// Looks for what crashes have left, again and again.
pub(in crate::serve) fn sweep(store: &Local, clock: &Arc<dyn Clock>, tasks: &Tasks) {
    let (store, clock, shutdown) = (store.clone(), clock.clone(), tasks.shutdown().clone());
    tasks.spawn("inventory-sweep", OnExit::Stop, async move {
        loop {
            tokio::select! {
                biased;
                () = shutdown.requested() => return,
                () = clock.sleep(SWEEP_EVERY) => {}
            }
            let by = By::actor("concert").because("nobody points at it");
            match inventory::sweep(&store, &*clock, &by).await {
                Ok(0) => {}
                Ok(count) => info!(count, "removed secrets that no section points at"),
                Err(error) => warn!(%error, "cannot look for secrets that no section points at"),
            }
        }
    });
}
