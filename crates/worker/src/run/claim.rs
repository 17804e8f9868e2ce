//! Asking for work.

use std::sync::Arc;
use std::time::Duration;

use rand::TryRng as _;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::warn;

use super::Desk;
use crate::component::Entry;
use crate::error::Error;
use crate::moment::now;
use crate::server::{Pause, address, patience_of};

/// How long the server may let a claim wait: less than what idle connections survive on most ways.
const WAIT: Duration = Duration::from_secs(30);

/// One entry that was lent.
pub(crate) struct Item {
    pub name: Arc<str>,
    pub fence: u64,
    pub entry: Entry,
    pub inventory: Access,
    /// When the answer came: the lease had begun a little earlier, and not when the claim was made.
    pub arrived: Instant,
}

/// How its part of the inventory is reached.
#[derive(Deserialize)]
pub(crate) struct Access {
    pub url: String,
    #[serde(default)]
    pub revision: u64,
    pub token: String,
}

#[derive(Deserialize)]
struct Lent {
    item: Arc<str>,
    object: Entry,
    lease: Lease,
    #[serde(default)]
    attempt: u64,
    #[serde(default)]
    reasons: Vec<String>,
    inventory: Access,
}

#[derive(Deserialize)]
struct Lease {
    fence: u64,
}

impl Desk {
    /// Entries that are due, at most `limit`; none after a while, and none once a stop is asked for.
    pub async fn claim(&self, limit: usize) -> Result<Vec<Item>, Error> {
        let name = &self.registration.name;
        let number = rand::rngs::SysRng.try_next_u64().expect("the operating system gives random bytes");
        let body = json!({
            "host_id": &*self.host_id, "limit": limit, "wait_seconds": WAIT.as_secs(),
            // Asked again under the same name, the server hands out again what was lost on the way.
            "claim_id": format!("{number:016x}"),
        });
        let (mut pause, address) = (Pause::default(), address(name, "claim"));
        while !self.stop.is_cancelled() {
            let claim = self.server.post_until(&address, &body, patience_of(WAIT), &self.stop);
            match claim.await {
                Ok(Some(answer)) => return Ok(items(answer, now())),
                Ok(None) => break,
                // The server has forgotten this worker, or somebody removed it.
                Err(error) if error.status() == Some(404) => {
                    pause.wait(&self.stop).await;
                    self.register().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Vec::new())
    }
}

fn items(mut answer: Value, arrived: Instant) -> Vec<Item> {
    let Value::Array(list) = answer["items"].take() else { return Vec::new() };
    let parse = |value: Value| match serde_json::from_value::<Lent>(value) {
        Ok(it) => Some(Item {
            name: it.item,
            fence: it.lease.fence,
            entry: Entry { attempt: it.attempt, reasons: it.reasons, ..it.object },
            inventory: it.inventory,
            arrived,
        }),
        // Its text has no part of the value: there are tokens in it.
        Err(_) => {
            warn!("an item that was lent cannot be read; its lease runs out");
            None
        }
    };
    list.into_iter().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_its_entry_its_fence_and_its_way_into_the_inventory() {
        let answer = json!({"items": [
            {"item": "a/shoot", "object": {"entry": "a", "kind": "runtime", "tenant": null,
                "labels": {"x": "y"}, "deleting": true},
             "lease": {"token": "t", "fence": 7, "expires_at": "2026-11-17T12:00:00Z"},
             "attempt": 2, "reasons": ["section:network"],
             "inventory": {"url": "http://h/inventory/v1/entries/a", "revision": 57, "token": "s"}},
            {"item": "broken"},
        ]});
        let items = items(answer, now());
        assert_eq!(items.len(), 1);
        let item = &items[0];
        assert_eq!((&*item.name, item.fence, item.inventory.revision), ("a/shoot", 7, 57));
        let entry = &item.entry;
        assert_eq!((entry.id.as_str(), entry.kind.as_str(), entry.attempt), ("a", "runtime", 2));
        assert!(entry.is_deleting && entry.labels["x"] == "y" && entry.reasons == ["section:network"]);
    }
}
