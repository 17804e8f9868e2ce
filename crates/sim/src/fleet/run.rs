//! The hosts: they claim, work, and report, whatever happens to them on the way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_engine::workers::{Ask, Board, Claimed, Report};
use concert_model::inventory::Entry;
use concert_store::{Chance, Clock};
use serde_json::{Map, Value, json};

use super::Bug;
use super::inventory::{Inventory, Refused};
use super::world::World;
use crate::executor::Executor;
use crate::faults::Weather;

/// Who works on entries. Each needs what the one before it writes.
pub const RECONCILERS: [&str; 3] = ["network", "shoot", "component"];
/// How long a lease is. Shorter than many a nap of a host.
pub const LEASE_SECONDS: u64 = 10;
/// Longer than a life takes to settle: who waits is woken by what it waits for or not at all.
const LOOK_AGAIN: f64 = 600.0;

/// What all hosts and processes share.
pub struct Shared {
    pub executor: Executor,
    pub chance: Chance,
    pub weather: Weather,
    pub bug: Option<Bug>,
    /// Whether hosts have declared what wakes them. Where they have not, they wait for what they need.
    pub has_watches: bool,
    pub world: Mutex<World>,
    /// Where work is to be had.
    pub office: Mutex<Option<Board>>,
    /// Where entries are read and sections written: whichever process began last.
    pub inventory: Mutex<Option<Arc<Inventory>>>,
    /// What came of claims.
    pub claims: Mutex<Claims>,
}

/// What is remembered of claims.
#[derive(Default)]
pub struct Claims {
    /// Items whose last report was a success that was taken: its fence, and the failures before it.
    succeeded: BTreeMap<Arc<str>, (u64, u64)>,
}

/// What a host makes of its item.
struct Done {
    outcome: &'static str,
    class: &'static str,
    revision: Option<u64>,
    waits_for: Vec<Value>,
}

impl Done {
    fn ready(revision: u64) -> Self {
        Self { outcome: "ready", class: "", revision: Some(revision), waits_for: Vec::new() }
    }

    fn failed(class: &'static str) -> Self {
        Self { outcome: "failed", class, revision: None, waits_for: Vec::new() }
    }
}

impl Shared {
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn office(&self) -> Option<Board> {
        self.office.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn inventory(&self) -> Result<Arc<Inventory>, Refused> {
        let inventory = self.inventory.lock().unwrap_or_else(PoisonError::into_inner).clone();
        inventory.ok_or(Refused::Otherwise)
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_hit(&self, probability: f64) -> bool {
        self.weather.is_bad() && self.chance.is_hit(probability)
    }

    async fn nap(&self, millis: u64) {
        self.executor.sleep(Duration::from_millis(self.chance.below(millis.max(1)))).await;
    }

    /// One host of one reconciler, for ever.
    pub async fn host(self: Arc<Self>, reconciler: &'static str, host: String) {
        loop {
            let Some(board) = self.office() else {
                self.nap(1_000).await;
                continue;
            };
            let wait = Duration::from_secs(5);
            let ask = Ask { host: host.as_str().into(), limit: 3, wait, ..Ask::default() };
            for (item, token) in self.claim(reconciler, &board, ask).await {
                // It dies, and another one comes in its place.
                if self.is_hit(0.08) {
                    self.nap(3_000).await;
                    continue;
                }
                self.work(reconciler, &board, &token, &item).await;
            }
            self.nap(20).await;
        }
    }

    /// Items with their tokens. Those that no token can be had for go back, as whoever lends them does it.
    async fn claim(&self, reconciler: &'static str, board: &Board, ask: Ask) -> Vec<(Claimed, String)> {
        let mut claimed = Vec::new();
        for item in board.claim(reconciler, ask).await {
            match self.token(reconciler, &item).await {
                Some(token) => claimed.push((item, token)),
                None => drop(board.release(reconciler, &item.item, item.fence)),
            }
        }
        claimed
    }

    async fn token(&self, reconciler: &'static str, item: &Claimed) -> Option<String> {
        let has_lease = self.bug != Some(Bug::NoSectionFence);
        self.inventory().ok()?.mint(reconciler, item, has_lease).await
    }

    async fn work(&self, reconciler: &'static str, board: &Board, token: &str, item: &Claimed) {
        self.begin(item);
        self.world().runs += 1;
        if self.is_hit(0.1) {
            self.nap(40_000).await;
        }
        let done = self.reconcile(reconciler, token, item).await;
        let done = done.unwrap_or_else(|refused| {
            self.world().fenced += u64::from(matches!(refused, Refused::Late));
            Done::failed("transient")
        });
        // What it knows of its thing when it is done with it: the same for whoever merely looks.
        let version = self.world().version(&Entry(&item.object).uid(), reconciler);
        if self.is_hit(0.1) {
            self.nap(40_000).await;
        }
        // The report is lost: the lease runs out.
        if self.is_hit(0.05) {
            return;
        }
        let mut details = Map::new();
        details.insert("outcome".into(), json!(done.outcome));
        details.insert("error_class".into(), json!(done.class));
        details.insert("observed_revision".into(), json!(done.revision));
        details.insert("waits_for".into(), json!(done.waits_for));
        let message = format!("#{version}");
        let after = (done.outcome == "not_ready").then(|| Duration::from_secs_f64(LOOK_AGAIN));
        let report = Report { message, requeue_after: after, details, ..Report::default() };
        let times = if self.is_hit(0.05) { 2 } else { 1 };
        for _ in 0..times {
            let taken = board.finish(reconciler, &item.item, item.fence, report.clone()).await.is_ok();
            if taken && done.outcome == "ready" {
                self.claims().succeeded.insert(item.item.clone(), (item.fence, item.attempt));
            }
        }
    }

    /// A claim that follows a success that was taken must not be told of one more failure.
    fn begin(&self, item: &Claimed) {
        let last = self.claims().succeeded.remove(&item.item);
        // Only where nobody else can have had it in between.
        let Some((fence, attempt)) = last else { return };
        if item.fence == fence + 1 && item.attempt > attempt {
            self.world().violations.push(format!("a success of {} was lost", item.item));
        }
    }

    async fn reconcile(
        &self,
        reconciler: &'static str,
        token: &str,
        item: &Claimed,
    ) -> Result<Done, Refused> {
        let id = item.object.name();
        let uid = Entry(&item.object).uid();
        if item.context["deleting"] == true {
            if self.bug != Some(Bug::LeavesThingsBehind) {
                let gone = self.world().set(&uid, reconciler, None, item.fence);
                if gone.is_err() {
                    return Ok(Done::failed("transient"));
                }
            }
            return Ok(Done::ready(0));
        }
        let view = View(self.inventory()?.ask("GET", id, token, None).await?);
        if view.0["deleting"] == true {
            return Err(Refused::Otherwise);
        }
        let wanted = match reconciler {
            "network" => view.tenant(),
            "shoot" => view.value("network", "vnet_name"),
            _ => view.value("cluster", "name"),
        };
        // What is not of this tenant yet will be written: nothing but waiting for it brings them back.
        let wanted = wanted.filter(|it| self.has_watches || view.tenant().as_ref() == Some(it));
        let mut revision = view.revision();
        if self.bug == Some(Bug::ReadsTheFuture) {
            self.nap(3_000).await;
            // What has been written meanwhile is in this revision, and not in what was decided on.
            revision = View(self.inventory()?.ask("GET", id, token, None).await?).revision();
        }
        if self.is_hit(0.05) {
            return Ok(Done::failed(if self.chance.is_hit(0.3) { "unreachable" } else { "transient" }));
        }
        let Some(wanted) = wanted else {
            let wait = match reconciler {
                "shoot" => json!({"section": "network", "path": "/vnet_name"}),
                _ => json!({"section": "cluster"}),
            };
            let (outcome, class, revision) = ("not_ready", "", Some(revision));
            return Ok(Done { outcome, class, revision, waits_for: vec![wait] });
        };
        if self.world().set(&uid, reconciler, Some(&wanted), item.fence).is_err() {
            return Ok(Done::failed("transient"));
        }
        let made = self.world().version(&uid, reconciler);
        // It has had its effect, and says so when somebody else may have been at work since.
        if self.is_hit(0.1) {
            self.nap(40_000).await;
        }
        let (section, data) = match reconciler {
            "network" => ("network", json!({"vnet_name": wanted, "made": made})),
            "shoot" => ("cluster", json!({"name": wanted, "made": made})),
            _ => return Ok(Done::ready(revision)),
        };
        let (path, body) = (format!("{id}/sections/{section}"), json!({"data": data}));
        self.inventory()?.ask("PUT", &path, token, Some(&body)).await?;
        Ok(Done::ready(revision))
    }
}

/// An entry as a host reads it.
struct View(Value);

impl View {
    fn revision(&self) -> u64 {
        self.0["revision"].as_u64().unwrap_or_default()
    }

    fn tenant(&self) -> Option<String> {
        self.0["tenant"].as_str().map(str::to_owned)
    }

    fn value(&self, section: &str, field: &str) -> Option<String> {
        self.0["sections"][section]["data"][field].as_str().map(str::to_owned)
    }
}
