//! Declares Shoots and tells the inventory of them.

use std::time::Duration;

use concert_worker::{Answer, Component, Entry, Failed, Inventory, Outcome, Status, Waits};
use serde_json::{Value, json};

use super::decide::{Progress, place, progress, wanted};
use super::{CLUSTER, NETWORK, PROJECT, SETTINGS};
use crate::cluster::{Client, Trouble};
use crate::flags::Garden;

/// The condition that says how far the Shoot is.
const CREATED: &str = "ShootCreated";

/// The reconciler.
pub struct Shoots {
    garden: Client,
    poll: Duration,
}

impl Shoots {
    pub async fn new(flags: &Garden) -> anyhow::Result<Self> {
        Ok(Self { garden: Client::from_file(&flags.garden).await?, poll: flags.poll })
    }

    async fn grow(&self, entry: &Entry, vnet: &str, settings: &Value) -> Result<Progress, Trouble> {
        let shoot = self.garden.apply(&wanted(&entry.id, vnet, settings)).await?;
        Ok(progress(&shoot))
    }

    /// Asks for the end of the Shoot until there is none.
    async fn fell(&self, entry: &Entry, inventory: &Inventory) -> Outcome {
        let place = place(&entry.id);
        self.garden.delete(&place).await.map_err(Trouble::elsewhere)?;
        if self.garden.get(&place).await.map_err(Trouble::elsewhere)?.is_some() {
            return Ok(Answer::requeue(self.poll, "the Shoot is being deleted"));
        }
        inventory.remove(CLUSTER).await?;
        Ok(Answer::ready("there is no Shoot any more"))
    }
}

impl Component for Shoots {
    async fn reconcile(&self, entry: &Entry, inventory: &Inventory) -> Outcome {
        if entry.is_deleting {
            return self.fell(entry, inventory).await;
        }
        let view = inventory.read().await?;
        let data = |section: &str| view.sections.get(section).map_or(&Value::Null, |it| &it.data);
        let Some(vnet) = data(NETWORK)["vnet_name"].as_str() else {
            let waits = [Waits::section(NETWORK).path("/vnet_name")];
            return Ok(Answer::not_ready("there is no network to put a Shoot into", waits));
        };
        match self.grow(entry, vnet, data(SETTINGS)).await.map_err(Trouble::elsewhere)? {
            Progress::Growing(how) => Ok(Answer::requeue(self.poll, how.clone()).with_condition(
                CREATED,
                Status::False,
                "Growing",
                how,
            )),
            Progress::Withered(why) => {
                Err(Failed::transient(&why).with_condition(CREATED, Status::False, "Withered", why))
            }
            Progress::Grown { api_server } => {
                let cluster = json!({"api_server": api_server, "shoot_name": entry.id,
                    "project": PROJECT, "state": "Ready"});
                inventory.write(CLUSTER, &cluster).await?;
                Ok(Answer::ready("the cluster is there").with_condition(
                    CREATED,
                    Status::True,
                    "Grown",
                    "Gardener has made it",
                ))
            }
        }
    }
}
