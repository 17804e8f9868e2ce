//! Issues kubeconfigs and tells the inventory of them.

use std::time::Duration;

use concert_model::{base64, time};
use concert_store::{Chance, Clock as _, SystemClock};
use concert_worker::{Answer, Component, Entry, Failed, Inventory, Outcome, Status, View, Waits};
use serde_json::{Value, json};

use super::account::{ACCOUNT, NAMESPACE, objects, places};
use super::rotation::{Issued, Step, Window, decide};
use super::{ADMIN, CLUSTER, CREDENTIALS};
use crate::cluster::{Access, Client, Place, SECRET, Trouble, token_address, uninstall};
use crate::flags;

/// The condition that says whether the cluster answers to its administrator.
const REACHABLE: &str = "Reachable";
/// What is said of a cluster that nobody here can clear any more.
const LEFT: &str = "nobody gets into the cluster any more: what was made there is still there";

/// The reconciler.
pub struct Kubeconfigs {
    garden: Client,
    poll: Duration,
    lifetime: Duration,
    window: Window,
    clock: SystemClock,
    chance: Chance,
}

impl Kubeconfigs {
    pub async fn new(flags: &flags::Kubeconfig) -> anyhow::Result<Self> {
        anyhow::ensure!(
            0.0 <= flags.rotate_from && flags.rotate_from <= flags.rotate_until && flags.rotate_until < 1.0,
            "--rotate-from must not be after --rotate-until, and both are parts of 1"
        );
        Ok(Self {
            garden: Client::from_file(&flags.garden.garden).await?,
            poll: flags.garden.poll,
            lifetime: flags.lifetime,
            window: Window { from: flags.rotate_from, until: flags.rotate_until },
            clock: SystemClock::new(),
            chance: Chance::from_system(),
        })
    }

    /// The administrator's access to the cluster of an entry, or what to answer as long as there is none.
    async fn admin(&self, entry: &Entry, view: &View, inventory: &Inventory) -> Result<Access, Outcome> {
        let text = if entry.kind == "byoc" {
            let section = inventory.section(ADMIN).await.map_err(|error| Err(error.into()))?;
            let waits = || Answer::not_ready("nobody has given a kubeconfig", [Waits::section(ADMIN)]);
            let section = section.ok_or_else(|| Ok(waits()))?;
            section.data["kubeconfig"].as_str().unwrap_or_default().to_owned()
        } else {
            self.of_shoot(view).await?
        };
        Access::parse(&text).map_err(|why| {
            let message = format!("the kubeconfig cannot be used: {why}");
            let failed = Failed::terminal(&message);
            Err(failed.with_condition(REACHABLE, Status::False, "Malformed", message))
        })
    }

    /// Gardener keeps the administrator's kubeconfig of a Shoot beside it.
    async fn of_shoot(&self, view: &View) -> Result<String, Outcome> {
        let cluster = view.sections.get(CLUSTER).map_or(&Value::Null, |it| &it.data);
        let (Some(name), Some(project)) = (cluster["shoot_name"].as_str(), cluster["project"].as_str())
        else {
            let waits = [Waits::section(CLUSTER).path("/api_server")];
            return Err(Ok(Answer::not_ready("there is no cluster yet", waits)));
        };
        let place = Place::new(SECRET, Some(project), &format!("{name}.kubeconfig"));
        let secret = self.garden.get(&place).await.map_err(|it| Err(Failed::transient(it)))?;
        let data = secret.as_ref().and_then(|it| it["data"]["kubeconfig"].as_str());
        let text = data.and_then(base64::decode).and_then(|it| String::from_utf8(it).ok());
        text.ok_or_else(|| Ok(Answer::requeue(self.poll, "Gardener has no kubeconfig of the Shoot yet")))
    }

    /// Makes the restricted account, and a token for it if it is time.
    async fn keep(&self, access: &Access, inventory: &Inventory) -> Result<Answer, Keep> {
        let admin = Client::open(access).await?;
        admin.whoami().await?;
        let mut account = String::new();
        for object in objects() {
            let stored = admin.apply(&object).await?;
            if stored["kind"] == "ServiceAccount" {
                account = stored["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            }
        }
        let section = inventory.section(CREDENTIALS).await?;
        let issued = section.as_ref().and_then(|it| Issued::read(&it.data));
        let left = match decide(issued.as_ref(), &account, &access.server, self.clock.now()) {
            Step::Keep(left) => left,
            Step::Issue(why) => {
                let issued = self.issue(&admin, access, account).await?;
                let (issued, kubeconfig) = issued;
                let data = issued.write(&kubeconfig);
                match &section {
                    Some(old) => inventory.write_at(CREDENTIALS, &data, old.version).await?,
                    None => inventory.write(CREDENTIALS, &data).await?,
                };
                tracing::info!(why, expires_at = %issued.expires_at, "issued a token");
                self.left(&issued)
            }
        };
        Ok(Answer::ready("the kubeconfig is good").again_after(left).with_condition(
            REACHABLE,
            Status::True,
            "Answered",
            "the cluster answers",
        ))
    }

    async fn issue(
        &self,
        admin: &Client,
        access: &Access,
        account: String,
    ) -> Result<(Issued, String), Keep> {
        let issued_at = self.clock.now();
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": self.lifetime.as_secs()}});
        let answer = admin.post(&token_address(NAMESPACE, ACCOUNT), &request).await?;
        let token = answer["status"]["token"].as_str();
        let expires_at = answer["status"]["expirationTimestamp"].as_str().and_then(time::parse);
        let (Some(token), Some(expires_at)) = (token, expires_at) else {
            return Err(Keep::Trouble(Trouble::Unreachable("it gave no token".to_owned())));
        };
        let rotate_at = self.window.rotate_at(issued_at, expires_at, self.chance.fraction());
        let server = access.server.clone();
        let kubeconfig = access.with_token(token).to_document().to_string();
        Ok((Issued { issued_at, expires_at, rotate_at, account, server }, kubeconfig))
    }

    fn left(&self, issued: &Issued) -> Duration {
        Duration::try_from(issued.rotate_at.duration_since(self.clock.now())).unwrap_or_default()
    }
}

/// Takes away what was made in a cluster that stays. One that lets nobody in keeps it, and so does one that
/// never answered; one that does not answer now is asked again, until `admin` is removed.
async fn clear(inventory: &Inventory) -> Result<&'static str, Failed> {
    let was_kept = inventory.read().await?.sections.contains_key(CREDENTIALS);
    let section = inventory.section(ADMIN).await?;
    let text = section.as_ref().and_then(|it| it.data["kubeconfig"].as_str()).unwrap_or_default();
    let Ok(access) = Access::parse(text) else { return Ok(LEFT) };
    match withdraw(&access).await {
        Ok(removed) => {
            tracing::info!(objects = removed.join(", "), "removed the account and what it has installed");
            Ok("what was made in the cluster is gone")
        }
        Err(Trouble::Unauthorized | Trouble::Refused { code: 403, .. }) => Ok(LEFT),
        Err(Trouble::Unreachable(_)) if !was_kept => Ok("the cluster was never reached"),
        Err(trouble) => Err(trouble.into()),
    }
}

/// First the account, so that nobody installs anything more, and then what it has installed.
async fn withdraw(access: &Access) -> Result<Vec<String>, Trouble> {
    let admin = Client::open(access).await?;
    for place in places() {
        admin.delete(&place).await?;
    }
    uninstall(&admin, NAMESPACE).await
}

/// Why a kubeconfig could not be kept.
enum Keep {
    Trouble(Trouble),
    Inventory(concert_worker::Error),
}

impl From<Trouble> for Keep {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<concert_worker::Error> for Keep {
    fn from(error: concert_worker::Error) -> Self {
        Self::Inventory(error)
    }
}

impl Component for Kubeconfigs {
    async fn reconcile(&self, entry: &Entry, inventory: &Inventory) -> Outcome {
        if entry.is_deleting {
            // A Shoot takes all with it; the cluster that somebody brought is still theirs.
            let message = match entry.kind == "byoc" {
                true => clear(inventory).await?,
                false => "no kubeconfig is handed out any more",
            };
            inventory.remove(CREDENTIALS).await?;
            return Ok(Answer::ready(message));
        }
        let view = inventory.read().await?;
        let access = match self.admin(entry, &view, inventory).await {
            Ok(access) => access,
            Err(answer) => return answer,
        };
        match self.keep(&access, inventory).await {
            Ok(answer) => Ok(answer),
            Err(Keep::Inventory(error)) => Err(error.into()),
            Err(Keep::Trouble(trouble)) => {
                let text = trouble.to_string();
                let reason = match &trouble {
                    Trouble::Unreachable(_) => "NoAnswer",
                    // It has answered, so it is there.
                    Trouble::Busy(_) => return Err(trouble.into()),
                    _ => "Refused",
                };
                Err(Failed::from(trouble).with_condition(REACHABLE, Status::False, reason, text))
            }
        }
    }
}
