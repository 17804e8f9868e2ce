//! U5: a component in the cluster of every entry: installed, updated, repaired, pruned.

pub mod wanted;

use std::time::Duration;

use concert_worker::{Answer, Component, Entry, Inventory, Outcome, Registration, Status};
use serde_json::Value;

use crate::cluster::{CONFIG_MAP, CREDENTIALS, DEPLOYMENT, Installed, Targets, install};
use crate::kubeconfig::FLEET;

const NAME: &str = "component";
const SETTINGS: &str = "settings";
/// Between two looks at a Deployment that is not available, should the news of it be lost.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

pub fn registration() -> Registration {
    Registration::new(NAME)
        .handles("runtime")
        .handles("byoc")
        .watches_path(SETTINGS, "/component")
        .watches(CREDENTIALS)
        .follows(DEPLOYMENT.group, DEPLOYMENT.version, DEPLOYMENT.kind, Some(FLEET))
        .follows(CONFIG_MAP.group, CONFIG_MAP.version, CONFIG_MAP.kind, Some(FLEET))
        .reads([SETTINGS, CREDENTIALS])
}

/// The reconciler.
#[derive(Default)]
pub struct Installer(Targets);

impl Component for Installer {
    async fn reconcile(&self, entry: &Entry, inventory: &Inventory) -> Outcome {
        if entry.is_deleting {
            self.0.forget(entry);
            return Ok(Answer::ready("the component goes with its cluster, or with the account there"));
        }
        let view = inventory.read().await?;
        let settings = view.sections.get(SETTINGS).map_or(&Value::Null, |it| &it.data["component"]);
        let objects = &wanted::objects(settings);
        let work = |client| async move { install(&client, FLEET, NAME, objects).await.map(|it| answer(&it)) };
        self.0.within(entry, inventory, work).await
    }
}

/// What to say of what was installed.
pub fn answer(installed: &Installed) -> Answer {
    if !installed.pruned.is_empty() {
        tracing::info!(objects = installed.pruned.join(", "), "removed what is no longer wanted");
    }
    if installed.unready.is_empty() {
        return Answer::ready("everything runs").with_condition(
            "Available",
            Status::True,
            "Available",
            "everything runs",
        );
    }
    let message = format!("not yet available: {}", installed.unready.join(", "));
    Answer::requeue(LOOK_AGAIN, &message).with_condition("Available", Status::False, "Progressing", message)
}
